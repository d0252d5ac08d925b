"""Prediction on random knowledge: the fast minds think what the plain ones think."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.model import activation, lanes
from giaann_p2p.model.activation import Batch
from giaann_p2p.model.candidates import Candidates
from giaann_p2p.model.delta import EMPTY
from giaann_p2p.model.generate import Mind, Taken, look_ahead, next_token
from giaann_p2p.model.learn import learn
from giaann_p2p.model.manner import Beam, Timing, Variant
from giaann_p2p.model.manner import timings as timings_of
from giaann_p2p.model.rows import Answer, DeltaRows, Question, Rows, Steps, abreast, run
from giaann_p2p.model.rows import Neuron as Numbered
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory.columns import Columns
from giaann_p2p.store.memory.places import Places
from tests.helpers import Alternating, Shuffled, row_of
from tests.helpers_plain import (
    AnywhereMind,
    batch_of,
    expected,
    ids_of,
    listed,
    mind_of,
    name_of,
    positions_of,
    remembered,
    shape_of,
)
from tests.helpers_random import lessons, neurons, specs, variants
from tests.plain import predict
from tests.plain.learn import Memory
from tests.plain.sequence import Neuron, Position

Corpus = list[list[Position]]
Lesson = tuple[Corpus, list[Neuron]]

timings = pytest.mark.parametrize("timing", list(Timing))


def both(corpus: Corpus, spec: ModelSpec, mind_device: torch.device) -> tuple[Memory, Rows]:
    """Learn the same on both sides.

    Nothing depends on the order in which a row has its targets, nor on whether its holder numbers
    them: each row comes from another holder than the one before.
    """
    delta = learn(batch_of(corpus, spec), spec, mind_device)
    columns = Columns(Layout(shards=1), Places(spec.branches, spec.segments))
    columns.hold(0)
    columns.add(delta, np.zeros(1, np.uint16))
    rows = Alternating(Held(columns), Held(columns), Shuffled(DeltaRows(delta)))
    return remembered(corpus, shape_of(spec)), rows


class Held:
    """The rows of a store's columns."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def read(self, question: Question) -> Answer:
        """Return the rows asked for."""
        return [self._columns.row(neuron) for neuron in question.neurons]


def hear(mind: Mind, prompt: Sequence[Neuron], rows: Rows) -> None:
    for neuron in prompt:
        mind.hear(row_of(rows, name_of(neuron)))


def candidates_of(mind: Mind, anywhere: bool = False) -> Candidates:
    """Return the candidates of a mind of one timing."""
    (steps,) = mind.settled()
    return run(steps, DeltaRows(EMPTY)).candidates(anywhere)


def assert_agree(fast: Mind, plain: predict.Mind, prompt: Sequence[Neuron], rows: Rows) -> None:
    """After each token of a prompt both have the same candidates."""
    for neuron in prompt:
        predict.feed([plain], neuron)
        hear(fast, [neuron], rows)
        candidates = candidates_of(fast)
        assert listed(candidates) == expected(plain.candidates())
        best = candidates.ranked(len(candidates)).tolist()
        assert all(candidates.ranked(n).tolist() == best[:n] for n in range(1, len(best)))


@timings
@given(lesson=lessons(), spec=specs, variant=variants)
def test_candidates_are_the_same(
    mind_device: torch.device,
    timing: Timing,
    lesson: Lesson,
    spec: ModelSpec,
    variant: Variant,
) -> None:
    corpus, prompt = lesson
    memory, rows = both(corpus, spec, mind_device)
    plain = mind_of(memory, spec, timing.value, variant)
    fast = Mind(Batch(spec, mind_device), [timing], variant)
    for neuron in prompt:
        assert_agree(fast, plain, [neuron], rows)
        anywhere = AnywhereMind(**vars(plain))
        assert listed(candidates_of(fast, anywhere=True)) == expected(anywhere.candidates())
    fast.forget()
    assert_agree(fast, mind_of(memory, spec, timing.value, variant), prompt[::-1], rows)


@pytest.mark.parametrize("timing", ["auto", *Timing])
@given(lesson=lessons(), spec=specs, variant=variants)
def test_a_mind_expects_what_any_of_its_states_expects(
    mind_device: torch.device,
    timing: str,
    lesson: Lesson,
    spec: ModelSpec,
    variant: Variant,
) -> None:
    corpus, prompt = lesson
    rows = both(corpus, spec, mind_device)[1]
    mind = Mind(Batch(spec, mind_device), timings_of(str(timing)), variant)
    for neuron in prompt:
        hear(mind, [neuron], rows)
        states = [run(steps, rows) for steps in mind.settled()]
        expected = {one for state in states for one in state.candidates(anywhere=True).neurons()}
        some = expected | {Numbered(*ids_of(one)) for one in prompt}
        assert {one for one in some if run(mind.expects(one), rows)} == expected


@pytest.mark.slow
@pytest.mark.parametrize("timing", ["auto", *Timing])
@given(lesson=lessons(), spec=specs, variant=variants)
def test_generated_tokens_are_the_same(
    mind_device: torch.device,
    timing: str,
    lesson: Lesson,
    spec: ModelSpec,
    variant: Variant,
) -> None:
    corpus, prompt = lesson
    memory, rows = both(corpus, spec, mind_device)
    wanted = predict.generate(
        lambda one: mind_of(memory, spec, one, variant), prompt, limit=10, timing=str(timing)
    )
    names = predict.AUTO_TIMINGS if timing == "auto" else (timing,)
    mind = Mind(Batch(spec, mind_device), [Timing(name) for name in names], variant)
    hear(mind, prompt, rows)
    got: list[Taken] = []
    while len(got) < 10 and (token := run(next_token(mind), rows)) is not None:
        got.append(token)
    assert [(tuple(c.neuron), c.score, c.candidates, c.timing) for _, c in got] == [
        (ids_of(one.neuron), one.score, one.candidates_count, one.timing) for one in wanted
    ]
    assert [token.name for token in got] == [name_of(one.neuron) for one in wanted]
    assert len(mind) == len(prompt) + len(got)


@given(
    lesson=lessons(),
    spec=specs,
    minds=st.lists(
        st.tuples(st.sampled_from(["auto", *Timing]), variants, st.integers(1, 9)),
        min_size=2,
        max_size=6,
    ),
)
def test_minds_that_are_settled_together_say_what_each_says_alone(
    mind_device: torch.device,
    lesson: Lesson,
    spec: ModelSpec,
    minds: list[tuple[str, Variant, int]],
) -> None:
    corpus, prompt = lesson
    memory, rows = both(corpus, spec, mind_device)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(activation, "_LEAST_ROOM", 1)  # so lanes move often
        patch.setattr(lanes, "_LEAST_SLOTS", 1)
        batch, told = Batch(spec, mind_device), list[list[Taken]]()
        for _ in range(2):  # the second time in lanes that were used before
            told = run(abreast([answer(batch, one, prompt[: one[2]], rows) for one in minds]), rows)
    for (timing, variant, count), got in zip(minds, told, strict=True):
        wanted = predict.generate(
            lambda one, v=variant: mind_of(memory, spec, one, v),
            prompt[:count],
            limit=count,
            timing=str(timing),
        )
        assert [(tuple(c.neuron), c.score, c.candidates, c.timing) for _, c in got] == [
            (ids_of(one.neuron), one.score, one.candidates_count, one.timing) for one in wanted
        ]


def answer(
    batch: Batch,
    manner: tuple[str, Variant, int],
    prompt: Sequence[Neuron],
    rows: Rows,
) -> Steps[list[Taken]]:
    """Hear a prompt and say some tokens."""
    name, variant, limit = manner
    mind, got = Mind(batch, timings_of(str(name)), variant), list[Taken]()
    hear(mind, prompt, rows)
    while len(got) < limit and (token := (yield from next_token(mind))) is not None:
        got.append(token)
    return got


@pytest.mark.slow
@timings
@given(
    lesson=lessons(),
    spec=specs,
    variant=variants,
    width=st.integers(1, 4),
    depth=st.integers(1, 4),
)
def test_looking_ahead_chooses_the_same(
    mind_device: torch.device,
    timing: Timing,
    lesson: Lesson,
    spec: ModelSpec,
    variant: Variant,
    width: int,
    depth: int,
) -> None:
    corpus, prompt = lesson
    memory, rows = both(corpus, spec, mind_device)
    plain = mind_of(memory, spec, timing.value, variant)
    fast = Mind(Batch(spec, mind_device), [timing], variant)
    for neuron in prompt:
        predict.feed([plain], neuron)
    hear(fast, prompt, rows)
    wanted = predict.beam_choice(plain, width, depth)
    choice = run(look_ahead(fast, Beam(width=width, depth=depth)), rows)
    assert (choice and tuple(choice.neuron)) == (wanted and ids_of(wanted))
    assert len(fast) == len(prompt)


@pytest.mark.slow
@timings
@given(
    lesson=lessons(),
    spec=specs,
    variant=variants,
    deeds=st.lists(st.tuples(st.booleans(), st.integers(0, 9), neurons), max_size=25),
)
def test_copies_go_on_alone(
    mind_device: torch.device,
    timing: Timing,
    lesson: Lesson,
    spec: ModelSpec,
    variant: Variant,
    deeds: list[tuple[bool, int, Neuron]],
) -> None:
    corpus, prompt = lesson
    memory, rows = both(corpus, spec, mind_device)
    plain = mind_of(memory, spec, timing.value, variant)
    fast = Mind(Batch(spec, mind_device), [timing], variant)
    assert_agree(fast, plain, prompt, rows)
    minds = [(fast, plain)]
    for copies, which, neuron in deeds:
        fast, plain = minds[which % len(minds)]
        if copies:
            fast, plain = fast.copy(), plain.copy()
            minds.append((fast, plain))
        assert_agree(fast, plain, [neuron], rows)
    for fast, plain in minds:
        assert_agree(fast, plain, prompt[:1], rows)


@pytest.mark.slow
@timings
@pytest.mark.parametrize("graded", [False, True])
def test_all_of_wiki_gives_the_same_candidates(
    mind_device: torch.device,
    timing: Timing,
    graded: bool,
    wiki: Sequences,
    wiki_rows: DeltaRows,
    spec: ModelSpec,
) -> None:
    variant = Variant(graded_strengths=graded, graded_activations=graded)
    corpus = list(map(positions_of, wiki))
    memory = remembered(corpus, shape_of(spec))
    for positions in corpus[:: 4 if graded else 1]:
        prompt = [position.neuron for position in positions]
        plain = mind_of(memory, spec, timing.value, variant)
        assert_agree(Mind(Batch(spec, mind_device), [timing], variant), plain, prompt, wiki_rows)
