"""Chunks of a text, of which only so many are held."""

import asyncio

import pytest
from pyroaring import BitMap

from giaann_p2p.client import pages as module
from giaann_p2p.client.pages import Pages
from giaann_p2p.model.parse import chunks, max_chars
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import document_sentences
from giaann_p2p.solo.corpus import opened
from tests.unit.node.training.helpers_compute import written

SPEC = ModelSpec()
PROFILE = profile_of(SPEC)
TEXT = written(300)


async def all_of(pages: Pages) -> list[int]:
    """Read to the end, and forget each chunk at once; return their numbers."""
    found = []
    while (chunk := await pages.next()) is not None:
        found.append(chunk)
        if chunk in pages:
            pages.forget(chunk)
    return found


def test_chunks_are_those_of_solo() -> None:
    async def story() -> None:
        with opened(TEXT) as corpus:
            wanted = list(chunks(document_sentences(corpus.blocks(), corpus.name, max_chars(SPEC))))
            pages = Pages(corpus, PROFILE, BitMap(), 8)
            for number, chunk in enumerate(wanted):
                assert await pages.next() == number
                assert not pages.ended
                assert pages.texts(number) == [sentence.text for sentence in chunk]
            assert await pages.next() is None
            assert (pages.read, len(pages), pages.ended) == (5, 5, True)
            assert repr(pages) == "<Pages: 5 chunks read, 5 held>"
            assert pages.forget(2) == wanted[2]
            assert pages.forget(2) == []
            assert 2 not in pages

    asyncio.run(story())


def test_what_is_known_is_not_held() -> None:
    async def story() -> None:
        with opened(TEXT) as corpus:
            pages = Pages(corpus, PROFILE, BitMap([0, 1, 3]), 1)
            assert [await pages.next() for _ in range(3)] == [0, 1, 2]
            assert len(pages) == 1
            assert pages.forget(1) == []
            pages.forget(2)
            assert await all_of(pages) == [3, 4]

    asyncio.run(story())


@pytest.mark.parametrize("by_size", [True, False])
def test_it_reads_on_only_when_there_is_room(
    by_size: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_size:
        monkeypatch.setattr(module, "_MOST_CHARACTERS", 4000)

    async def story() -> None:
        with opened(TEXT) as corpus:
            pages = Pages(corpus, PROFILE, BitMap(), 99 if by_size else 2)
            held = []
            reading = asyncio.create_task(pages.next())
            while (await asyncio.wait({reading}, timeout=0.2))[0]:
                held.append(reading.result())
                reading = asyncio.create_task(pages.next())
            assert held == [0, 1]
            pages.forget(1)
            assert await asyncio.wait_for(reading, 20) == 2
            pages.forget(0)
            pages.forget(2)
            assert await all_of(pages) == [3, 4]

    asyncio.run(story())
