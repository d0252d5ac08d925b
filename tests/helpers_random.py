"""Random models, sequences and prompts: vocabularies so tiny that everything meets everything."""

from itertools import product

from hypothesis import strategies as st

from giaann_p2p.model.manner import Variant
from giaann_p2p.model.spec import ModelSpec
from tests.plain.sequence import Neuron, Position, Token

# "cook" and "of" are delimiters as features, but never as concepts; "the" and "red" never.
CONCEPTS = ["cat", "cook", "of"]
FEATURES = [None, "the", "red", "cook", "of", ",", "."]

specs = st.builds(
    ModelSpec,
    seed_tokens=st.integers(1, 14),
    branches=st.integers(1, 3),
)
variants = st.builds(Variant, graded_strengths=st.booleans(), graded_activations=st.booleans())
neurons = st.builds(Neuron, st.sampled_from(CONCEPTS), st.sampled_from(FEATURES))

_STAY = [None] * 3 * len(CONCEPTS)
_steps = st.sampled_from(list(product([*_STAY, *CONCEPTS], FEATURES)))
"""The concept of the next column, one time in four, and a feature.

They are drawn in one choice, because hypothesis takes longer for three than a test to use them.
"""


@st.composite
def positions(draw: st.DrawFn, most: int = 14) -> list[Position]:
    """Draw a sequence: columns follow one another, and one concept may lead several of them."""
    count = draw(st.integers(1, most))
    found = []
    column, concept = 0, draw(st.sampled_from(CONCEPTS))
    for _ in range(count):
        next_concept, feature = draw(_steps)
        if next_concept is not None:
            column, concept = column + 1, next_concept
        found.append(Position(Neuron(concept, feature), column))
    return found


sequences = st.lists(positions(), max_size=6)


@st.composite
def lessons(draw: st.DrawFn) -> tuple[list[list[Position]], list[Neuron]]:
    """Draw sequences to learn and a prompt: parts of them, and neurons that were never learned."""
    corpus = draw(st.lists(positions(), min_size=1, max_size=6))
    prompt: list[Neuron] = []
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.integers(0, 3)):
            learned = [position.neuron for position in draw(st.sampled_from(corpus))]
            first = draw(st.integers(0, len(learned) // 2))
            prompt += learned[first : draw(st.integers(first + 1, len(learned)))]
        else:
            prompt.append(draw(neurons))
    return corpus, prompt


_TEXTS = ["Cat", "cats", "cook", "the", "of", "and", ",", "is", ".", "-", "–", "Red"]
_TAGS = ["NOUN", "PROPN", "VERB", "PUNCT"]

tokens = st.builds(
    lambda text, tag: Token(text, text.removesuffix("s").title(), tag),
    st.sampled_from(_TEXTS),
    st.sampled_from(_TAGS),
)
