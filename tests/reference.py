"""Tables of docs/ that come from the code: the daemons' options, and what they show to Prometheus.

scripts/reference makes them anew.
"""

from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec
from prometheus_client.core import Metric

from bootstrap.options import BootstrapOptions
from giaann_p2p.net.hive.daemon_limits import Figures
from giaann_p2p.node.reading.reader import RowReader
from peers.compute.metrics import metrics_of as of_compute
from peers.compute.options import ComputeOptions
from peers.metrics import p2pd_metrics
from peers.options import Options, described, flag
from peers.storage.metrics import metrics_of as of_storage
from peers.storage.options import StorageOptions
from tests.benchmarks.scale.tables import replaced
from tests.unit.node.helpers import MANIFEST, Town, play
from tests.unit.node.training.helpers_compute import Workshop, no_prompts

DOCS = Path(__file__).parent.parent / "docs"
PAGE, STORAGE_PAGE = DOCS / "configuration.md", DOCS / "storage-peer.md"
COMPUTE_PAGE = DOCS / "compute-peer.md"
KINDS: dict[str, type[Options]] = {
    "every daemon": Options,
    "giaann storage": StorageOptions,
    "giaann compute": ComputeOptions,
    "giaann bootstrap": BootstrapOptions,
}
_FORMS = {bool: "true or false", int: "number", float: "number", str: "text", NoneType: "nothing"}


def table(kind: type[Options]) -> str:
    """Return what can be set of a daemon, without what can be set of every one."""
    shown = set(described(kind)) - (set() if kind is Options else set(described(Options)))
    fields = [one for one in msgspec.structs.fields(kind) if one.name in shown]
    lines = [_line(field, described(kind)[field.name]) for field in fields]
    return "\n".join(["| option | in a file | default | |", "|---|---|---|---|", *lines])


def escaped(text: str) -> str:
    """Return a text as it can stand in a table."""
    return text.replace("|", "&#124;").replace("<", "&lt;")


def _line(field: msgspec.structs.FieldInfo, told: msgspec.Meta) -> str:
    form = (told.extra or {}).get("form")
    option = flag(field.name) + (f" {form}" if form else "")
    cells = (
        f"`{option}`",
        f"`{field.name}`, {_form(get_args(field.type)[0])}",
        _default(field),
        str(told.description) + _bounds(told),
    )
    return f"| {' | '.join(map(escaped, cells))} |"


def _form(kind: Any) -> str:  # noqa: ANN401  (a type of any form)
    if get_origin(kind) is Literal:
        return " or ".join(f'`"{one}"`' for one in get_args(kind))
    return "list of texts" if get_origin(kind) is tuple else _FORMS[kind]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "must be given"
    if field.default in ("", ()):
        return "none"
    if isinstance(field.default, bool):
        return "no"
    shown = field.default if isinstance(field.default, tuple) else (field.default,)
    return ", ".join(f"`{one}`" for one in shown)


def _bounds(told: msgspec.Meta) -> str:
    if told.ge is None:
        return ""
    return f" {told.ge} or more." if told.le is None else f" {told.ge} to {told.le}."


def metrics(page: Path) -> str:
    """Return what the peer that a page is about shows to Prometheus."""
    found: list[Metric] = []

    async def story(town: Town) -> None:
        if page == STORAGE_PAGE:
            house = town.add()
            found.extend(of_storage(house.node, house.store))
        else:
            shop = Workshop(town, 101)
            prompting = no_prompts()
            others = shop.node.lookout.view
            reading = RowReader(shop.transport, MANIFEST, others, shop.node.clock)
            found.extend(of_compute(shop.node, prompting, reading))
            await reading.close()
            await prompting.close()
            await shop.end()

    play(story)
    found += p2pd_metrics(_Host())
    return "\n".join(["| metric | kind | |", "|---|---|---|", *map(_metric, found)])


class _Host:
    """A p2pd that takes nothing."""

    deaths = disconnected = 0
    figures = Figures(0, 0, 0.0, 0)


def _metric(one: Metric) -> str:
    name = f"{one.name}_total" if one.type == "counter" else one.name
    labels = sorted({label for sample in one.samples for label in sample.labels} - {"le"})
    shown = name + (f"{{{', '.join(labels)}}}" if labels else "")
    return f"| `{shown}` | {one.type} | {escaped(one.documentation)} |"


def made(page: Path) -> str:
    """Return a page's text with all its tables made anew."""
    text = page.read_text()
    for name, kind in KINDS.items() if page == PAGE else ():
        text = replaced(text, name, table(kind))
    return text if page == PAGE else replaced(text, "metrics", metrics(page))


if __name__ == "__main__":
    for one in (PAGE, STORAGE_PAGE, COMPUTE_PAGE):
        one.write_text(made(one))
