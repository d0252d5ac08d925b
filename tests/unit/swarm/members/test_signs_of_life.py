"""Who gives work to compute peers hears of each record and each pulse of theirs, once."""

import msgspec

from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.members.signs_of_life import SignsOfLife
from tests.unit.swarm.helpers_pulses import beat, chained
from tests.unit.swarm.members.test_directory import NOW, RULES, SWARM, WHO, announced


def test_each_record_and_each_pulse_of_a_compute_peer_is_told_once() -> None:
    directory, signs = Directory(SWARM, lambda: RULES), SignsOfLife()
    worker, storing, other = WHO[:3]
    said = announced(worker, role="compute")
    data = chained(worker, said)
    for one in (data, chained(storing, announced(storing))):
        directory.merge(one, NOW)
    assert signs.news(directory, NOW) == [worker.peer]
    assert signs.news(directory, NOW) == []
    for number in (1, 2):
        directory.merge(beat(data, worker, number), NOW + 10 * number)
        directory.merge(beat(data, worker, 1), NOW + 10 * number)
        assert signs.news(directory, NOW + 10 * number) == [worker.peer]
        assert signs.news(directory, NOW + 10 * number) == []
    directory.merge(chained(other, announced(other, role="compute")), NOW + 21)
    assert signs.news(directory, NOW + 21) == [other.peer]
    again = msgspec.structs.replace(said, sequence=said.sequence + 100, incarnation=2)
    directory.merge(chained(worker, again), NOW + 22)
    assert signs.news(directory, NOW + 22) == [worker.peer]
    assert signs.news(directory, NOW + 60) == []  # both are gone
    directory.merge(beat(chained(worker, again), worker, 5), NOW + 61)
    assert signs.news(directory, NOW + 61) == [worker.peer]
    assert repr(signs) == "<SignsOfLife of 1 compute peers>"
