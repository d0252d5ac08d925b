"""Read-outs choose as the plain version does, on random memories and random tokens read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.model.rows import DeltaRows, run
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.basis import Basis
from giaann_p2p.model.subwords.evidence import CountedRows, Evidence, Place, needed
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.lif import TEST, TRAIN, Lif
from giaann_p2p.model.subwords.likelihood import log_probability
from giaann_p2p.model.subwords.mix import place_of
from tests.helpers_subwords import (
    RECOMMENDED,
    REFERENCE,
    batch_of,
    chosen,
    random_positions,
    random_sequences,
    remembered,
    tokens,
)
from tests.helpers_subwords import place_of as place
from tests.plain import subwords as plain
from tests.plain.subwords import Neuron, Position

BASES = {"recall": Basis.RECALL, "own": Basis.OWN, "any": Basis.ANY, "none": Basis.NONE}
unknown = st.lists(st.booleans(), min_size=14, max_size=14)


def places(read: list[Neuron | int]) -> list[Place]:
    return [place(one) if isinstance(one, Neuron) else Place(one, None) for one in read]


@given(random_sequences, random_positions(), unknown, st.data())
def test_mix_chooses_the_same(
    corpus: list[list[Position]],
    extra: list[Position],
    hidden: list[bool],
    data: st.DataObject,
) -> None:
    sequence = data.draw(st.sampled_from([*corpus, extra]))
    read: list[Neuron | int] = [
        one.neuron.token if hide else one.neuron
        for one, hide in zip(reversed(sequence), hidden, strict=False)
    ]
    memory = remembered(corpus, RECOMMENDED)
    wanted = plain.mix(memory, read)
    evidence = Evidence(CountedRows(RECOMMENDED))
    rows = DeltaRows(learn_tokens(batch_of(corpus), RECOMMENDED))
    found = chosen(evidence, places(read), rows)
    assert (found is None) == (wanted is None)
    if found is None or wanted is None:
        assert not corpus
        return
    assert (found.candidates, found.basis) == (wanted.candidates, BASES[wanted.basis])
    assert found.log_odds == pytest.approx(wanted.score, abs=1e-11)
    assert 0 < found.probability <= 1
    # Scores that differ by rounding only are ties here.
    assert found.token <= wanted.token or found.log_odds > wanted.score - 1e-11
    named = plain.neuron_of(memory, found.token, read)
    assert place_of(evidence, found.token, places(read)) == (named and place(named))


@given(random_sequences, random_positions(), unknown, tokens, st.data())
def test_probabilities_are_the_same(
    corpus: list[list[Position]],
    extra: list[Position],
    hidden: list[bool],
    token: int,
    data: st.DataObject,
) -> None:
    sequence = data.draw(st.sampled_from([*corpus, extra]))
    read: list[Neuron | int] = [
        one.neuron.token if hide else one.neuron
        for one, hide in zip(reversed(sequence), hidden, strict=False)
    ]
    evidence = Evidence(CountedRows(RECOMMENDED))
    last, rows = places(read), DeltaRows(learn_tokens(batch_of(corpus), RECOMMENDED))
    run(evidence.need(needed(evidence, last)), rows)
    found = log_probability(evidence, last, token)
    wanted = plain.log_probability(remembered(corpus, RECOMMENDED), read, token)
    assert found == pytest.approx(wanted, abs=1e-9)


@given(
    random_sequences, random_positions(), st.booleans(), st.sampled_from([REFERENCE, RECOMMENDED])
)
def test_lif_chooses_the_same(
    corpus: list[list[Position]], read: list[Position], graded: bool, spec: ModelSpec
) -> None:
    memory, neurons = remembered(corpus, spec), [position.neuron for position in read]
    rows = DeltaRows(learn_tokens(batch_of(corpus), spec))
    evidence = Evidence(CountedRows(spec))
    lif = Lif(evidence, TEST if graded else TRAIN)
    seen = list(map(place, neurons))
    for end in range(1, len(seen) + 1):
        run(evidence.need(lif.needed(seen[:end])), rows)
    found, wanted = lif.choose(seen), plain.lif(memory, neurons, graded)
    if not graded:  # equal gains add up exactly, so that ties are ties in both
        assert (found and found.place) == (wanted and place(wanted[0]))
    if found is not None and wanted is not None:
        assert found.score == pytest.approx(wanted[1], abs=1e-12)


@given(tokens)
def test_a_brain_that_learned_anything_always_has_an_answer(token: int) -> None:
    sequence = [Position(Neuron(2223, plain.PRIME), 0), Position(Neuron(2223, 11), 0)]
    rows = DeltaRows(learn_tokens(batch_of([sequence]), RECOMMENDED))
    found = chosen(Evidence(CountedRows(RECOMMENDED)), [Place(token, None)], rows)
    assert found is not None
    assert found.token == 11
    assert found.basis is (Basis.ANY if token == 2223 else Basis.NONE)
