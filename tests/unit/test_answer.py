"""Answers: how they go on from what was said somewhere else."""

import pytest

from giaann_p2p.errors import PromptError, UsageError
from giaann_p2p.model.activation import Batch
from giaann_p2p.model.answer import Continuation
from giaann_p2p.model.manner import Beam, Manner
from giaann_p2p.model.parse import Parser
from giaann_p2p.model.rows import DeltaRows, Neuron, run
from giaann_p2p.model.said import Token
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import text_sentences
from tests.helpers import DATA

MANNERS = [
    Manner(max_tokens=30),
    Manner(max_tokens=12, timing="none"),
    Manner(max_tokens=8, beam=Beam(width=2, depth=2)),
]
PROMPTS = [line for line in (DATA / "wiki.txt").read_text().splitlines() if len(line) > 80][:6]


class Teller:
    """Asks a text's rows for answers."""

    def __init__(self, rows: DeltaRows, parser: Parser, spec: ModelSpec) -> None:
        self.rows, self._parser, self._spec = rows, parser, spec

    def begun(self, prompt: str, manner: Manner, said: list[Neuron]) -> Continuation:
        """Return an answer that goes on from what was said."""
        found = Continuation(prompt, Batch(self._spec), manner)
        sentences = self._parser.parse_prompt(list(text_sentences(prompt, 10_000)))
        run(found.begin(sentences, said), self.rows)
        return found

    def rest(self, prompt: str, manner: Manner, said: list[Neuron]) -> tuple[list[Token], str]:
        """Return the tokens to come, and why there are no more."""
        found = self.begun(prompt, manner, said)
        tokens = list(iter(lambda: run(found.next(), self.rows), None))
        assert found.stopped is not None
        return tokens, found.stopped


@pytest.fixture(scope="module")
def teller(wiki_delta: object, parser: Parser, spec: ModelSpec) -> Teller:
    return Teller(DeltaRows(wiki_delta), parser, spec)  # type: ignore[arg-type]


@pytest.mark.parametrize("manner", MANNERS, ids=repr)
@pytest.mark.parametrize("line", PROMPTS, ids=lambda line: line[:20])
def test_it_goes_on_from_any_token_as_if_it_had_said_the_others(
    teller: Teller, line: str, manner: Manner
) -> None:
    prompt = " ".join(line.split()[:9])
    whole, why = teller.rest(prompt, manner, [])
    assert whole
    for many in range(len(whole) + 1):
        said = [token.name.neuron for token in whole[:many]]
        assert teller.rest(prompt, manner, said) == (whole[many:], why)


def test_what_nobody_knows_is_not_gone_on_from(teller: Teller) -> None:
    with pytest.raises(PromptError, match="never learned"):
        teller.rest("Anarchism is a political philosophy", Manner(), [Neuron(1, 2)])


@pytest.mark.parametrize("wrong", [{"max_tokens": 0}, {"max_tokens": 1 << 17}, {"timing": "late"}])
def test_a_manner_that_there_is_not(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Manner(**wrong)  # type: ignore[arg-type]
