"""docs/speed.md is made from figures: every table has its place, and what is lacking stays."""

from typing import Any

import pytest

from tests.benchmarks.swarm.page import PAGE, written

FAR = ", 10 ms between any two peers"
MANNERS = [f"{many}, {how}" for many in ("one at a time", "16 at once") for how in ("cold", "warm")]
TITLES = [
    *(f"training{where}: a text" for where in ("", FAR)),
    *(f"prompts{where}: {manner}" for where in ("", FAR) for manner in MANNERS),
    "bytes pushed: a text",
    "size: from 1 to 4 compute peers",
    "size: from 1 to 6 storage peers",
]


def group(title: str, number: int) -> dict[str, Any]:
    name = (
        "3 storage, 1 compute: training" if title.startswith("size") else "speed of 17 bytes: p50"
    )
    figure = {"name": name, "value": 7000.0 + number, "unit": "things/s", "target": ""}
    return {"title": title, "bound": f"bound {number}", "figures": [figure]}


def test_each_figure_has_its_place() -> None:
    groups = [group(title, number) for number, title in enumerate(TITLES)]
    page = written(PAGE.read_text(), groups)
    for number in range(len(groups)):
        assert page.count(f"7,{number:03d}") == 1
        assert page.count(f"bound {number}\n") + page.count(f"bound {number}.\n") == 1
    assert "| 3, 1 | 7,011 |" in page
    assert "| speed: p50, things/s | 7,002 | 7,003 | 7,004 | 7,005 |" in page
    assert written(page, groups) == page


@pytest.mark.parametrize("part", ["bytes", "size", FAR])
def test_what_was_not_measured_stays(part: str) -> None:
    whole = [group(title, number) for number, title in enumerate(TITLES)]
    page = written(PAGE.read_text(), whole)
    again = [group(title, 100 + n) for n, title in enumerate(TITLES) if part in title]
    assert written(page, []) == page
    found = written(page, again)
    for number, title in enumerate(TITLES):
        new = 100 + number if part in title else number
        assert found.count(f"7,{new:03d}") == 1
        assert found.count(f"7,{number + 100 - (new - number):03d}") == 0
