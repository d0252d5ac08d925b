"""A client's p2pd, which starts while the client is imported."""

import asyncio
import sys
from pathlib import Path

import pytest

from giaann_p2p.client import launch as module
from giaann_p2p.client.launch import launched
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.program import DaemonError
from tests.unit.net.hive.helpers import runs, until


def children() -> set[int]:
    """Return the processes that this one has started, and that run."""
    found = set[int]()
    for task in Path("/proc/self/task").iterdir():
        found |= {*map(int, (task / "children").read_text().split())}
    return {pid for pid in found if runs(pid)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for all sockets and keys, which must be empty at the end."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_p2pd_starts_beside_an_import_and_ends_with_the_context(folder: Path) -> None:
    async def main() -> None:
        before = children()
        async with launched() as launch:
            await launch.meanwhile("this")
            assert "this" in sys.modules
            host = await launch.host()
            assert host.me == launch.me
            assert await launch.host() is host
            assert host.pid in children()
        assert children() <= before

    asyncio.run(main())
    assert list(folder.iterdir()) == []


def test_what_is_given_up_while_it_starts_leaves_nothing(folder: Path) -> None:
    async def main() -> None:
        before = children()
        for begins in (False, True):
            async with launched():
                if begins:
                    await until(lambda: children() > before)
        assert children() <= before

    asyncio.run(main())
    assert list(folder.iterdir()) == []


def test_a_p2pd_that_cannot_start_is_told_to_who_waits_for_it(folder: Path) -> None:
    async def main() -> None:
        async with launched(HostConfig(listen=("/ip4/203.0.113.9/tcp/0",))) as launch:
            with pytest.raises(DaemonError):
                await launch.host()

    asyncio.run(main())
    assert list(folder.iterdir()) == []
