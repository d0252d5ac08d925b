"""Prompts that wait are parsed together, and fail alone."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from giaann_p2p.errors import PromptError
from giaann_p2p.model.parse import Parser, PromptSentence
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import Sentence
from giaann_p2p.net import clock
from giaann_p2p.node.reading import prompt_parser
from giaann_p2p.node.reading.prompt_parser import PromptParser
from tests.unit.node.helpers_prompts import profile_with


class Counting(Parser):
    """Notes how many sentences it parses together; the sentence "bad" cannot be parsed."""

    def __init__(self) -> None:
        self.counts = list[int]()

    def parse_prompt(self, sentences: Sequence[Sentence]) -> list[PromptSentence]:
        self.counts.append(len(sentences))
        if any(one.text == "bad" for one in sentences):
            raise PromptError("it is bad")
        return [PromptSentence(one.text, [], []) for one in sentences]


def parsed(counting: Counting, spec: ModelSpec, prompts: list[str]) -> list[object]:
    async def main() -> list[object]:
        parser = PromptParser(profile_with(counting, spec))
        asked = [parser.parsed(prompt) for prompt in prompts]
        found = await asyncio.gather(*asked, return_exceptions=True)
        await parser.close()
        return [[s.text for s in one] if isinstance(one, list) else str(one) for one in found]

    return clock.run(main())


def test_all_that_wait_are_parsed_together(spec: ModelSpec) -> None:
    counting = Counting()
    found = parsed(counting, spec, ["A bee. A hill.", "A cow.", "A fox."])
    assert found == [["A bee.", "A hill."], ["A cow."], ["A fox."]]
    assert counting.counts == [4]


def test_one_that_cannot_be_parsed_fails_alone(spec: ModelSpec) -> None:
    counting = Counting()
    found = parsed(counting, spec, ["A bee.", "bad", "A fox.", "bad"])
    assert found == [["A bee."], "it is bad", ["A fox."], "it is bad"]
    assert counting.counts == [4, 1, 1, 1, 1]


def test_a_bound_on_what_is_parsed_together(
    spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_parser, "_MOST_CHARS", 12)
    counting = Counting()
    parsed(counting, spec, ["A bee.", "A cow.", "A fox that is longer."])
    assert counting.counts == [2, 1]


def test_what_nobody_waits_for_any_more_is_not_parsed(spec: ModelSpec) -> None:
    counting = Counting()

    async def main() -> None:
        parser, loop = PromptParser(profile_with(counting, spec)), asyncio.get_running_loop()
        asked = [loop.create_task(parser.parsed(prompt)) for prompt in ("A bee.", "A cow.")]
        await asyncio.sleep(0)  # both wait now
        asked[0].cancel()
        assert [one.text for one in await asked[1]] == ["A cow."]
        await parser.close()

    clock.run(main())
    assert counting.counts == [1]


def test_a_prompt_is_parsed_after_one_for_which_no_thread_could_begin(
    spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, submit, fails = Counting(), ThreadPoolExecutor.submit, [True]

    def failing(*told: Any) -> Any:  # noqa: ANN401  (what is passed on)
        if fails.pop() if fails else False:
            raise RuntimeError("can't start new thread")
        return submit(*told)

    async def main() -> None:
        parser = PromptParser(profile_with(counting, spec))
        monkeypatch.setattr(ThreadPoolExecutor, "submit", failing)
        with pytest.raises(RuntimeError, match="can't start"):
            await parser.parsed("A bee.")
        assert [one.text for one in await parser.parsed("A cow.")] == ["A cow."]
        await parser.close()
        with pytest.raises(RuntimeError, match="closed"):
            await parser.parsed("A fox.")

    asyncio.run(main())
