"""`giaann fsck` asks again while replicas differ, and counts the seconds down; or does not wait."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from giaann_p2p import Brain
from giaann_p2p.cli import fsck as command
from giaann_p2p.model.digest import digest, readable
from giaann_p2p.model.usual import new_spec
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import Cut
from giaann_p2p.swarm.members.checkup import Report
from giaann_p2p.swarm.members.losses import NONE
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules

A = Peer(bytes(32))
GOOD = Report(
    shards=4, rows=9, connections=50, digest="d" * 64, lost=[], apart=[], under=[], damaged=[],
    silent=[],
)  # fmt: skip


def report(apart: int = 0, silent: int = 0) -> Report:
    changes = {"apart": [*range(apart)], "silent": [A] * silent}
    return Report(**{name: getattr(GOOD, name) for name in GOOD.__struct_fields__} | changes)


class Terminal:
    """Standard error, which remembers what it is told."""

    is_terminal = True

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: list[str] = []

    @contextmanager
    def status(self, _: str) -> Iterator["Terminal"]:
        yield self

    def update(self, text: str) -> None:
        self.shown.append(text)


class Swarm:
    """A swarm of which one check after another says what a test wants; the last is repeated."""

    def __init__(self, *reports: Report) -> None:
        self.asked = 0
        self.place = SimpleNamespace(transport=None)
        self.manifest = None
        self.around = SimpleNamespace(rules=Rules(4, 5))
        self.gate = SimpleNamespace(hear=lambda answer: None)
        self._reports = reports

    async def join_dht(self) -> None:
        pass

    def storage_peers(self) -> list[Peer]:
        return [A]

    def losses(self) -> object:
        return NONE

    async def checked(
        self, _: object, rules: Rules, *__: object, losses: object, heard: object
    ) -> Report:
        assert (losses, rules.replicas, heard) == (NONE, 5, self.gate.hear)
        self.asked += 1
        return self._reports[min(self.asked, len(self._reports)) - 1]

    def visited(self, _: str) -> AbstractAsyncContextManager["Swarm"]:
        return nullcontext(self)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    found = Terminal()
    monkeypatch.setattr(command, "errors", lambda: found)
    monkeypatch.setattr(command, "complain", found.lines.append)
    monkeypatch.setattr(command, "_EVERY", 0.03)
    monkeypatch.setattr(command, "_SECOND", 0.01)
    return found


def fsck(monkeypatch: pytest.MonkeyPatch, swarm: Swarm, **given: object) -> int:
    """Check a swarm; return the exit code."""
    monkeypatch.setattr("giaann_p2p.cli.visiting.visiting", swarm.visited)
    monkeypatch.setattr("giaann_p2p.client.checkup.checked", swarm.checked)
    options: dict[str, object] = {"against": None, "wait": 30.0, "no_wait": False, "as_json": True}
    try:
        command.fsck("link", **options | given)  # type: ignore[arg-type]
    except typer.Exit as end:
        return end.exit_code
    return 0


def test_a_swarm_with_cut_columns_equals_a_database_without(
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Brain.open(tmp_path / "solo", new_spec("words")) as brain:
        brain.train("The cat sat on the mat of the house with the dog in the evening.")
        knowledge, uncut = brain.knowledge, brain.digest()
    cut = cut_columns((Cut("mat", 4), Cut("house", 2)))
    digests = {"cut": readable(digest(cut.cut(knowledge))), "uncut": uncut}
    assert len({*digests.values()}) == 2
    forms = {"always": (cut,), "never": (cut_columns(()),), "later": (cut_columns(()), cut)}
    for (which, form), content in product(forms.items(), digests):
        fields = {name: getattr(GOOD, name) for name in GOOD.__struct_fields__}
        swarm = Swarm(Report(**fields | {"digest": digests[content]}))
        swarm.around.rules = Rules(4, 5, sizes=(64, 128)[: len(form)], cuts=form)
        is_equal = (which == "always") == (content == "cut")
        assert fsck(monkeypatch, swarm, against=tmp_path / "solo") == (not is_equal)
        assert json.loads(capsys.readouterr().out)["equal"] == is_equal
        told = "\n".join(terminal.lines)
        is_excused = which == "later" and not is_equal
        assert ("only a database that giaann pull has made" in told) == is_excused
        terminal.lines.clear()


def test_it_asks_until_all_is_well_and_counts_down(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    swarm = Swarm(report(apart=2), report(apart=1), report(silent=1), GOOD)
    assert fsck(monkeypatch, swarm) == 0
    assert swarm.asked == 4
    for line, why in zip(
        terminal.lines,
        ["not all replicas agree yet", "1 peer is silent, and may come back"],
        strict=True,  # each reason once
    ):
        assert line == f"{why}; asking again for 30 s more (--no-wait does not wait)"
    assert set(terminal.shown) == {"asking again for 30 s more"}


def test_seconds_are_counted_down(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_EVERY", 1.3)
    monkeypatch.setattr(command, "_SECOND", 0.5)
    asyncio.run(_paused_for(7.9))
    assert terminal.shown == [f"asking again for {seconds} s more" for seconds in (8, 7, 7)]


async def _paused_for(seconds: float) -> None:
    await command._paused(asyncio.get_running_loop().time() + seconds)


@pytest.mark.parametrize("given", [{"no_wait": True}, {"wait": 0.0}])
def test_it_does_not_wait_if_it_is_not_to(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, given: dict[str, object]
) -> None:
    swarm = Swarm(report(apart=2), GOOD)
    assert fsck(monkeypatch, swarm, **given) == 1
    assert (swarm.asked, terminal.lines, terminal.shown) == (1, [], [])


def test_when_the_time_is_up_it_says_what_differs(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    swarm = Swarm(report(apart=2))
    assert fsck(monkeypatch, swarm, wait=0.1) == 1
    assert swarm.asked > 2
    assert len(terminal.lines) == 1
