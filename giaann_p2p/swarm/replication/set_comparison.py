"""Comparing sets of chunks with another peer's: the question, its answer, and the answer's meaning.

Two owners have equal sets most of the time, so a digest of each is compared first. While a swarm
learns, the sets differ in few jobs of perhaps thousands. So a large set that differs is not sent at
once. The peer that asks sends the digests of its own set's parts with its next questions, until the
sets are equal again, and only the parts that differ are sent back.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

import numpy as np

from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import MOST_JOBS, Applied, differing, digest_of
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import MANY_JOBS, MOST_IN_PARTS, Compare, Compared
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed

Sets = Mapping[int, Applied]
"""Sets of chunks by shard."""
_EQUAL, _SEND_PARTS = -1, -2
_STATES = {state.value: state for state in ReplicaState}
_NOTHING = Applied()
_MOST_JOINED = 16 * MOST_JOBS
"""Maximum number of jobs in all sets that are put together from parts for one answer. It bounds the
time that an answer takes here to about 0.1 s."""


def question_of(mine: Sets, shards: int, by_parts: Iterable[int]) -> Compare:
    """Return a question that compares sets of chunks; `shards` is the swarm's number of shards.

    `by_parts`: the shards whose sets are compared by parts, the most urgent ones first.
    """
    marks = [chunks.digest for chunks in mine.values()]
    sets = {mine[shard].digest: mine[shard] for shard in by_parts if shard in mine}
    parts = [chunks.parts for chunks in islice(sets.values(), MOST_IN_PARTS)]
    return Compare(packed(np.array(list(mine), np.uint16), shards), marks, parts)


def next_by_parts(mine: Sets, words: Mapping[int, PeerReport]) -> list[int]:
    """Return the shards to compare by parts next time, given what an answer told.

    Those come first whose sets were not sent for want of parts, then those whose large sets differ.
    """
    waiting = [shard for shard in mine if shard not in words]
    chunks = {shard: word.chunks for shard, word in words.items()}
    differ = [shard for shard, theirs in chunks.items() if theirs is not mine[shard]]
    large = [n for n in differ if max(mine[n].jobs, chunks[n].jobs) > MANY_JOBS]
    return waiting + large


def answer_to(
    question: Compare,
    shards: Sequence[int],
    held: Sets,
    state_of: Callable[[int], ReplicaState],
) -> Compared:
    """Return the answer to a question about some shards, given the sets that are held here."""
    bases = {digest_of(parts): parts for parts in question.parts or ()}
    states, which = list[str](), list[int]()
    order = dict[tuple[bytes, bytes], int]()
    sets, parts = list[bytes](), list[bytes]()
    for shard, mark in zip(shards, question.marks, strict=True):
        mine = held.get(shard)
        states.append((ReplicaState.ABSENT if mine is None else state_of(shard)).letter)
        if mine is None or mine.digest == mark:
            which.append(_EQUAL)
            continue
        base = bases.get(mark)
        if question.parts is not None and base is None and mine.jobs > MANY_JOBS:
            which.append(_SEND_PARTS)
            continue
        which.append(order.setdefault((mine.digest, mark if base else b""), len(order)))
        if len(order) > len(sets):
            some = bytes(differing(base, mine.parts)) if base else b""
            sets.append((mine.of_parts(some) if base else mine).to_bytes())
            parts.append(some)
    return Compared("".join(states).encode(), which, sets, parts if any(parts) else [])


def about(job: bytes, held: Sets) -> Sets:
    """Return sets of chunks without those of all jobs but one."""
    alike = {id(chunks): chunks.of_job(job) for chunks in held.values()}
    return {shard: alike[id(chunks)] for shard, chunks in held.items()}


def words_of(
    answer: Message | None,
    shards: list[int],
    mine: Sets,
    asked: float,
    parts: Sequence[bytes] | None = None,
) -> dict[int, PeerReport]:
    """Parse the answer to a comparison into reports by shard, as of the time `asked`.

    `parts`: the question's digests of parts. Shards whose sets were not sent for want of these
    digests are left out.

    Raises MessageError or DamagedError if the answer is missing or invalid.
    """
    if not isinstance(answer, Compared):
        raise MessageError("no answer to a comparison of chunks")
    states = answer.states.decode("latin-1")
    if not len(states) == len(answer.which) == len(shards) or not _STATES.keys() >= {*states}:
        raise MessageError("an answer to a comparison has no valid state for each shard")
    least = _EQUAL if parts is None else _SEND_PARTS
    if answer.which and not least <= min(answer.which) <= max(answer.which) < len(answer.sets):
        raise MessageError("an answer to a comparison names a set that it does not have")
    told = _Told(answer, mine.values())
    sent = {digest_of(one) for one in parts or ()}
    words = {}
    for shard, letter, at in zip(shards, states, answer.which, strict=True):
        state = _STATES[letter]
        same = _NOTHING if state is ReplicaState.ABSENT else mine[shard]
        if at != _SEND_PARTS:
            chunks = same if at == _EQUAL else told.of(at, mine[shard])
            words[shard] = PeerReport(state, chunks, asked)
        elif mine[shard].digest in sent:
            raise MessageError("an answer to a comparison asks for what it has")
    return words


class _Told:
    """The sets of an answer: whole, or parts that stand in for those of a set from here."""

    def __init__(self, answer: Compared, mine: Iterable[Applied]) -> None:
        self._parts = answer.parts or [b""] * len(answer.sets)
        if len(self._parts) != len(answer.sets):
            raise MessageError("an answer to a comparison has no list of parts for each set")
        self._sets, jobs, like = list[Applied](), 0, _NOTHING
        if answer.sets:  # share memory with the largest set here: most shards have equal chunks
            like = max(mine, key=len, default=like)
        for data, parts in zip(answer.sets, self._parts, strict=True):
            self._sets.append(Applied.received(data).sharing(like))
            jobs += self._sets[-1].jobs
            if jobs > MOST_JOBS:
                raise MessageError(f"a comparison's answer has sets of over {MOST_JOBS:,} jobs")
            if parts and not all(job[0] in parts for job in self._sets[-1]):
                raise MessageError("an answer to a comparison has a job of another part")
        self._joined = dict[tuple[int, int], Applied]()
        self._jobs = 0

    def of(self, at: int, mine: Applied) -> Applied:
        """Return a set, given the set that it was compared with."""
        if not self._parts[at]:
            return self._sets[at]
        found = self._joined.get((at, id(mine)))
        if found is None:
            found = mine.with_parts(self._parts[at], self._sets[at])
            self._joined[at, id(mine)] = found
            self._jobs += found.jobs
            if self._jobs > _MOST_JOINED:
                raise MessageError("a comparison's answer has too many sets of different parts")
        return found
