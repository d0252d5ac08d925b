"""Several answers to one prompt: each with a seed of its own."""

import pytest

from giaann_p2p import Brain, Sampling, UsageError, subword_spec
from tests.helpers import DATA


def test_each_answer_is_that_of_its_seed() -> None:
    with Brain(subword_spec(), device="cpu") as brain:
        brain.train(DATA / "quick.txt")
        drawn = Sampling(temperature=3, seed=7)
        found = brain.generate_each("The government of", 3, max_tokens=6, sampling=drawn)
        for seed, answer in zip((7, 8, 9), found, strict=True):
            one = Sampling(temperature=3, seed=seed)
            assert answer == brain.generate("The government of", max_tokens=6, sampling=one)
        assert len({answer.text for answer in found}) > 1


def test_answers_that_would_be_the_same_are_refused() -> None:
    assert Sampling(seed=4).each(1) == [Sampling(seed=4)]
    for wrong in (lambda: Sampling().each(2), lambda: Sampling(temperature=1).each(0)):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError, match="1 to 100: 101"):
        Sampling(temperature=1).each(101)
