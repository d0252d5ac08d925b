"""What it costs that owners of a shard compare which chunks they have."""

from collections.abc import Iterator
from functools import cache

import numpy as np
from pyroaring import BitMap

from giaann_p2p.net.frames import HEADER
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Compare, Compared, encode
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed
from tests.benchmarks.scale.swarms import fitting, placement, spread
from tests.benchmarks.scale.tables import Cells, number, size

_OFTEN, _AT_REST = 60 / Settings().compare_every, 60 / Settings().calm_every
"""Comparisons with a partner a minute: while chunks are learned, and at rest."""
_SAMPLE = 20
_CHUNKS = 10_000
_JOB = bytes(range(16))
_EQUAL, _ONE, _MANY = GROUPS = (
    "all sets equal",
    "one set here, another there",
    "a set of its own each shard",
)


def costs(peers: int) -> Cells:
    """Return what a peer sends, and gets as much again."""
    partners = [shared(peers, at) for at in spread(peers, _SAMPLE)]
    numbers = [len(each) for each in partners]
    mean, shards = float(np.mean(numbers)), fitting(peers)
    cells = {
        "N": f"{shards:,}",
        "partners, mean and most": f"{number(mean)}, {max(numbers):,}",
        "a partner's shards in common, mean": number(
            float(np.mean([len(one) for each in partners for one in each]))
        ),
        "messages that a peer sends, a minute": number(2 * _OFTEN * mean),
        "messages that a peer sends, a minute: at rest": number(2 * _AT_REST * mean),
    }
    for groups in GROUPS:
        sent = [sum(spoken(len(one), groups, one, shards) for one in each) for each in partners]
        times = _AT_REST if groups == _EQUAL else _OFTEN
        cells[f"bytes that it sends, a minute: {groups}"] = size(times * float(np.mean(sent)))
    return cells


def shared(peers: int, at: int) -> list[Shards]:
    """Return the shards that a peer has in common with each other one that it compares with."""
    placed = placement(peers, fitting(peers))
    mine = placed.shards_of(placed.peers[at])
    owners = placed.owner_matrix[mine]
    others = np.unique(owners[owners != at])
    return [mine[(owners == other).any(axis=1)] for other in others.tolist()]


def spoken(count: int, groups: str, shards: Shards, of: int) -> int:
    """Return the bytes of a question and of an answer about some shards."""
    marks = [applied.digest for applied in _sets(count, groups == _MANY)]
    question = Compare(packed(shards, of), marks)
    return _framed(question) + _framed(answer(count, groups))


def answer(count: int, groups: str) -> Compared:
    """Return what is answered about so many shards."""
    states = ReplicaState.READY.value.encode() * count
    if groups == _EQUAL:
        return Compared(states, [-1] * count, [])
    if groups == _ONE:
        return Compared(states, [0] * count, [_set(0).to_bytes()])
    return Compared(states, list(range(count)), [s.to_bytes() for s in _sets(count, True)])


def _sets(count: int, own: bool) -> Iterator[Applied]:
    return (_set(at if own else 0) for at in range(count))


@cache
def _set(number: int) -> Applied:
    """Return the chunks of a job, but for one."""
    return Applied({_JOB: BitMap(range(_CHUNKS)) - BitMap([number])})


def _framed(message: Message) -> int:
    return HEADER + len(encode(message))
