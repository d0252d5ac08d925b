"""Makes specs of the profile "subwords", and reads their parameters."""

from giaann_p2p.errors import SpecError
from giaann_p2p.model.spec import EN_CORE_WEB_SM_3_8_0, ModelSpec, Subwords
from giaann_p2p.model.subwords.tokeniser import O200K

DISTANCES = 5
"""The greatest distance in tokens at which a feature segment connects two tokens; there is one
segment for each distance."""
SEED_TOKENS, MAX_TOKENS = 8, 160
REFERENCE_COLUMN_SEGMENTS = 4
"""The number of column segments of the public reference, for comparison with it."""


def subword_spec(
    *,
    seed_tokens: int = SEED_TOKENS,
    max_tokens: int = MAX_TOKENS,
    column_segments: int = 0,
    any_column: bool = True,
    pipeline: str = EN_CORE_WEB_SM_3_8_0,
    tokeniser: str = O200K,
) -> ModelSpec:
    """Return a spec; without arguments, the recommended one.

    `column_segments`: connections by distance in columns multiply the work of learning, and the
    read-out `mix` does not use them.
    """
    return ModelSpec(
        seed_tokens=seed_tokens,
        column_segments=column_segments,
        feature_segments=DISTANCES,
        branches=1,
        max_tokens=max_tokens,
        pipeline=pipeline,
        lexicon="",
        subwords=Subwords(tokeniser=tokeniser, any_column=any_column),
    )


def reference_spec() -> ModelSpec:
    """Return the spec of the public reference."""
    return subword_spec(column_segments=REFERENCE_COLUMN_SEGMENTS, any_column=False)


def of_subwords(spec: ModelSpec) -> Subwords:
    """Return the parameters of this profile; SpecError for a spec of another one."""
    if not isinstance(spec.subwords, Subwords):
        raise SpecError(f"this needs a spec of the profile subwords, not {spec.profile}")
    return spec.subwords


def segment_of(spec: ModelSpec, distance: int) -> int:
    """Return the segment for a distance in tokens, from 1 to DISTANCES; the last is the nearest."""
    return spec.segments - distance
