"""Settings fit together, or say which do not."""

import math

import msgspec
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.replication.settings import Settings

FIELDS = Settings.__struct_fields__


def test_the_usual_ones_fit() -> None:
    usual = Settings()
    assert usual.linger > usual.word_counts > 2 * usual.compare_every


@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({"word_counts": 10.0}, "word_counts"),
        ({"compare_every": 6.0}, "word_counts"),
        ({"linger": 12.0}, "linger"),
        ({"calm_every": 4.9}, "calm_every"),
        ({"calm_after": -1.0}, "calm_after"),
        ({"hurry_every": 0.0}, "hurry_every"),
        ({"hurry_every": 5.1}, "hurry_every"),
        ({"transfers": 0}, "transfers"),
        ({"under_way": 0}, "under_way"),
        ({"bandwidth": -1.0}, "bandwidth"),
        ({"call_timeout": 0.0}, "call_timeout"),
        ({"release_every": 0.0}, "release_every"),
        ({"patience": -1.0}, "patience"),
        *(({name: value}, name) for name in FIELDS for value in (math.nan, math.inf, -math.inf)),
    ],
)
def test_what_breaks_a_rule_is_named(changed: dict[str, float], broken: str) -> None:
    with pytest.raises(UsageError, match=broken):
        Settings(**changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed",
    [
        {"word_counts": 10.1},
        {"linger": 12.1},
        {"hurry_every": 5.0},
        {"transfers": 1},
        {"under_way": 1},
        {"bandwidth": 0.0},
    ],
)
def test_what_just_keeps_it_will_do(changed: dict[str, float]) -> None:
    assert msgspec.to_builtins(Settings(**changed)).items() >= changed.items()  # type: ignore[arg-type]
