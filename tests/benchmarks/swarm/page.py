"""The tables of docs/speed.md, made from the figures that the benchmark wrote.

python -m tests.benchmarks.swarm --json figures.json
python -m tests.benchmarks.swarm.page figures.json
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.network.figures import shown
from tests.benchmarks.scale.tables import replaced

PAGE = Path(__file__).parents[3] / "docs" / "speed.md"
_FAR = "10 ms between any two peers"
_MANNERS = {
    "one at a time, cold": "one, cold",
    "one at a time, warm": "one, warm",
    "16 at once, cold": "16, cold",
    "16 at once, warm": "16, warm",
}
Told = dict[str, Any]
"""A group, as JSON has it."""


def written(page: str, groups: Sequence[Told]) -> str:
    """Return the page with the figures of some groups; tables of parts that are missing stay."""
    near = [one for one in groups if _FAR not in one["title"]]
    far = [one for one in groups if _FAR in one["title"]]
    if _titled(near, "training"):
        page = replaced(page, "training", _training(near))
    if _titled(near, "prompts"):
        page = replaced(page, "prompts", _prompts(near))
    if pushed := _titled(near, "bytes pushed"):
        page = replaced(page, "pushed", _alone("pushed", pushed[0]))
    if grown := _titled(near, "size"):
        page = replaced(page, "growth", "\n\n".join(map(_grown, grown)))
    if far:
        page = replaced(page, "delay", f"{_training(far)}\n\n{_prompts(far)}")
    return page


def _training(groups: Sequence[Told]) -> str:
    return _alone("training", _titled(groups, "training")[0])


def _alone(name: str, group: Told) -> str:
    rows = [(one["name"], _told(one)) for one in group["figures"]]
    return f"{_table((name, ''), rows)}\n\nBound: {group['bound']}."


def _prompts(groups: Sequence[Told]) -> str:
    columns = _titled(groups, "prompts")
    names = [_MANNERS[one["title"].partition(": ")[2].strip()] for one in columns]
    rows: dict[str, dict[str, str]] = {}
    for name, group in zip(names, columns, strict=True):
        for one in group["figures"]:
            row = _without_size(one["name"]) + f", {one['unit']}" * bool(one["unit"])
            target = f" ({one['target']})" if one["target"] else ""
            rows.setdefault(row + target, {})[name] = shown(one["value"])
    table = _table(
        ("prompts", *names),
        [(row, *[cells.get(name, "") for name in names]) for row, cells in rows.items()],
    )
    bounds = [f"- {name}: {one['bound']}" for name, one in zip(names, columns, strict=True)]
    return f"{table}\n\nBounds:\n\n" + "\n".join(bounds)


def _grown(group: Told) -> str:
    rows: dict[str, list[str]] = {}
    for one in group["figures"]:
        peers = one["name"].partition(":")[0].replace(" storage", "").replace(" compute", "")
        rows.setdefault(peers, []).append(shown(one["value"]))
    titles = ("storage, compute peers", "training, sentences/s", "16 prompts, tokens/s")
    return (
        f"{_table(titles, [(row, *cells) for row, cells in rows.items()])}"
        f"\n\nBound: {group['bound']}."
    )


def _titled(groups: Sequence[Told], begin: str) -> list[Told]:
    return [one for one in groups if one["title"].startswith(begin)]


def _told(one: Told) -> str:
    target = f" (target {one['target']})" if one["target"] else ""
    return f"{shown(one['value'])} {one['unit']}{target}"


def _without_size(name: str) -> str:
    """Return a figure's name without what differs between the columns."""
    head, of, rest = name.partition(" of ")
    size, colon, rest = rest.partition(": ")
    return f"{head}: {rest}" if of and colon and size.endswith(" bytes") else name


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Write the page anew."""
    groups = json.loads(Path(sys.argv[1]).read_text())
    PAGE.write_text(written(PAGE.read_text(), groups))


if __name__ == "__main__":
    main()
