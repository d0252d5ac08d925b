"""Stop texts: no answer contains one, wherever it would begin, and whoever continues the answer."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from giaann_p2p.cli.main import app
from giaann_p2p.gateway.brain_backend import BrainBackend
from giaann_p2p.model.manner import Manner, Sampling
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.rows import DeltaRows, Rows, run
from giaann_p2p.model.said import AnyToken
from giaann_p2p.model.subwords.answer import TokenContinuation
from giaann_p2p.solo.brain import Brain
from tests.helpers_subwords import RECOMMENDED

TEXT = (
    "The keeper saw a tall animal named 🦒 today and the small child was happy about it all day"
    " long."
)
PROMPT = "The keeper saw a tall animal named"
WHOLE = TEXT.removeprefix(PROMPT)


@pytest.fixture(scope="module")
def brain() -> Brain:
    brain = Brain(RECOMMENDED, device="cpu")
    brain.train(TEXT)
    return brain


def text(brain: Brain, *stop: str, prompt: str = PROMPT) -> str:
    """Return an answer that ends before each of some texts."""
    found = brain.generate(prompt, max_tokens=40, sampling=Sampling(stop=stop))
    assert found.stopped == "end"
    return found.text


def test_the_first_token_is_not_said_if_a_stop_begins_with_it(brain: Brain) -> None:
    assert text(brain) == WHOLE
    prompt = "The keeper saw a tall"
    assert text(brain, " animal", prompt=prompt) == ""
    assert text(brain, "animal", prompt=prompt) == ""
    assert text(brain, "mal", prompt=prompt) == ""
    assert text(brain, " animal named", prompt=prompt) == " animal"


def test_characters_of_several_tokens_can_stop_an_answer(brain: Brain) -> None:
    assert text(brain, "🦒") == " "
    assert text(brain, " 🦒") == " "
    assert text(brain, "🦒 to") == " 🦒"
    assert text(brain, "\ufffd") == WHOLE


def test_the_space_that_the_prompt_ends_with_is_no_part_of_the_answer(brain: Brain) -> None:
    prompt = "The keeper saw a tall "
    whole = text(brain, prompt=prompt)
    assert whole.startswith("animal named")
    assert text(brain, " animal", prompt=prompt) == whole
    assert text(brain, "animal", prompt=prompt) == ""


def test_no_part_of_an_answer_that_is_a_stop_is_in_it(brain: Brain) -> None:
    for length in (1, 2, 7, 30):
        for at in range(len(WHOLE) - length):
            stop = WHOLE[at : at + length]
            found = text(brain, "never said", stop, "Never said either")
            assert WHOLE.startswith(found)
            assert stop not in found
            assert len(found) < WHOLE.index(stop) + length


class Told:
    """An answer, token by token, from the rows of what was learned."""

    def __init__(self, *stop: str, tokens: int = 40) -> None:
        profile = profile_of(RECOMMENDED)
        self.rows: Rows = DeltaRows(profile.learn(list(profile.texts([TEXT.encode()], ""))).delta)
        self.manner = Manner(max_tokens=tokens, sampling=Sampling(stop=stop))
        self._profile = profile

    def begun(self, said: list[AnyToken]) -> TokenContinuation:
        """Return an answer that goes on from these tokens."""
        found = self._profile.minds().continuation(PROMPT, self.manner)
        (parsed,) = self._profile.parsed([PROMPT])
        run(found.begin(parsed, [token.name.neuron for token in said]), self.rows)
        return found

    def rest(self, said: list[AnyToken]) -> list[AnyToken]:
        """Return the tokens that follow these ones."""
        going_on = self.begun(said)
        return list(iter(lambda: run(going_on.next(), self.rows), None))


@pytest.mark.parametrize("stop", ["🦒", "y long", "🦒 today and the"])
def test_an_answer_ends_there_too_if_another_peer_continues_it(stop: str) -> None:
    told = Told(stop)
    whole = told.rest([])
    for count in range(len(whole) + 1):
        rest = told.rest(whole[:count])
        assert [token.word for token in rest] == [token.word for token in whole[count:]]


def test_only_the_end_of_an_answer_is_searched() -> None:
    told = Told("never", "said")
    going_on = told.begun([])
    while run(going_on.next(), told.rows) is not None:
        assert len(going_on._tail) <= 4
    assert going_on._tail == WHOLE[-4:]
    assert Told().begun(told.rest([]))._tail == ""


def test_a_gateway_ends_an_answer_at_once(brain: Brain) -> None:
    async def play(stop: str) -> tuple[str, str, bool]:
        backend = BrainBackend(brain, "zoo", training=False)
        manner = Manner(sampling=Sampling(stop=(stop,)))
        try:
            async with backend.answering("The keeper saw a tall", manner) as answer:
                done = await answer.all()
                return done.text, done.stopped, answer.begun is not None
        finally:
            await backend.close()

    assert asyncio.run(play(" animal")) == ("", "end", True)
    assert asyncio.run(play(" named")) == (" animal", "end", True)


@pytest.mark.parametrize("more", [[], ["--stream"], ["--json"]], ids=str)
def test_the_command_says_that_a_stop_ended_the_answer_at_once(
    tmp_path: Path, more: list[str]
) -> None:
    file, db, runner = tmp_path / "zoo.txt", str(tmp_path / "db"), CliRunner()
    file.write_text(TEXT)
    learn = ["solo", "train", str(file), "--db", db, "--profile", "subwords"]
    assert runner.invoke(app, learn).exit_code == 0
    ask = ["solo", "prompt", "The keeper saw a tall", "--db", db, *more]
    found = runner.invoke(app, [*ask, "--stop", "nimal"])
    assert found.exit_code == 3
    assert found.stderr.strip() == "giaann: the answer is empty: a stop text ended it at once"
    if more == ["--json"]:
        assert json.loads(found.stdout)["text"] == ""
    assert runner.invoke(app, [*ask, "--stop", "named"]).exit_code == 0
