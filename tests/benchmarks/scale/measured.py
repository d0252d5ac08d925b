"""What takes time, measured on the machine at hand."""

import os
import platform
import statistics
import time
import tracemalloc
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from giaann_p2p.model.delta import EMPTY
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update, anything, cut
from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.members.placement import Placement, _placed
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.carried_deltas import CarriedDelta
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.replication.storage import StoragePeer
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.messages import Carry, Push, decode
from giaann_p2p.swarm.wire.messages import encode as encoded
from giaann_p2p.swarm.wire.pulse import bare
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.benchmarks.scale.directory import A_MINUTE, NOW, SWARM, record
from tests.benchmarks.scale.lessons import SPEC, learned
from tests.benchmarks.scale.swarms import (
    REPLICAS,
    fitting,
    identities,
    members,
    placement,
    spread,
)
from tests.benchmarks.scale.tables import Cells, number, size
from tests.benchmarks.scale.training import CHUNKS, JOB, PARSED, Lesson, said

_RUNS, _PUSHES, _PARTS = 5, 300, 50
T = TypeVar("T")


def machine() -> str:
    """Say where all was measured."""
    cpu = Path("/proc/cpuinfo").read_text().split("model name")[1].split("\n")[0].strip("\t: ")
    return f"{cpu}, {os.cpu_count()} cores, shared with others; Python {platform.python_version()}"


def column(peers: int) -> Cells:
    """Measure at a size."""
    torch.set_num_threads(1)
    shards = fitting(peers)
    records = [record(peers, shards, at) for at in range(peers)]
    directory, merging = _traced(lambda: _merged(records, shards))
    _, placing = _traced(lambda: _place(peers, shards))
    merge = _seconds(lambda: _merged(records, shards), 1) / peers
    pulses = [bare(record(peers, shards, at, pulse=1)) for at in range(peers)]
    prolong = _seconds(lambda: _merge(pulses, directory), 1) / peers
    share = A_MINUTE * len(directory) / 60
    push = _pushing(peers)
    return {
        "N": f"{shards:,}",
        "`Placement.of`, ms": number(1e3 * _seconds(lambda: _place(peers, shards))),
        "the memory that `Placement.of` takes meanwhile": size(placing),
        "a `Directory` of all records, the most memory": size(merging),
        "taking in one new record, µs": number(1e6 * merge),
        "taking in all of them, each 10 s, part of a core": f"{share * merge:.1%}",
        "taking in one new pulse, µs": number(1e6 * prolong),
        "taking in a pulse of all, each 10 s, part of a core": f"{share * prolong:.1%}",
        "anti-entropy while all are equal, part of a core": f"{_anti_entropy(peers, records):.1%}",
        f"cutting {CHUNKS[1]:,} sentences for all holders, s": number(_cutting(peers)),
        **{
            f"`Writer` for {sentences:,} sentences, part of parsing": (
                f"{_writing(peers, sentences):.1%}"
            )
            for sentences in CHUNKS
        },
        "taking in one push, µs of a storage peer's core": number(1e6 * push),
        "chunks a second of the whole swarm that this allows": number(1 / push),
        "cores that parse as many": number(CHUNK / push / PARSED),
    }


def _place(peers: int, shards: int) -> Placement:
    _placed.cache_clear()
    return Placement.of(members(peers), shards, REPLICAS)


def _merged(records: list[bytes], shards: int) -> Directory:
    directory = Directory(SWARM, lambda: Rules(shards), most=len(records))
    _merge(records, directory)
    return directory


def _merge(records: list[bytes], directory: Directory) -> None:
    for data in records:
        directory.merge(data, NOW)


def _anti_entropy(peers: int, records: list[bytes]) -> float:
    """Return the part of a core that asking and answering all partners takes."""
    shards, placed = fitting(peers), placement(peers, fitting(peers))
    layout, settings = Layout(shards=shards), Settings()
    me = identities(peers)[0].peer
    mine = placed.shards_of(me)
    store = Store.in_memory(SPEC, layout)
    store.hold(mine.tolist())
    store.apply([Update(JOB, at, mine, EMPTY) for at in range(_PUSHES)])
    around = PeersView(me, SWARM, lambda: Rules(shards, REPLICAS))
    around.directory = _merged(records, shards)
    delta_checks = DeltaChecks(SPEC, lambda: Rules(shards), anything)
    peer = StoragePeer(
        me, members(peers)[me], settings, around, store, mine, delta_checks, NOW, b""
    )
    answers = Answers(store, lambda _: ReplicaState.READY)

    def compare(now: float) -> None:
        for act in peer.tick(now):
            if isinstance(act, Call):
                peer.answered(act.number, answers.to(decode(encoded(act.message))), now)

    compare(NOW)  # it finds its partners, and all its shards are ready
    again = NOW + settings.compare_every
    return _seconds(lambda: compare(again), 1) / settings.calm_every


def _cutting(peers: int) -> float:
    """Return the seconds that a courier takes to cut a large chunk for all, from some of them."""
    placed, lesson = placement(peers, fitting(peers)), Lesson.of(CHUNKS[1], fitting(peers))
    everything = np.arange(lesson.layout.shards, dtype=np.uint16)
    told, seal = packed(everything, lesson.layout.shards), lesson.seal(everything)
    carry = Carry(JOB, 0, told, lesson.whole, seal)
    checks = DeltaChecks(SPEC, lambda: lesson.rules, anything)
    carried = CarriedDelta(carry, checks, 0.0)
    carried.piece(placed.shards_of(placed.peers[0]))  # it is unpacked once

    def some() -> None:
        for at in spread(peers, _PARTS):
            carried.piece(placed.shards_of(placed.peers[at]))

    return _seconds(some, 1) * peers / min(_PARTS, peers)


def _writing(peers: int, sentences: int) -> float:
    """Return the part of what it takes to parse a chunk that bringing it to all holders takes."""
    lesson = Lesson.of(sentences, fitting(peers))
    talk = said(placement(peers, fitting(peers)), lesson)
    seconds = _seconds(lambda: deque(talk, maxlen=0), 1)
    return seconds * PARSED / sentences


def _pushing(peers: int) -> float:
    """Return the seconds that a peer takes to read a push and take it in, without a disk."""
    shards, placed = fitting(peers), placement(peers, fitting(peers))
    layout = Layout(shards=shards)
    mine = sorted((placed.shards_of(peer) for peer in placed.peers), key=len)[peers // 2]
    part = cut(Update(JOB, 0, mine, learned(1)), mine, layout).delta
    parcel = encode(part)
    data = [encoded(Push(JOB, at, packed(mine, shards), parcel)) for at in range(_PUSHES)]
    store = Store.in_memory(SPEC, layout, retain=True)
    store.hold(mine.tolist())

    def take() -> None:
        for one in data:
            push = decode(one)
            if isinstance(push, Push):
                there = unpacked(push.shards, shards)
                store.apply(
                    [Update.received(push.job, push.chunk, there, push.parcel, store.limits)]
                )

    return _seconds(take, 1) / _PUSHES


def _seconds(action: Callable[[], object], runs: int = _RUNS) -> float:
    taken = []
    for _ in range(runs):
        began = time.process_time()
        action()
        taken.append(time.process_time() - began)
    return statistics.median(taken)


def _traced(action: Callable[[], T]) -> tuple[T, int]:
    tracemalloc.start()
    made = action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return made, peak
