"""The model that a new brain or a new swarm has, unless another one is asked for.

It reads subwords: such a model always has an answer, says how probable it is, and predicts text
that it has not learned. One that reads words recites better, and takes three times the connections.
"""

from giaann_p2p.model.spec import ModelSpec

WORDS, SUBWORDS = "words", "subwords"
USUAL_PROFILE = SUBWORDS


def new_spec(profile: str | None = None, seed_tokens: int | None = None) -> ModelSpec:
    """Return the spec of a new model; what is None is as usual."""
    from giaann_p2p.model.subwords.spec import subword_spec  # imports numpy, and commands are quick

    make = ModelSpec if (profile or USUAL_PROFILE) == WORDS else subword_spec
    return make() if seed_tokens is None else make(seed_tokens=seed_tokens)
