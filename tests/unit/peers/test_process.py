"""How a daemon's process ends by signals, and what it shows of itself."""

import asyncio
import logging
import os
import re
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from giaann_p2p.exit_codes import LEFT_BEHIND
from giaann_p2p.local.status_file import READY, Status, StatusFile
from giaann_p2p.swarm.members.departure import Decision
from peers import process
from peers.http import Page
from peers.options import Options
from peers.process import Departure, last, run, seen
from tests.unit.net.hive.helpers import until
from tests.unit.peers.test_http import said

UNIT = Path(__file__).parents[3] / "docs/storage-peer.md"
FIRST = [signal.SIGTERM, signal.SIGINT]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """A daemon takes signals for its whole process; later tests need their own handlers."""
    before = {number: signal.getsignal(number) for number in FIRST}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Node:
    """Something that lasts, and takes its time to leave."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.told: list[str] = []
        self.lives = asyncio.Event()
        self._over = asyncio.Event()
        self._fault = fault

    async def run(self) -> None:
        self.told.append("lives")
        self.lives.set()
        if self._fault:
            raise self._fault
        await self._over.wait()
        self.told.append("over")

    def leave(self) -> None:
        self.told.append("leaves")

    async def close(self) -> None:
        self.told.append("closes")
        self._over.set()

    def has_left(self) -> None:
        self._over.set()


def send(number: int) -> None:
    os.kill(os.getpid(), number)


async def ended(living: "asyncio.Task[None]") -> None:
    async with asyncio.timeout(20):
        await living


async def told(node: Node, count: int) -> None:
    await until(lambda: len(node.told) >= count)


@pytest.mark.parametrize("number", FIRST)
def test_the_first_signal_lets_it_leave(number: int) -> None:
    node = Node()

    async def main() -> int:
        living = asyncio.create_task(last(node))
        await node.lives.wait()
        send(number)
        await told(node, 2)
        node.has_left()
        await ended(living)
        return living.result()

    run(main(), Options())
    assert node.told == ["lives", "leaves", "over"]


@pytest.mark.parametrize("numbers", [FIRST, FIRST[::-1], [signal.SIGTERM] * 2])
def test_the_second_signal_ends_it(numbers: list[int]) -> None:
    node = Node()

    async def main() -> int:
        living = asyncio.create_task(last(node))
        await node.lives.wait()
        for count, number in enumerate(numbers):
            send(number)
            await told(node, 2 + count)
        await ended(living)
        return living.result()

    run(main(), Options())
    assert node.told == ["lives", "leaves", "closes", "over"]


@pytest.mark.parametrize("number", FIRST)
def test_a_signal_while_it_tidies_up_is_no_traceback_and_cuts_nothing_short(
    number: signal.Signals, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("peers.process.log_to_stderr", lambda **_: None)
    caplog.set_level(logging.INFO)
    node, tidy = Node(), list[str]()

    async def main() -> int:
        node.has_left()
        code = await last(node)
        send(number)
        await until(lambda: "ending already" in caplog.text)
        tidy.append("up")
        assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
        return code

    run(main(), Options())
    assert (node.told, tidy) == (["lives", "over"], ["up"])


def ended_with(main: Coroutine[Any, Any, int]) -> int:
    try:
        run(main, Options())
    except typer.Exit as end:
        return end.exit_code
    return 0


def bounded(
    node: Node, within: float, decision: Decision = Decision.WAIT
) -> Coroutine[Any, Any, int]:
    departure = Departure(
        within,
        lambda: "3 shards wait: nobody is there",
        lambda: "Nothing is lost",
        lambda: decision,
        node.has_left,
    )

    async def main() -> int:
        living = asyncio.create_task(last(node, departure))
        await node.lives.wait()
        send(signal.SIGTERM)
        await told(node, 2)
        await ended(living)
        return living.result()

    return main()


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    monkeypatch.setattr("peers.process.log_to_stderr", lambda **_: None)
    caplog.set_level(logging.INFO)
    return lambda: " | ".join(record.getMessage() for record in caplog.records)


def test_who_cannot_hand_over_ends_when_its_time_is_up(logged: Callable[[], str]) -> None:
    node = Node()
    assert ended_with(bounded(node, 0.1)) == LEFT_BEHIND
    assert node.told == ["lives", "leaves", "closes", "over"]
    ending = "ending after 0.1 s, though 3 shards wait: nobody is there. Nothing is lost"
    assert ending in logged()


def test_who_waits_for_nobody_leaves_at_once_and_says_what_stays(
    logged: Callable[[], str],
) -> None:
    node = Node()
    assert ended_with(bounded(node, 0.0, Decision.KEEP)) == LEFT_BEHIND
    assert node.told == ["lives", "leaves", "closes", "over"]
    assert "leaving now: 3 shards wait: nobody is there. Nothing is lost" in logged()


def test_who_has_nothing_to_hand_over_leaves_at_once() -> None:
    node = Node()
    assert ended_with(bounded(node, 0.0, Decision.LEAVE)) == 0
    assert node.told == ["lives", "leaves", "over"]


def test_who_waits_says_what_for_again_and_again(
    logged: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("peers.process._FIRST_WORD", 0.01)
    monkeypatch.setattr("peers.process._WORD_EVERY", 0.02)
    node = Node()
    said = r"there; this peer waits [456]\d s more, and a second signal ends it now\. Nothing"

    async def left() -> None:
        await node.lives.wait()
        await until(lambda: len(re.findall(said, logged())) > 1)
        node.has_left()

    async def main() -> int:
        leaving = asyncio.create_task(left())
        code = await bounded(node, 60.0)
        await leaving
        return code

    assert ended_with(main()) == 0
    assert node.told == ["lives", "leaves", "over"]


def test_without_a_bound_it_waits_for_the_second_signal(
    logged: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("peers.process._FIRST_WORD", 0.01)
    node = Node()

    async def hurried() -> None:
        await node.lives.wait()
        await until(lambda: "this peer waits as long as it takes, and a second" in logged())
        send(signal.SIGTERM)

    async def main() -> int:
        hurrying = asyncio.create_task(hurried())
        code = await bounded(node, 0.0)
        await hurrying
        return code

    assert ended_with(main()) == 0
    assert node.told == ["lives", "leaves", "closes", "over"]


@pytest.mark.parametrize("number", FIRST)
@pytest.mark.parametrize("again", [False, True])
def test_a_signal_before_it_lives_ends_it_in_good_order(
    number: int, again: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("peers.process.log_to_stderr", lambda **_: None)
    closed = []

    async def main() -> int:
        try:
            send(number)
            await asyncio.sleep(20)
        finally:
            if again:
                send(number)
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.sleep(20)
            closed.append(True)
        return 1

    with caplog.at_level(logging.INFO):
        run(main(), Options())
    assert closed == [True]
    assert "ended by a signal before it had started" in caplog.text


def test_what_goes_wrong_comes_out_and_signals_are_given_back() -> None:
    async def main() -> int:
        return await last(Node(RuntimeError("no luck")))

    with pytest.raises(RuntimeError, match="no luck"):
        run(main(), Options())


def shown(options: Options, ask: Callable[[dict[str, Status]], Awaitable[None]]) -> None:
    """Show a status that a test can change, and let it look."""
    state = {"now": Status(state="syncing", peer="me")}

    async def main() -> None:
        metrics = Page(200, b"giaann_x 1\n")
        async with seen(options, lambda: state["now"], lambda: metrics):
            await ask(state)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_the_status_file_follows_the_state(tmp_path: Path) -> None:
    path = tmp_path / "status.json"

    def state() -> str:
        found = StatusFile(path).read()
        return found.state if found else ""

    async def ask(now: dict[str, Status]) -> None:
        await until(lambda: state() == "syncing")
        now["now"] = Status(state=READY, peer="me")
        await until(lambda: state() == READY)
        found = StatusFile(path).read()
        assert found is not None
        assert (found.pid, found.peer, found.metrics_port) == (os.getpid(), "me", 0)

    shown(Options(status_file=str(path)), ask)


def test_a_status_file_that_cannot_be_written_does_no_further_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(now: dict[str, Status]) -> None:
        await until(lambda: "status.json" in caplog.text)

    shown(Options(status_file=str(tmp_path / "none" / "status.json")), ask)


def test_pages_tell_whether_it_lives_and_is_ready(tmp_path: Path) -> None:
    path = tmp_path / "status.json"

    async def get(port: int, page: str) -> tuple[bytes, bytes]:
        server = type("Server", (), {"port": port})()
        head, _, body = (await said(server, f"GET {page} HTTP/1.1\r\n\r\n".encode())).partition(
            b"\r\n\r\n"
        )
        return head.split(b" ", 2)[1], body

    async def ask(now: dict[str, Status]) -> None:
        await until(path.exists)
        found = StatusFile(path).read()
        assert found is not None
        port = found.metrics_port
        assert port > 0
        assert await get(port, "/healthz") == (b"200", b"ok\n")
        assert await get(port, "/readyz") == (b"503", b"syncing\n")
        assert await get(port, "/metrics") == (b"200", b"giaann_x 1\n")
        now["now"] = Status(state=READY)
        assert await get(port, "/readyz") == (b"200", b"ready\n")
        now["now"] = Status(state=READY, note="nearly full")
        assert await get(port, "/readyz") == (b"200", b"ready; nearly full\n")
        now["now"] = Status(state="draining")
        assert await get(port, "/readyz") == (b"503", b"draining\n")

    shown(Options(metrics_port=0, status_file=str(path)), ask)


def test_freed_memory_is_given_back_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[int]()
    monkeypatch.setattr(process, "_TIDY_EVERY", 0.01)
    monkeypatch.setattr(process, "give_back", lambda: given.append(1))

    async def story() -> None:
        node = Node()
        living = asyncio.create_task(last(node))
        await until(lambda: len(given) > 2)
        await node.close()
        assert await living == 0
        tidied = len(given)
        await asyncio.sleep(0.05)
        assert len(given) <= tidied + 1

    asyncio.run(story())


def test_the_unit_in_the_docs_takes_a_peer_that_left_something_behind_for_one_that_left() -> None:
    """Or systemd would start again what was told to leave."""
    unit = UNIT.read_text().partition("[Service]")[2].partition("```")[0].splitlines()
    assert "Restart=on-failure" in unit
    assert f"SuccessExitStatus={LEFT_BEHIND}" in unit
