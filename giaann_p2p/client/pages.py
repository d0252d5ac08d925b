"""The chunks of a text, read slightly ahead of the workers and held until they are learned.

The number of chunks and characters held is bounded, however long the text is. Each chunk is read in
a thread, because reading one takes milliseconds and would block the event loop.
"""

import asyncio
from collections.abc import Sequence

from pyroaring import BitMap

from giaann_p2p.model.parse import chunks
from giaann_p2p.model.profile import AnyProfile
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.model.text import Sentence
from giaann_p2p.solo.corpus import Corpus

_MOST_CHARACTERS = 1 << 26
"""Number of characters held at which reading pauses."""
_NOTHING: list[Sentence] = []


class Pages:
    """A bounded buffer of a text's chunks, between the reading and the learning of the text."""

    def __init__(
        self,
        corpus: Corpus,
        profile: AnyProfile,
        known: BitMap,
        most: int,
        size: int = CHUNK,
    ) -> None:
        """Hold `most` chunks at most, of `size` sentences each.

        `known` chunks need no learning, so they are not held.
        """
        self.read = 0
        """Number of chunks read so far, known ones included."""
        self.ended = False
        """Whether the text has been read to its end."""
        self._known, self._most = known, most
        self._chunks = chunks(profile.texts(corpus.blocks(), corpus.name), size)
        self._held: dict[int, list[Sentence]] = {}
        self._characters = 0
        self._room = asyncio.Event()
        self._room.set()

    def __repr__(self) -> str:
        return f"<Pages: {self.read:,} chunks read, {len(self._held)} held>"

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, chunk: int) -> bool:
        return chunk in self._held

    async def next(self) -> int | None:
        """Wait for room, read the next chunk and return its number; None at the end of the text."""
        await self._room.wait()
        found = await asyncio.to_thread(next, self._chunks, None)
        if found is None:
            self.ended = True
            return None
        number, self.read = self.read, self.read + 1
        if number not in self._known:
            self._held[number] = found
            self._characters += _length(found)
            self._mind()
        return number

    def texts(self, chunk: int) -> list[str]:
        """Return the sentences of a chunk that is held."""
        return [sentence.text for sentence in self._held[chunk]]

    def forget(self, chunk: int) -> Sequence[Sentence]:
        """Drop a chunk and return its sentences; none if it is not held."""
        found = self._held.pop(chunk, _NOTHING)
        self._characters -= _length(found)
        self._mind()
        return found

    def _mind(self) -> None:
        """Let reading go on, or pause it, depending on whether the buffer has room."""
        full = len(self._held) >= self._most or self._characters >= _MOST_CHARACTERS
        if full:
            self._room.clear()
        else:
            self._room.set()


def _length(chunk: Sequence[Sentence]) -> int:
    return sum(len(sentence.text) for sentence in chunk)
