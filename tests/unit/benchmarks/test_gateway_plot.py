"""The picture of what a gateway says and takes while many streams go on."""

from pathlib import Path

from tests.benchmarks.gateway import each_second
from tests.benchmarks.gateway_plot import _averaged, draw_streams


def test_tokens_and_memory_are_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "gateway.svg"
    draw_streams(picture, [500, 700, 600], [200.0, 201.0, 202.0], 650.0, 200)
    told = picture.read_text()
    for words in ("200 streams over HTTP", "Python client, mean", "the gateway's memory"):
        assert words in told


def test_tokens_are_averaged_over_some_seconds() -> None:
    assert _averaged([5, 15, 10, 10, 10, 25]) == [5, 10, 10, 10, 10, 14]


def test_the_tokens_of_each_second_are_what_was_said_meanwhile() -> None:
    assert each_second([0, 40, 40, 120]) == [40, 0, 80]
