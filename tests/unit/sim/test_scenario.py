"""Scripts: each command does what it says, and what cannot be done is told with its line."""

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.sim.network import Weather
from giaann_p2p.sim.scenario import Scenario, expects, play
from giaann_p2p.sim.storage import QUICK_DISK


@pytest.fixture
def scenario() -> Scenario:
    """Three peers that are well, and a client that has learned something."""
    scenario = Scenario()
    for line in ("storages 3", "client push 0-1", "run 40"):
        scenario.do(line)
    assert scenario.do("check") == ["all promises kept"]
    return scenario


def test_a_script_comes_back_with_what_came_of_it() -> None:
    script = "# A remark.\n\nstorages 1\n> old\n> older\nrun 5  # a while\ncheck\n"
    assert expects(script)
    played = play(script)
    assert played.startswith(
        "# A remark.\n\nstorages 1\n> peer0 begins with 0 shards on its disk\n"
        "run 5  # a while\ncheck\n> shard 0 is still syncing at peer0\n"
    )
    assert "old" not in played
    assert play(played) == played
    assert not expects("run 1\n")


def test_another_seed_plays_otherwise() -> None:
    script = "storages 6\nrun 60\nstatus\n"
    assert play(script) == play(script)
    assert play(script, 1) != play(script, 2)


def test_a_client_has_chunks_learned(scenario: Scenario) -> None:
    assert scenario.do("client push 2-3") == []
    assert scenario.do("client0 push 3-4") == []  # what it has already counts once
    assert scenario.do("run 40") == ["client0 has 5 chunks of 5 committed"]
    assert scenario.do("client0 push 0-4") == []
    assert scenario.do("run 40") == []
    assert scenario.do("client1 push 7-7") == []
    assert scenario.do("run 40") == ["client1 has 1 chunks of 1 committed"]


def test_peers_crash_and_begin_again(scenario: Scenario) -> None:
    assert scenario.do("crash peer0 peer2") == ["peer0 crashes", "peer2 crashes"]
    assert [node.alive for node in scenario.swarm.storages] == [False, True, False]
    assert scenario.do("torn crash peer1") == ["peer1 crashes"]
    assert scenario.do("status")[1:4] == ["peer0    dead", "peer1    dead", "peer2    dead"]
    assert len(scenario.do("restart all")) == 3
    assert scenario.do("crash client0") == ["client0 crashes"]
    assert scenario.do("restart client0") == ["client0 begins again"]
    assert scenario.do("settle 200")[-1].startswith("settled within ")


def test_a_lost_peer_does_not_come_back(scenario: Scenario) -> None:
    assert scenario.do("lose peer1") == ["peer1 crashes and is lost for ever"]
    assert "peer1    lost" in scenario.do("status")
    with pytest.raises(UsageError, match="peer1 is gone for ever"):
        scenario.do("restart peer1")


def test_peers_stand_still_and_go_on(scenario: Scenario) -> None:
    assert scenario.do("stop peer1 client0") == ["peer1 stands still", "client0 stands still"]
    assert scenario.do("status")[2].split()[:2] == ["peer1", "stopped"]
    scenario.do("run 10")
    assert scenario.do("go on peer1 client0") == ["peer1 goes on", "client0 goes on"]
    assert not any(node.stopped for node in scenario.swarm.nodes)


def test_a_peer_comes_and_another_leaves(scenario: Scenario) -> None:
    assert scenario.do("join") == ["peer3 begins with 0 shards on its disk"]
    assert scenario.do("leave peer0") == ["peer0 is told to leave"]
    assert scenario.do("status")[1].split()[:2] == ["peer0", "leaving"]
    said = scenario.do("settle 200")
    assert said[0] == "peer0 has left"
    assert "peer0    gone" in scenario.do("status")


def test_links_are_cut_and_mended(scenario: Scenario) -> None:
    a, b, c = (node.peer for node in scenario.swarm.storages)
    client, network = scenario.swarm.clients[0].peer, scenario.swarm.network
    scenario.do("partition peer0 peer1 | client0 | peer2")
    apart = {(a, client), (a, c), (b, client), (b, c), (client, c)}
    assert network.cut == apart | {(there, here) for here, there in apart}
    scenario.do("mend")
    assert network.cut == set()
    scenario.do("one way peer0 client0")
    scenario.do("slow peer1 20")
    scenario.do("weather lost 0.5 latency 2")
    assert network.cut == {(a, client)}
    assert network.slow == {b: 20.0}
    assert network.weather == Weather(latency=2.0, lost=0.5)
    scenario.do("mend")
    assert (network.cut, network.slow, network.weather) == (set(), {}, Weather())


def test_disks_are_slow_and_full(scenario: Scenario) -> None:
    peer = scenario.swarm.storages[1]
    scenario.do("slow disk peer1 2.0")
    assert peer.disk_delay == 2.0
    scenario.do("quick disk peer1")
    assert peer.disk_delay == QUICK_DISK
    scenario.do("full disk peer1 300")
    assert peer.disk.free == 300
    scenario.do("full disk peer1")
    assert peer.disk.free == 0
    scenario.do("free disk peer1")
    assert peer.disk.free is None


def test_settling_tells_if_it_did_not(scenario: Scenario) -> None:
    assert scenario.do("settle 10") == ["settled within 0 s"]
    scenario.do("crash peer0 peer1")
    scenario.do("client push 5-6")
    before = scenario.swarm.clock.now
    assert scenario.do("settle 12") == ["not settled within 12 s"]
    assert scenario.swarm.clock.now == before + 12


def test_a_check_spells_out_few_problems(scenario: Scenario) -> None:
    scenario.do("crash peer0 peer1")
    scenario.do("restart peer0 peer1")
    said = scenario.do("check")
    assert len(said) == 5
    assert said[0] == "shard 0 is still syncing at peer0"
    assert said[-1] == f"... and {len(scenario.swarm.problems()) - 4} more"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("explode peer1", "there is no such command; name one of storages"),
        ("go peer1", "there is no such command"),
        ("storages", "give one number"),
        ("storages many", "give one number, not 'many'"),
        ("storages 1.5", "give a whole number"),
        ("storages 198", "not between 0 and 197"),
        ("join 3", "'3' is one word too many here"),
        ("run -1", "-1 is not between 0 and 100000"),
        ("run nan", "nan is not between"),
        ("run 1 2", "give one number, not '1 2'"),
        ("crash", "name a node"),
        ("crash peer9", "there is no peer9"),
        ("restart peer1", "peer1 is running; it cannot restart"),
        ("go on peer1", "peer1 does not stand still"),
        ("lose client0", "client0 is no storage peer"),
        ("leave client0", "client0 is no storage peer"),
        ("torn crash client0", "client0 is no storage peer"),
        ("slow disk client0 2", "client0 is no storage peer"),
        ("slow disk", "give one number"),
        ("slow disk peer1", "give one number"),
        ("full disk peer1 -5", "-5 is not between"),
        ("quick disk", "name a node"),
        ("quick disk peer1 peer2", "'peer2' is one word too many here"),
        ("slow", "name a node"),
        ("partition peer0 peer1", r"name groups with \| between them"),
        ("partition peer0 | peer0 peer1", "peer0 is in two groups"),
        ("partition peer0 |", "name a node"),
        ("one way peer0", "name two nodes"),
        ("weather", "name some of lost, twice and latency"),
        ("weather rain 1", "name some of lost, twice and latency"),
        ("weather lost 2", "2 is not between 0 and 1"),
        ("mend peer1", "'peer1' is one word too many here"),
        ("status all", "'all' is one word too many here"),
        ("check all", "'all' is one word too many here"),
        ("client push", "say which chunks"),
        ("client push 3", "say which chunks"),
        ("client push 3-1", "say which chunks"),
        (f"client push 3-{'9' * 5000}", "say which chunks"),
        ("peer1 push 2-3", "peer1 is a storage peer"),
        ("client7 push 2-3", "there is no client7"),
        ("client1 push 1-2", "client0 pushes some of these"),
    ],
)
def test_what_cannot_be_done_is_told(scenario: Scenario, line: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        scenario.do(line)


def test_what_cannot_be_done_is_told_with_its_line() -> None:
    with pytest.raises(UsageError, match=r"^tale:2: 'crash peer8': there is no peer8$"):
        play("storages 1\ncrash peer8\n", name="tale")


def test_what_does_not_run_cannot_crash(scenario: Scenario) -> None:
    scenario.do("stop peer0")
    scenario.do("crash peer1")
    for name in ("peer0", "peer1"):
        for command in ("crash", "torn crash", "lose", "leave", "stop"):
            with pytest.raises(UsageError, match=f"{name} is not running"):
                scenario.do(f"{command} {name}")
