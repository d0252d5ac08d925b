"""The default model of a new brain or a new swarm.

It reads subwords: such a model always has an answer, says how probable it is, and predicts text
that it has not learned. A model that reads words recites better, but takes three times the
connections.
"""

from giaann_p2p.errors import UsageError
from giaann_p2p.model.spec import ModelSpec

WORDS, SUBWORDS = "words", "subwords"
USUAL_PROFILE = SUBWORDS


def new_spec(
    profile: str | None = None,
    seed_tokens: int | None = None,
    column_segments: int | None = None,
) -> ModelSpec:
    """Return the spec of a new model; None means the default."""
    from giaann_p2p.model.subwords.spec import subword_spec  # imports numpy, which is slow

    profile = profile or USUAL_PROFILE
    check_column_segments(profile, column_segments)
    make, segments = ModelSpec if profile == WORDS else subword_spec, column_segments or 0
    if seed_tokens is None:
        return make(column_segments=segments)
    return make(seed_tokens=seed_tokens, column_segments=segments)


def check_column_segments(profile: str, column_segments: int | None) -> None:
    """Raise UsageError if column segments are given to a profile that derives their number."""
    if profile == WORDS and column_segments is not None:
        raise UsageError(
            "column segments are an option of the profile subwords; a model of words always has "
            "some, and their number follows from its seed tokens"
        )
