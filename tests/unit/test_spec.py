"""The spec: its defaults, its rules, its one encoding, its digest."""

import copy

import msgspec
import pytest

from giaann_p2p.errors import SpecError
from giaann_p2p.model.spec import ModelSpec, Subwords
from giaann_p2p.model.subwords.spec import of_subwords, reference_spec, subword_spec

DEFAULT = (
    b'{"branches":2,"column_segments":4,"feature_segments":7,'
    b'"lexicon":"5619d54d82aa4ae7d437d3a2e5a15a7a","max_tokens":80,'
    b'"pipeline":"c58be44946bbb08fdabddc43910ce684","rules":1,"seed_tokens":12}'
)


def test_the_encoding_is_pinned() -> None:
    assert ModelSpec().to_bytes() == DEFAULT


def test_the_digest_is_pinned() -> None:
    pinned = "947677289f25fc4b59fb1ed5d0180f79ec46e3b3419e1ec0b3d80e381239f66f"
    assert ModelSpec().digest == pinned


@pytest.mark.parametrize(
    ("seed_tokens", "column_segments", "feature_segments"),
    [(1, 1, 2), (3, 1, 3), (4, 2, 3), (5, 2, 4), (12, 4, 7), (13, 4, 8), (14, 4, 8), (16, 5, 9)],
)
def test_the_segments_follow_from_the_seed(
    seed_tokens: int, column_segments: int, feature_segments: int
) -> None:
    spec = ModelSpec(seed_tokens=seed_tokens)
    assert (spec.column_segments, spec.feature_segments) == (column_segments, feature_segments)
    assert spec.segments == column_segments + feature_segments


def test_segments_may_be_given() -> None:
    spec = ModelSpec(column_segments=1, feature_segments=100)
    assert (spec.column_segments, spec.feature_segments, spec.segments) == (1, 100, 101)


def test_what_follows_and_what_is_given_make_no_difference() -> None:
    given = ModelSpec(seed_tokens=12, column_segments=4, feature_segments=7)
    assert given == ModelSpec()
    assert hash(given) == hash(ModelSpec())
    assert given.digest == ModelSpec().digest


@pytest.mark.parametrize(
    "changes",
    [
        {"seed_tokens": 13},
        {"column_segments": 5},
        {"feature_segments": 8},
        {"branches": 3},
        {"max_tokens": 81},
        {"pipeline": "0"},
        {"lexicon": "0"},
    ],
)
def test_every_parameter_changes_the_digest(changes: dict[str, int | str]) -> None:
    spec = ModelSpec(**changes)  # type: ignore[arg-type]
    assert spec.digest != ModelSpec().digest
    assert spec != ModelSpec()
    assert msgspec.json.decode(spec.to_bytes(), type=ModelSpec) == spec


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"rules": 2}, "rules must be 1"),
        ({"rules": 0}, "rules must be 1"),
        ({"seed_tokens": 0}, "seed_tokens must be 1 to 1000"),
        ({"seed_tokens": -3}, "seed_tokens must be 1 to 1000"),
        ({"seed_tokens": 1001, "max_tokens": 1002}, "seed_tokens must be 1 to 1000"),
        ({"column_segments": -1}, "column_segments must be 1 to 100"),
        ({"column_segments": 101}, "column_segments must be 1 to 100"),
        ({"feature_segments": 1}, "feature_segments must be 2 to 100"),
        ({"feature_segments": 101}, "feature_segments must be 2 to 100"),
        ({"branches": 0}, "branches must be 1 to 100"),
        ({"branches": 101}, "branches must be 1 to 100"),
        ({"max_tokens": 12}, "max_tokens must be more than seed_tokens and at most 1000"),
        ({"max_tokens": 1001}, "max_tokens must be more than seed_tokens and at most 1000"),
    ],
)
def test_a_broken_rule_is_named(changes: dict[str, int], rule: str) -> None:
    with pytest.raises(SpecError, match=f"^{rule}; it is -?[0-9]+$"):
        ModelSpec(**changes)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match=f"^{rule}; it is -?[0-9]+$"):
        msgspec.convert(changes, ModelSpec)


@pytest.mark.parametrize(
    "changes",
    [
        {"branches": 1},
        {"branches": 100},
        {"max_tokens": 13},
        {"max_tokens": 1000},
        {"feature_segments": 2},
        {"column_segments": 100},
        {"seed_tokens": 999, "max_tokens": 1000, "column_segments": 4, "feature_segments": 4},
    ],
)
def test_the_limits_themselves_are_allowed(changes: dict[str, int]) -> None:
    spec = ModelSpec(**changes)  # type: ignore[arg-type]
    assert msgspec.json.decode(spec.to_bytes(), type=ModelSpec) == spec


@pytest.mark.parametrize(
    ("data", "what"),
    [({"seed": 12}, "unknown field `seed`"), ({"seed_tokens": "12"}, r"`\$.seed_tokens`")],
)
def test_what_is_no_spec_is_refused(data: dict[str, object], what: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=what):
        msgspec.convert(data, ModelSpec)


def test_a_spec_is_frozen() -> None:
    with pytest.raises(AttributeError):
        ModelSpec().branches = 3  # type: ignore[misc]


def test_differences_are_named_with_both_values() -> None:
    other = ModelSpec(branches=3, pipeline="x")
    assert ModelSpec().differences(ModelSpec()) == []
    assert ModelSpec().differences(other) == [
        "branches: 2 and 3",
        "pipeline: c58be44946bbb08fdabddc43910ce684 and x",
    ]


def test_a_spec_of_subwords_has_an_encoding_of_its_own() -> None:
    spec = subword_spec()
    assert (spec.profile, ModelSpec().profile) == ("subwords", "words")
    assert (spec.column_segments, spec.feature_segments, spec.segments) == (0, 5, 5)
    assert msgspec.json.decode(spec.to_bytes(), type=ModelSpec) == spec
    assert copy.deepcopy((spec, ModelSpec())) == (spec, ModelSpec())
    assert len({spec, reference_spec(), ModelSpec()}) == 3
    assert len({spec.digest, reference_spec().digest, ModelSpec().digest}) == 3
    assert spec.differences(ModelSpec()) == ["profile: subwords and words"]
    assert spec.differences(subword_spec(column_segments=4)) == ["column_segments: 0 and 4"]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"column_segments": 101}, "column_segments must be 0 to 100"),
        ({"seed_tokens": 160}, "max_tokens must be more than seed_tokens and at most 1000"),
    ],
)
def test_a_broken_rule_of_subwords_is_named(changes: dict[str, int], rule: str) -> None:
    with pytest.raises(SpecError, match=f"^{rule}; it is [0-9]+$"):
        subword_spec(**changes)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match=r"^sentences must be 1 to 100; it is 0$"):
        Subwords(tokeniser="", sentences=0)
    with pytest.raises(SpecError, match="not words"):
        of_subwords(ModelSpec())
