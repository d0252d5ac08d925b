"""A simulated swarm whose shards double: what its checks count, and what its clients learn."""

from collections.abc import Iterator

import numpy as np
import pytest

from giaann_p2p.errors import GiaannError
from giaann_p2p.sim.client import Client, Habit
from giaann_p2p.sim.hostile import cast
from giaann_p2p.sim.hostile.liar import Liar, Lie
from giaann_p2p.sim.hostile.watch import watch_of
from giaann_p2p.sim.storage import Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.wire.division import COUNTS_OTHERWISE
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AskDigests, Digests, Push, Pushed, decode, encode
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.voucher import sealing
from tests.sim.doubling_bugs import write_what_was_decided_before

JOB = b"one job of many."
CHUNK, SHARD = 4, 10
N = 16
CHILD = SHARD + N


@pytest.fixture
def swarm() -> Iterator[Swarm]:
    """Three peers that hold all, and have learned a little."""
    swarm = Swarm(0, everything=True)
    for _ in range(3):
        swarm.add_storage()
    swarm.clients.append(Client(swarm, "client0", JOB, [0, 1, 2], 0.0, Habit(since=1e9)))
    swarm.clock.run_until(60)
    assert swarm.problems() == []
    yield swarm
    swarm.close()


def sign(swarm: Swarm, shards: int = 2 * N) -> bytes:
    """Let the founder double the number of shards; return the edition, which no peer knows yet."""
    edition = swarm.editions.next(swarm.founder, shards=shards)
    swarm.publish_edition(edition)
    return edition.to_bytes()


def double(swarm: Swarm) -> None:
    """Double the number of shards at all peers."""
    edition = sign(swarm)
    for peer in swarm.storages:
        peer.learn_edition(edition)
    swarm.clock.run_until(swarm.clock.now + 60)
    assert swarm.problems() == []


def update(swarm: Swarm, shard: int, like: int = CHUNK) -> Update:
    return Update(JOB, CHUNK, np.array([shard], np.uint16), swarm.lessons.part(like, shard))


def test_a_peer_that_divides_keeps_all_promises(swarm: Swarm) -> None:
    double(swarm)
    assert [len(peer.store.shards) for peer in swarm.storages] == [2 * N] * 3
    assert swarm.lessons.layout.shards == swarm.promises.shards == 2 * N


def test_a_peer_that_has_not_divided_yet_has_a_shard_as_its_parent(swarm: Swarm) -> None:
    before = swarm.storages[0].chunks(SHARD)
    sign(swarm)
    peer = swarm.storages[0]
    assert peer.store.layout.shards == N
    assert peer.chunks(CHILD) == peer.kept(CHILD) == before
    assert peer.state(CHILD) is peer.state(SHARD)
    late = [f"{one.name} does not know the newest edition" for one in swarm.storages]
    assert swarm.problems() == late


def test_the_state_of_half_a_shard_is_its_own_once_it_is_divided(
    swarm: Swarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    double(swarm)
    peer = swarm.storages[0]
    monkeypatch.setattr(peer.core.replicas, "state", lambda shard: shard)
    assert peer.state(CHILD) == CHILD


def test_a_chunk_that_is_acknowledged_and_not_there(swarm: Swarm) -> None:
    shards = packed(np.array([SHARD], np.uint16), N)
    for chunk, faults in ((0, 0), (CHUNK, 1)):
        swarm.storages[0]._check(Push(JOB, chunk, shards, b""), 0, Pushed(shards))
        assert len(swarm.promises.faults) == faults
    assert swarm.promises.faults == ["peer0 acknowledges a chunk that it does not have"]


def test_half_a_shard_that_is_not_what_its_chunks_come_to(swarm: Swarm) -> None:
    double(swarm)
    for peer in swarm.storages:
        peer.store.apply([update(swarm, CHILD, like=CHUNK + 1)])
    wrong = [
        f"shard {CHILD} at {peer.name} is not the sum of its chunks" for peer in swarm.storages
    ]
    assert swarm.problems() == wrong


def test_what_was_acknowledged_of_a_shard_is_promised_of_both_halves(swarm: Swarm) -> None:
    shards = np.array([SHARD], np.uint16)
    swarm.promises.acked(swarm.storages[0], JOB, CHUNK, shards)
    sign(swarm)
    lost = [f"chunk {CHUNK} was acknowledged for shard {n} and is lost" for n in (SHARD, CHILD)]
    assert set(lost) <= set(swarm.problems())
    swarm.promises.reopened(swarm.storages[0])
    forgot = [f"peer0 forgot 1 chunks of shard {n} in a crash" for n in (SHARD, CHILD)]
    assert swarm.promises.faults == forgot


def test_what_a_peer_acknowledges_by_an_earlier_edition_counts_for_both_halves(
    swarm: Swarm,
) -> None:
    everything = np.arange(N, dtype=np.uint16)
    sign(swarm)
    swarm.promises.acked(swarm.storages[0], JOB, CHUNK, everything, N)
    swarm.promises.acked(swarm.storages[1], JOB, CHUNK, everything[1:], N)
    swarm.promises.commit(JOB, CHUNK)
    assert swarm.promises.faults == [
        f"chunk {CHUNK} is taken as committed; shard {n} lacks a quorum" for n in (0, N)
    ]


def test_both_halves_of_a_shard_that_is_let_go_must_be_held_elsewhere(swarm: Swarm) -> None:
    peer, *others = swarm.storages
    pushed = update(swarm, SHARD)
    peer.store.apply([pushed])
    held = peer.store.sets([SHARD])
    sign(swarm)
    swarm.promises.let_go(peer, held)
    assert swarm.promises.faults == [
        f"peer0 dropped shard {n}, which 0 others have" for n in (SHARD, CHILD)
    ]
    for other in others:
        other.store.apply(
            [Update(JOB, CHUNK, np.array([SHARD], np.uint16), update(swarm, SHARD).delta)]
        )
    swarm.promises.let_go(peer, held)
    assert len(swarm.promises.faults) == 2


@pytest.mark.parametrize("moment", ["before", "in the middle", "after"])
def test_a_peer_that_crashes_while_it_divides_comes_back_whole(swarm: Swarm, moment: str) -> None:
    crashed = list[Storage]()

    def crash(peer: object) -> None:
        assert isinstance(peer, Storage)
        crashed.append(peer)
        peer.crash(in_the_middle=moment == "in the middle", after_a_write=moment == "after")

    swarm.on_division = crash
    edition = sign(swarm)
    peer = swarm.storages[0]
    peer.learn_edition(edition)
    swarm.clock.run_until(61)
    assert (crashed, peer.alive) == ([peer], False)
    if moment != "in the middle":
        assert peer.store.layout.shards == (2 * N if moment == "after" else N)
    peer.restart()
    assert peer.store.layout.shards == peer.core.replicas.shards == 2 * N
    swarm.on_division = lambda peer: None
    swarm.clock.run_until(180)
    assert swarm.problems() == []


@pytest.mark.parametrize("planted", [False, True])
def test_a_push_that_waits_while_shards_are_divided_is_turned_down(
    swarm: Swarm, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    monkeypatch.setattr(Storage, "divided", lambda peer: None)  # decisions follow at once
    monkeypatch.setattr(Storage, "_write_seconds", lambda peer: 1.0)
    if planted:  # a mistake that is too rare in histories of chance
        write_what_was_decided_before(monkeypatch)
    edition = sign(swarm)
    swarm.clients[0].push([3, 4, 5, 6])
    swarm.clock.run_until(swarm.clock.now + 1.2)
    assert any(len(peer.node.store_writer) > 1 for peer in swarm.storages)
    for peer in swarm.storages:
        peer.learn_edition(edition)
    swarm.clock.run_until(120)
    if planted:
        faults = swarm.promises.faults
        assert any("acknowledges a chunk that it does not have" in one for one in faults)
    else:
        assert swarm.problems() == []


def test_a_peer_whose_disk_is_full_divides_its_shards_when_there_is_room(swarm: Swarm) -> None:
    peer, edition = swarm.storages[0], sign(swarm)
    peer._keep_edition(edition)
    peer.crash()
    peer.disk.capacity = 0
    peer.restart()
    assert not peer.alive
    swarm.clock.run_until(75)
    assert not peer.alive
    peer.disk.capacity = None
    swarm.clock.run_until(90)
    assert (peer.alive, peer.store.layout.shards) == (True, 2 * N)


def test_a_client_learns_an_edition_from_the_records_of_the_peers(swarm: Swarm) -> None:
    double(swarm)
    (client,) = swarm.clients
    assert client.around.rules.layout == swarm.lessons.layout
    client.push([7])
    client.die()
    client.restart()
    assert client.around.rules.shards == N
    swarm.clock.run_until(swarm.clock.now + 60)
    assert client.around.rules.shards == 2 * N
    assert swarm.problems() == []


def asked(swarm: Swarm, shards: int) -> list[Message | None]:
    """Ask the first peer about a shard as the client counts; return the answer."""
    (client,), answers = swarm.clients, list[Message | None]()
    question = AskDigests(packed(np.array([SHARD], np.uint16), shards))
    client.ask(swarm.storages[0].peer, question, 4.0, answers.append)
    swarm.clock.run_until(swarm.clock.now + 5)
    return answers


def test_a_client_learns_an_edition_from_a_peer_that_counts_otherwise(
    swarm: Swarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "tick", lambda client: None)  # it reads no records
    (client,) = swarm.clients
    swarm.storages[0].learn_edition(sign(swarm))
    swarm.clock.run_until(70)
    assert client.around.rules.shards == N
    assert asked(swarm, N) == [COUNTS_OTHERWISE]
    assert client.around.rules.shards == 2 * N
    (answer,) = asked(swarm, 2 * N)
    assert isinstance(answer, Digests)


def test_a_client_tells_its_edition_to_a_peer_that_knows_an_earlier_one(swarm: Swarm) -> None:
    edition, (client,) = sign(swarm), swarm.clients
    assert client.editions.learn(edition)
    assert asked(swarm, 2 * N) == [COUNTS_OTHERWISE]
    swarm.clock.run_until(80)
    assert swarm.storages[0].gate.editions.number == 1
    (answer,) = asked(swarm, 2 * N)
    assert isinstance(answer, Digests)


def test_an_edition_that_nobody_signed_is_no_answer(swarm: Swarm) -> None:
    (client,) = swarm.clients
    assert client.counts_otherwise(swarm.storages[0].peer, b"none") is None
    assert client.editions.number == 0


def test_a_seal_of_more_shards_is_refused_by_who_has_not_divided(swarm: Swarm) -> None:
    members, before = swarm.admission, swarm.editions.rules
    sign(swarm)
    (client,), tree = swarm.clients, swarm.lessons.tree(CHUNK)
    shards = np.array([SHARD], np.uint16)
    seal = sealing([client._vouched(client.identity, CHUNK, tree.root)], tree)(shards)
    pushed = update(swarm, SHARD)._replace(seal=seal)
    swarm.delta_checks(members, lambda: swarm.editions.rules).check(pushed)
    with pytest.raises(GiaannError):
        swarm.delta_checks(members, lambda: before).check(pushed)


def test_a_liar_heeds_no_question_that_counts_other_shards() -> None:
    swarm = cast.founded(0, 1)
    swarm.add_storage()
    author = Client(swarm, "client0", JOB, [], 0.0).peer
    liar = Liar(swarm, "liar0", 0.0, frozenset({Lie.ACKS}))
    cast.let(swarm, liar, 1.0)
    swarm.clock.run_until(20)
    push, answers = Push(JOB, 1, packed(np.array([3], np.uint16), N), b""), list[Message]()
    for doublings in (0, 1):
        data = encode(push, doublings)
        liar.deliver(author, data, lambda answer: answers.append(decode(answer)))
    swarm.clock.run_until(30)
    assert list(map(type, answers)) == [Pushed, EditionIs]
    assert watch_of(swarm).counts["lies about Push"] == 1
