"""Whole swarms of dummies: what can be done with them, and that nothing is left of them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from giaann_p2p.errors import StoreError, UsageError
from giaann_p2p.local import linux
from giaann_p2p.local.control import Look
from giaann_p2p.local.errors import EndedError, LocalSwarmError, NotRunningError
from giaann_p2p.local.folder import Folder, Hold, Record
from giaann_p2p.local.nursery import places
from giaann_p2p.local.peer import ProcessState
from giaann_p2p.local.remote import Remote
from giaann_p2p.local.roles import Spec
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.local.waves import _AT_ONCE
from tests.unit.local.conftest import NewSwarm, entries
from tests.unit.local.helpers import eventually, names_in, processes_of
from tests.unit.local.test_folder import disk_full


def states(swarm: LocalSwarm) -> dict[str, str]:
    return {peer.name: str(peer.state) for peer in swarm.peers()}


def look_until_the_end(swarm: LocalSwarm) -> None:
    while True:
        swarm.look()


def starts(swarm: LocalSwarm, name: str) -> int:
    """How many times a peer has been started with its data."""
    return len((swarm.folder.data(name) / "starts").read_text().split())


def test_a_swarm_is_ready_when_all_are(new_swarm: NewSwarm) -> None:
    with new_swarm(bootstraps=2, computes=1, name="bees") as swarm:
        names = ["bootstrap-1", "bootstrap-2", "storage-1", "storage-2", "compute-1"]
        assert states(swarm) == dict.fromkeys(names, "ready")
        first = swarm.peer("bootstrap-1")
        assert swarm.link == f"giaann:bees@{first.listen}"
        logs = {name: swarm.folder.log(name).read_text() for name in names}
        assert "--new bees --open --shards 256 --replicas 2 " in logs["bootstrap-1"]
        assert all(f"--join {swarm.link} " in logs[name] for name in names[1:])
        draws = {text.rpartition(" ")[2] for text in logs.values()}
        assert len(draws) == len(names)
        (peer,) = [one for one in swarm.look(memory=True).peers if one.name == "storage-1"]
        assert linux.command(peer.pid) == "storage-1"
        assert peer.memory > 100_000
        assert repr(swarm) == f"<LocalSwarm: {swarm.folder.path}, runs>"
    assert repr(swarm) == f"<LocalSwarm: {swarm.folder.path}, does not run>"
    assert names_in(swarm.folder.path) == ["lock", "logs", "peers", "swarm.json"]


def test_peers_are_harmed_and_restarted(new_swarm: NewSwarm) -> None:
    with new_swarm(entries=entries(storage="parent")) as swarm:
        ports = [(peer.listen, peer.metrics_port) for peer in swarm.peers()]
        left = swarm.started_by("storage-1")
        assert sorted(left.values()) == ["sleep", "sleep"]
        swarm.kill("storage-1")
        assert swarm.wait_ended("storage-1") == -9
        eventually(lambda: not any(linux.command(pid) for pid in left))
        swarm.stop("storage-2")
        eventually(lambda: swarm.peer("storage-2").state == ProcessState.STOPPED)
        swarm.cont("storage-2")
        eventually(lambda: swarm.peer("storage-2").state == ProcessState.READY)
        swarm.stop("storage-2")
        for name in ("storage-1", "storage-2", "bootstrap-1"):
            swarm.restart(name)
        swarm.wait_ready()
        assert [(peer.listen, peer.metrics_port) for peer in swarm.peers()] == ports
        assert [starts(swarm, name) for name in states(swarm)] == [2, 2, 2]
        assert [peer.restarts for peer in swarm.peers()] == [1, 1, 1]


def test_peers_are_added(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=0) as swarm:
        assert swarm.add("storage", 2) == ["storage-1", "storage-2"]
        assert swarm.add("bootstrap") == ["bootstrap-2"]
        swarm.kill("storage-1", signal.SIGTERM)
        swarm.wait_ended("storage-1")
        assert swarm.add("storage") == ["storage-3"]
        swarm.wait_ready(["storage-2", "storage-3", "bootstrap-2"])
        assert swarm.peer("storage-1").code == -signal.SIGTERM


def test_only_some_peers_start_at_a_time(new_swarm: NewSwarm) -> None:
    swarm = new_swarm(entries=entries(storage="silent"), storages=50)
    swarm.start()
    eventually(lambda: list(states(swarm).values()).count("starting") == _AT_ONCE)
    assert list(states(swarm).values())[-1] == "waiting"
    swarm.restart("storage-50")
    eventually(lambda: swarm.peer("storage-50").pid > 0)
    swarm.close(now=True)


def test_no_peer_starts_before_the_link_is_known(new_swarm: NewSwarm) -> None:
    swarm = new_swarm(entries=entries(bootstrap="silent"), bootstraps=2)
    swarm.start()
    eventually(lambda: "bootstrap-1" in states(swarm))
    for name in ("storage-1", "bootstrap-2"):
        with pytest.raises(LocalSwarmError, match="the first peer has not started yet"):
            swarm.restart(name)
    assert (swarm.peer("storage-1").state, swarm.peer("storage-1").pid) == ("waiting", 0)
    swarm.close(now=True)


def test_many_peers_are_ready_in_the_end(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=3 * _AT_ONCE) as swarm:
        assert set(states(swarm).values()) == {"ready"}
        assert [starts(swarm, name) for name in states(swarm)] == [1] * (3 * _AT_ONCE + 1)


def test_what_cannot_be_done_is_said(new_swarm: NewSwarm) -> None:
    with new_swarm() as swarm:
        with pytest.raises(UsageError, match="no peer 'storage-9': did you mean storage-"):
            swarm.kill("storage-9")
        with pytest.raises(UsageError, match=r"no peer 'x'$"):
            swarm.peer("x")
        with pytest.raises(UsageError, match=r"no role 'storege': did you mean storage\?"):
            swarm.add("storege")
        with pytest.raises(UsageError, match="0 peers cannot be added: give 1 to 100"):
            swarm.add("storage", 0)
        with pytest.raises(UsageError, match="there is no signal 99"):
            swarm.kill("storage-1", 99)
        swarm.kill("storage-1")
        swarm.wait_ended("storage-1")
        with pytest.raises(UsageError, match="storage-1 is not running; `giaann swarm restart"):
            swarm.stop("storage-1")
        with pytest.raises(LocalSwarmError, match="storage-1 was ended by SIGKILL; the last lines"):
            swarm.wait_ready()
        with pytest.raises(LocalSwarmError, match=r"storage-2 has not ended in 0 s"):
            swarm.wait_ended("storage-2", within=0)


def test_a_swarm_comes_back_as_it_was(new_swarm: NewSwarm) -> None:
    with new_swarm() as swarm:
        swarm.add("storage")
        swarm.wait_ready()
        before = [(peer.name, peer.listen, peer.metrics_port) for peer in swarm.peers()]
        link = swarm.link
    with new_swarm(storages=4) as swarm:
        after = [(peer.name, peer.listen, peer.metrics_port) for peer in swarm.peers()]
        assert after[:-1] == before
        assert after[-1][0] == "storage-4"
        assert swarm.link == link
        assert [starts(swarm, name) for name in states(swarm)] == [2, 2, 2, 2, 1]
    with pytest.raises(
        UsageError, match=r"was founded with replicas 2, .* for replicas 3, name another"
    ):
        new_swarm(replicas=3).start()
    with pytest.raises(UsageError, match="was founded with column_segments 0"):
        new_swarm(column_segments=4).start()
    with pytest.raises(UsageError, match=r"was founded with cut none, .* for cut day=4, name"):
        new_swarm(cut="day=4").start()
    with pytest.raises(UsageError, match="was founded with cut_like none"):
        new_swarm(cut_like="text").start()


def test_a_folder_has_one_swarm(new_swarm: NewSwarm) -> None:
    with new_swarm() as swarm:
        supervisor = swarm.look().pid
        with pytest.raises(LocalSwarmError, match=f"is in use by process {supervisor}; end that"):
            new_swarm().start()
        assert set(states(swarm).values()) == {"ready"}


def test_another_process_sees_and_ends_a_swarm(new_swarm: NewSwarm) -> None:
    with new_swarm() as swarm:
        remote = Remote(swarm.folder.path)
        assert remote.look().link == swarm.link
        remote.down(within=20)
        assert processes_of(swarm.folder.path) == []
        with pytest.raises(NotRunningError, match=r"no swarm runs in .*; giaann swarm up --dir "):
            remote.look()
        with pytest.raises(EndedError, match="the swarm has ended, because a user asked"):
            swarm.look()


@pytest.mark.parametrize(
    ("behaviour", "codes"),
    [("orderly", {0}), ("draining", {0}), ("stubborn", {-9}), ("ready", {-15})],
)
def test_all_leave_together(new_swarm: NewSwarm, behaviour: str, codes: set[int]) -> None:
    swarm = new_swarm(entries=entries(behaviour), storages=4, grace=1.5)
    with swarm:
        swarm.stop("storage-3")
        before = swarm.look()
    log = swarm.folder.log("supervisor").read_text()
    words = {0: "ended with exit code 0", -9: "was ended by SIGKILL", -15: "was ended by SIGTERM"}
    for peer in before.peers:
        assert any(f"{peer.name} {words[code]}" in log for code in codes)


def test_who_restarts_leaves_in_good_order(new_swarm: NewSwarm) -> None:
    with new_swarm(entries=entries(storage="draining"), storages=1) as swarm:
        swarm.restart("storage-1")
        swarm.wait_ready()
        assert "storage-1 ended with exit code 0" in swarm.folder.log("supervisor").read_text()


def test_what_the_disk_refuses_is_told(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=0) as swarm:
        (swarm.folder.path / "peers" / "storage-1").touch()
        with pytest.raises(LocalSwarmError, match=r"failed to carry out the request: .*Not a dir"):
            swarm.add("storage")
        assert states(swarm) == {"bootstrap-1": "ready"}


def test_a_second_wish_kills(new_swarm: NewSwarm) -> None:
    with new_swarm(entries=entries("stubborn"), grace=1000.0) as swarm:
        supervisor = swarm.ask_down()
        os.close(supervisor)
        with pytest.raises(LocalSwarmError, match="the swarm is ending"):
            swarm.add("storage")
        swarm.down(within=20)
    with new_swarm(entries=entries("stubborn"), grace=1000.0) as swarm:
        swarm.close(now=True)


def test_who_ends_by_itself_is_restarted_if_wanted(new_swarm: NewSwarm) -> None:
    swarm = new_swarm(entries=entries(storage="brief"), storages=1, restarts=True)
    swarm.start()  # it is ready for a moment only: whoever waits for that may come too late
    eventually(
        lambda: len(swarm.peers()) == 2 and swarm.peer("bootstrap-1").state == ProcessState.READY
    )
    swarm.kill("bootstrap-1")
    eventually(lambda: swarm.peer("storage-1").restarts >= 1)
    assert swarm.peer("bootstrap-1").state == ProcessState.ENDED
    assert "that was it" in swarm.folder.log("storage-1").read_text()
    swarm.close()


def test_nobody_is_restarted_unasked(new_swarm: NewSwarm) -> None:
    swarm = new_swarm(entries=entries(storage="brief"), storages=1)
    swarm.start()
    eventually(lambda: swarm.peers() and swarm.peers()[-1].code == 1)
    log = swarm.folder.log("supervisor")
    swarm.close()
    assert log.read_text().count("storage-1 started") == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"entries": entries(bootstrap="crashing")},
            "bootstrap-1 ended with exit code 1; .* its log: .*RuntimeError: there is no bread",
        ),
        (
            {"entries": entries(storage="crashing")},
            "storage-[12] ended with exit code 1; .* its log: .*RuntimeError: there is no bread",
        ),
        (
            {"entries": entries(bootstrap="silent"), "start_within": 2.0},
            "bootstrap-1 has not reported its link in 2 s|no peer has made progress",
        ),
        (
            {"entries": entries(storage="silent"), "start_within": 2.0},
            "no peer has made progress for 2 s: storage-1 is starting, storage-2 is starting",
        ),
        (
            {"entries": dict.fromkeys(entries(), "no_bees:main")},
            "modules could not be imported: ModuleNotFoundError: No module named 'no_bees'",
        ),
    ],
)
def test_a_swarm_that_does_not_start_says_why(
    new_swarm: NewSwarm, changes: dict[str, object], message: str
) -> None:
    swarm = new_swarm(**changes)
    with pytest.raises(LocalSwarmError, match=message):
        swarm.__enter__()
    assert processes_of(swarm.folder.path) == []


def test_all_die_with_a_zygote_that_is_killed(new_swarm: NewSwarm) -> None:
    with new_swarm(entries=entries(storage="parent")) as swarm:
        (zygote,) = linux.children(swarm.look().pid)
        swarm.stop("storage-1")
        os.kill(zygote, signal.SIGKILL)
        eventually(lambda: processes_of(swarm.folder.path) == [])
        with pytest.raises(NotRunningError, match=f"process {zygote}, from which .* was killed"):
            look_until_the_end(swarm)


def test_all_die_with_a_supervisor_that_is_killed(new_swarm: NewSwarm) -> None:
    with new_swarm(entries=entries(storage="parent")) as swarm:
        swarm.stop("storage-1")
        os.kill(swarm.look().pid, signal.SIGKILL)
        eventually(lambda: processes_of(swarm.folder.path) == [])
        with pytest.raises(NotRunningError, match="the supervisor was ended by SIGKILL"):
            swarm.look()
        assert (swarm.folder.path / "run" / "control.sock").exists()
    with new_swarm(entries=entries(storage="parent")) as swarm:
        assert [starts(swarm, name) for name in states(swarm)] == [2, 2, 2]


def test_a_full_disk_does_not_hide_how_the_supervisor_ended(
    new_swarm: NewSwarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_swarm() as swarm:
        os.kill(swarm.look().pid, signal.SIGKILL)
        with pytest.raises(NotRunningError, match="the supervisor was ended by SIGKILL"):
            look_until_the_end(swarm)
        monkeypatch.setattr(os, "open", disk_full)  # as for the file of the lock
    monkeypatch.undo()
    Hold(swarm.folder).close()


def test_a_supervisor_that_does_not_answer_is_named(new_swarm: NewSwarm) -> None:
    with new_swarm() as swarm:
        supervisor = swarm.look().pid
        os.kill(supervisor, signal.SIGSTOP)
        try:
            with pytest.raises(
                LocalSwarmError, match=rf"\(process {supervisor}\) has not answered within 0\.1 s; "
            ):
                swarm._ask(Look(), within=0.1)
        finally:
            os.kill(supervisor, signal.SIGCONT)
        assert set(states(swarm).values()) == {"ready"}


def test_a_restart_may_take_longer_than_the_grace_period(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts: list[float] = []
    monkeypatch.setattr(Remote, "_ask", lambda *given: timeouts.append(given[2]))
    folder = Folder(tmp_path)
    folder.keep(Record(spec=Spec(grace=300.0)))
    Remote(folder.path).restart("storage-1")
    assert timeouts == [420.0]
    (folder.path / "swarm.json").write_text("{")  # the supervisor knows all without it
    Remote(folder.path).restart("storage-1")
    assert timeouts == [420.0, 120.0]


def test_what_both_leave_behind_is_removed(new_swarm: NewSwarm) -> None:
    swarm = new_swarm(entries=entries(storage="parent"))
    with swarm:
        supervisor = swarm.look().pid
        (zygote,) = linux.children(supervisor)
        os.kill(supervisor, signal.SIGSTOP)
        os.kill(zygote, signal.SIGKILL)
        os.kill(supervisor, signal.SIGKILL)
        eventually(lambda: len(processes_of(swarm.folder.path)) == 4)  # what two peers had started
    Hold(swarm.folder).close()
    assert processes_of(swarm.folder.path) == []


PROGRAM = """
import sys, time, pathlib
from giaann_p2p.local.swarm import LocalSwarm
from tests.unit.local.conftest import entries
folder = pathlib.Path(sys.argv[1]) if sys.argv[1] else None
with LocalSwarm(folder, entries=entries(storage="parent"), storages=1) as swarm:
    print(swarm.folder.path, flush=True)
    time.sleep(1000)
"""


@pytest.mark.parametrize("temporary", [False, True])
def test_a_swarm_dies_with_whoever_has_it(tmp_path: Path, temporary: bool) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "" if temporary else str(tmp_path / "s")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": places(), "TMPDIR": str(tmp_path)},
    )
    assert program.stdout is not None
    folder = Folder(Path(program.stdout.readline().strip()))
    assert len(processes_of(folder.path)) >= 4
    program.kill()
    program.communicate()
    eventually(lambda: not processes_of(folder.path) and not (folder.path / "run").exists())
    eventually(lambda: names_in(tmp_path) == ([] if temporary else ["s"]))


def test_a_swarm_without_a_folder_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with LocalSwarm(entries=entries(), storages=1) as swarm:
        assert names_in(tmp_path) == [swarm.folder.path.name]
    assert names_in(tmp_path) == []
    assert processes_of(tmp_path) == []


def test_a_swarm_in_a_long_folder(tmp_path: Path) -> None:
    folder = tmp_path / ("bees" * 25) / ("wasps" * 20)
    with LocalSwarm(folder, entries=entries(), storages=1) as swarm:
        run = swarm.folder.run
        assert (run / "control.sock").exists()
        assert Remote(folder).look().link == swarm.link
    assert not run.exists()
    assert processes_of(folder) == []


def test_a_swarm_that_is_let_go_lives_on(new_swarm: NewSwarm) -> None:
    swarm = new_swarm(attached=False)
    swarm.start()
    swarm.wait_ready()
    swarm.let_go()
    remote = Remote(swarm.folder.path)
    assert len(remote.look().peers) == 3
    remote.down(within=20)
    assert processes_of(swarm.folder.path) == []


def test_neither_supervisor_nor_client_imports_much() -> None:
    program = (
        "import sys, giaann_p2p.local.supervise, giaann_p2p.local.swarm;"
        "print({'torch', 'numpy', 'hivemind', 'rich', 'typer', 'spacy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": places()},
    )
    assert done.stdout == "set()\n"


def test_an_error_of_a_folder_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        Remote(tmp_path).folder.erase()
