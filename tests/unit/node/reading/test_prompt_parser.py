"""Prompts that wait are parsed together, and fail alone."""

import asyncio
from collections.abc import Sequence

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
        for prompt in prompts[:-1]:
            parser._waiting.append(prompt_parser._Waiting(prompt))
        waiting = [*parser._waiting]
        last = await asyncio.gather(parser.parsed(prompts[-1]), return_exceptions=True)
        await parser.close()
        return [[one.text for one in w.found] for w in waiting if isinstance(w.found, list)] + last

    return clock.run(main())


def test_all_that_wait_are_parsed_together(spec: ModelSpec) -> None:
    counting = Counting()
    found = parsed(counting, spec, ["A bee. A hill.", "A cow.", "A fox."])
    assert found[:2] == [["A bee.", "A hill."], ["A cow."]]
    assert counting.counts == [4]


def test_one_that_cannot_be_parsed_fails_alone(spec: ModelSpec) -> None:
    counting = Counting()
    *others, last = parsed(counting, spec, ["A bee.", "bad", "A fox.", "bad"])
    assert others == [["A bee."], ["A fox."]]
    assert isinstance(last, PromptError)
    assert counting.counts == [4, 1, 1, 1, 1]


def test_a_bound_on_what_is_parsed_together(
    spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_parser, "_MOST_CHARS", 12)
    counting = Counting()
    parsed(counting, spec, ["A bee.", "A cow.", "A fox that is longer."])
    assert counting.counts == [2, 1]
