"""A text goes on in the size of chunks in which it was begun, and a new one in the present size."""

import pytest

from giaann_p2p.client.begun import Begun, size_to_go_on

NO, PERHAPS, YES = Begun.NO, Begun.PERHAPS, Begun.YES


@pytest.mark.parametrize(
    ("begun", "size"),
    [
        ((NO, NO, NO), 256),
        ((NO, PERHAPS, NO), 128),
        ((PERHAPS, NO, YES), 256),
        ((NO, YES, YES), 128),
        ((PERHAPS, PERHAPS, NO), 64),
    ],
)
def test_a_text_goes_on_in_its_first_size(begun: tuple[Begun, ...], size: int) -> None:
    sizes = (64, 128, 256)
    assert size_to_go_on(sizes, dict(zip(sizes, begun, strict=True))) == size


def test_the_only_size_is_not_asked_for() -> None:
    assert size_to_go_on((64,), {}) == 64
