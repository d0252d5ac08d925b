"""Who watches hostile peers sees what they achieve; what they say is what it is meant to be."""

import numpy as np
import pytest

from giaann_p2p.errors import PeerError
from giaann_p2p.model.rows import DeltaRows, Neuron, Question, Row
from giaann_p2p.net.errors import Reason, Refused
from giaann_p2p.sim.client import Client, Habit
from giaann_p2p.sim.hostile import cast
from giaann_p2p.sim.hostile.forger import Forger, Forgery
from giaann_p2p.sim.hostile.liar import Liar, Lie
from giaann_p2p.sim.hostile.shirker import Shirker, Shirking
from giaann_p2p.sim.hostile.stranger import Stranger
from giaann_p2p.sim.hostile.watch import Watch, watch_of
from giaann_p2p.sim.storage import Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.reading.row_match import same
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import encode
from giaann_p2p.swarm.wire.training_messages import Learn, LearnAck

JOB = b"one job of many."


@pytest.fixture
def swarm() -> Swarm:
    found = cast.founded(0, 1)
    found.add_storage()
    found.clients.append(Client(found, "client0", JOB, [0], 0.0, Habit(since=1e9)))
    return found


def told(swarm: Swarm, chunks: list[int]) -> tuple[list[Neuron], list[Row | None]]:
    """Return some neurons of a chunk, and their rows when so many chunks were learned."""
    neurons = swarm.lessons.neurons(chunks[0])[:3]
    deltas = [swarm.lessons.content(shard, chunks) for shard in range(swarm.rules.shards)]
    rows = [DeltaRows(delta).read(Question(neurons)) for delta in deltas]
    return neurons, [next((row for row in some if row), None) for some in zip(*rows, strict=True)]


def test_a_swarm_without_hostile_peers_is_not_watched() -> None:
    with pytest.raises(TypeError, match="founded"):
        watch_of(Swarm(0))


def test_shards_have_more_replicas_where_more_lie() -> None:
    for hostile, replicas, quorum in ((1, 5, 3), (6, 7, 4), (12, 11, 6)):
        rules = cast.founded(0, hostile).rules
        assert (rules.replicas, rules.quorum) == (replicas, quorum)


def test_of_six_two_hold_shards_and_two_learn() -> None:
    found = cast.founded(0, 6)
    found.add_storage()
    cast.join(found, 6)
    kinds = [type(one) for one in found.hostiles]
    assert kinds == [Liar, Liar, Shirker, Shirker, Forger, Stranger]
    assert not any(isinstance(one, Storage) for one in found.nodes if one in found.storages[1:])


def test_they_behave_until_it_is_time(swarm: Swarm) -> None:
    cast.join(swarm, 6)
    swarm.clock.run_until(cast.BEGINS - 0.1)
    assert not watch_of(swarm).counts
    swarm.clock.run_until(cast.BEGINS + 5)
    assert watch_of(swarm).counts["strangers refused"]
    cast.leave(swarm)
    before = dict(watch_of(swarm).counts)
    swarm.clock.run_until(cast.BEGINS + 30)
    assert watch_of(swarm).counts["sent: flood"] == before.get("sent: flood", 0)


def test_altered_rows_are_not_what_they_were(swarm: Swarm) -> None:
    liar = Liar(swarm, "liar", 0.0, frozenset({Lie.ROWS}))
    swarm.hostiles.append(liar)
    rows = [row for row in told(swarm, [0, 1, 2])[1] if row]
    changed = 0
    for _ in range(50):
        new = {row.neuron: row for row in liar._altered(rows)}
        changed += any(not same(row, new.get(row.neuron)) for row in rows)
    assert changed > 40


def test_every_forgery_is_refused_by_a_peer_that_knows_all_others(swarm: Swarm) -> None:
    forger = Forger(swarm, "forger", 0.0, frozenset(Forgery))
    cast.let(swarm, forger)
    swarm.clock.run_until(cast.BEGINS + 1)
    (peer,) = swarm.storages
    directory = peer.around.directory
    before = [repr(said) for said in directory.live(peer.now)]
    tried = 0
    for forgery in set(Forgery) - {Forgery.FLOOD}:
        for _ in range(5):
            record = forger._record(forgery, peer)
            if record is not None:
                peer.learn(record)
                tried += 1
    assert tried > 30
    assert [repr(said) for said in directory.live(peer.now)] == before
    assert directory.refused > 25


def test_a_shirker_takes_no_orders_of_strangers(swarm: Swarm) -> None:
    shirker = Shirker(swarm, "shirker", 0.0, frozenset({Shirking.KEEPS}))
    swarm.hostiles.append(shirker)
    shirker.begin_to_lie()
    answers = list[bytes | PeerError]()
    for asking in (swarm.clients[0].peer, Peer(b"s" * 32)):
        shirker.deliver(asking, encode(Learn(JOB, 1, [])), answers.append)
    taken, refused = answers
    assert taken == encode(LearnAck())
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.STRANGER


def test_watch_counts_who_is_shunned(swarm: Swarm) -> None:
    watch = watch_of(swarm)
    assert isinstance(watch, Watch)
    watch.avoided(swarm.storages[0].peer)
    watch.avoided(swarm.clients[0].peer)
    assert (watch.counts["honest peers shunned"], watch.counts["liars shunned"]) == (1, 1)
    assert np.sum(list(watch.counts.values())) == 2
