"""Comparing sets of chunks with another peer's: the question, its answer, and the answer's meaning.

Two owners have equal sets most of the time, so a digest of each is compared first. While a swarm
learns, the sets differ in few jobs of perhaps thousands. So a large set that differs is not sent at
once. The peer that asks sends the digests of its own set's parts with its next questions, until the
sets are equal again, and only the parts that differ are sent back. Sets that do not fit into an
answer are requested again at once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

import numpy as np

from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import MOST_JOBS, Applied, differing, digest_of
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    MANY_JOBS,
    MOST_BYTES,
    MOST_IN_PARTS,
    Compare,
    Compared,
)
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed

Sets = Mapping[int, Applied]
"""Sets of chunks by shard."""
_EQUAL, _LATER = -1, -2
_MOST_ANSWERED = MOST_BYTES // 2
"""Maximum size of the sets in one answer, in bytes; one set alone may be larger."""
_STATES = {state.value: state for state in ReplicaState}
_NOTHING = Applied()
_MOST_JOINED = 16 * MOST_JOBS
"""Maximum number of jobs in the sets that are put together from the parts in one answer; further
sets wait for the next answer. It bounds the time that reading an answer takes to about 0.1 s."""


def question_of(mine: Sets, shards: int, by_parts: Iterable[int]) -> Compare:
    """Return a question that compares sets of chunks; `shards` is the swarm's number of shards.

    `by_parts`: the shards whose sets are compared by parts, the most urgent ones first.
    """
    marks = [chunks.digest for chunks in mine.values()]
    sets = {mine[shard].digest: mine[shard] for shard in by_parts if shard in mine}
    parts = [chunks.parts for chunks in islice(sets.values(), MOST_IN_PARTS)]
    return Compare(packed(np.array(list(mine), np.uint16), shards), marks, parts)


def next_by_parts(mine: Sets, words: Mapping[int, PeerReport]) -> list[int]:
    """Return the shards to compare by parts next: an answer shows that their large sets differ."""
    return [
        shard
        for shard, word in words.items()
        if word.chunks is not mine[shard]
        and word.state is not ReplicaState.ABSENT
        and max(mine[shard].jobs, word.chunks.jobs) > MANY_JOBS
    ]


def answer_to(
    question: Compare,
    shards: Sequence[int],
    held: Sets,
    state_of: Callable[[int], ReplicaState],
) -> Compared:
    """Return the answer to a question about some shards, given the sets that are held here."""
    told = _Telling(question)
    states, which = list[str](), list[int]()
    for shard, mark in zip(shards, question.marks, strict=True):
        mine = held.get(shard)
        states.append((ReplicaState.ABSENT if mine is None else state_of(shard)).letter)
        which.append(_EQUAL if mine is None or mine.digest == mark else told.of(mine, mark))
    parts = told.parts if any(told.parts) else []
    return Compared("".join(states).encode(), which, told.sets, parts)


class _Telling:
    """Collects the sets of an answer: whole sets, or only the parts of a set that differ."""

    def __init__(self, question: Compare) -> None:
        self.sets, self.parts = list[bytes](), list[bytes]()
        self._whole = question.parts is None
        self._bases = {digest_of(parts): parts for parts in question.parts or ()}
        self._order = dict[tuple[bytes, bytes], int]()
        self._jobs = self._size = 0

    def of(self, mine: Applied, mark: bytes) -> int:
        """Return the index of a set in the answer; _LATER if it has to wait.

        A large set waits if the question lacks the digests of the parts of the asking peer's set,
        whose digest is `mark`. Any set waits if it does not fit; the first one always fits.
        """
        base = self._bases.get(mark)
        key = mine.digest, mark if base else b""
        if key in self._order:
            return self._order[key]
        if not self._whole and base is None and mine.jobs > MANY_JOBS:
            return _LATER
        some = bytes(differing(base, mine.parts)) if base else b""
        chunks = mine.of_parts(some) if base else mine
        return self._add(key, chunks, some)

    def _add(self, key: tuple[bytes, bytes], chunks: Applied, parts: bytes) -> int:
        if self._is_full(chunks.jobs, self._size):
            return _LATER
        data = chunks.to_bytes()
        if self._is_full(chunks.jobs, self._size + len(data)):
            return _LATER
        self._jobs, self._size = self._jobs + chunks.jobs, self._size + len(data)
        self._order[key] = len(self.sets)
        self.sets.append(data)
        self.parts.append(parts)
        return self._order[key]

    def _is_full(self, jobs: int, size: int) -> bool:
        over = self._jobs + jobs > MOST_JOBS or size > _MOST_ANSWERED
        return over and bool(self.sets) and not self._whole


def about(job: bytes, held: Sets) -> Sets:
    """Return the sets reduced to the chunks of one job."""
    alike = {id(chunks): chunks.of_job(job) for chunks in held.values()}
    return {shard: alike[id(chunks)] for shard, chunks in held.items()}


def words_of(
    answer: Message | None,
    shards: list[int],
    mine: Sets,
    asked: float,
    parts: Sequence[bytes] | None = None,
    before: Iterable[Applied] = (),
) -> dict[int, PeerReport]:
    """Parse the answer to a comparison into reports by shard, as of the time `asked`.

    `parts`: the digests of parts in the question. Shards whose sets must wait for the next answer
    are left out; if the question has digests, the answer must report on at least one shard.
    `before`: sets that the same peer sent earlier, which are like these.

    Raises MessageError or DamagedError if the answer is missing or invalid.
    """
    if not isinstance(answer, Compared):
        raise MessageError("no valid answer to a comparison of chunks")
    states = answer.states.decode("latin-1")
    if not len(states) == len(answer.which) == len(shards) or not _STATES.keys() >= {*states}:
        raise MessageError("an answer to a comparison has no valid state for each shard")
    least = _EQUAL if parts is None else _LATER
    if len(answer.sets) > len(shards):
        raise MessageError("an answer to a comparison has more sets than shards were asked for")
    if answer.which and not least <= min(answer.which) <= max(answer.which) < len(answer.sets):
        raise MessageError("an answer to a comparison names a set that it does not have")
    told = _Told(answer, [*mine.values(), *before])
    words = {}
    for shard, letter, at in zip(shards, states, answer.which, strict=True):
        state = _STATES[letter]
        same = _NOTHING if state is ReplicaState.ABSENT else mine[shard]
        chunks = same if at == _EQUAL else told.of(at, mine[shard])
        if chunks is not None:
            words[shard] = PeerReport(state, chunks, asked)
    if parts and not words:
        raise MessageError("an answer to a comparison reports on no shard")
    return words


class _Told:
    """The sets of an answer: whole sets, or parts that replace those of this peer's own set."""

    def __init__(self, answer: Compared, known: Iterable[Applied]) -> None:
        self._parts = answer.parts or [b""] * len(answer.sets)
        if len(self._parts) != len(answer.sets):
            raise MessageError("an answer to a comparison must have a list of parts for each set")
        self._sets, jobs, like = list[Applied](), 0, _NOTHING
        if answer.sets:  # share memory with the largest set here: most shards have equal chunks
            like = max(known, key=len, default=like)
        for data, parts in zip(answer.sets, self._parts, strict=True):
            self._sets.append(one := Applied.received(data).sharing(like))
            like = max(like, one, key=len)
            jobs += one.jobs
            if jobs > MOST_JOBS:
                raise MessageError(f"a comparison's answer has over {MOST_JOBS:,} jobs in its sets")
            if parts and not all(job[0] in parts for job in self._sets[-1]):
                raise MessageError("an answer to a comparison has a job in the wrong part")
        self._joined = dict[tuple[int, int], Applied]()
        self._jobs = 0

    def of(self, at: int, mine: Applied) -> Applied | None:
        """Return a set, given this peer's own set; None if it comes in a later answer."""
        if at == _LATER or not self._parts[at]:
            return None if at == _LATER else self._sets[at]
        found = self._joined.get((at, id(mine)))
        if found is None and self._jobs <= _MOST_JOINED:
            found = mine.with_parts(self._parts[at], self._sets[at])
            self._joined[at, id(mine)] = found
            self._jobs += found.jobs
        return found
