"""What a storage peer is told on the command line reaches its store."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from giaann_p2p.errors import StoreError, UsageError
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.wire.manifest import Rules
from peers.command import command
from peers.folder import Folder
from peers.storage import daemon
from peers.storage.daemon import listed, prepared, renew, store_of
from peers.storage.options import StorageOptions
from tests.unit.node.helpers import ALL, JOB, MANIFEST, lesson
from tests.unit.peers.helpers import LINK


def told(*arguments: str) -> StorageOptions:
    """Return what a command line comes to."""
    app, seen = typer.Typer(), list[StorageOptions]()
    app.command()(command(StorageOptions, seen.append))
    result = CliRunner().invoke(app, ["--join", LINK, *arguments])
    assert result.exit_code == 0, result.output
    (options,) = seen
    return options


@pytest.mark.parametrize(
    ("arguments", "remembered"),
    [
        ((), {0, 1, 2, 3}),
        (("--remember", "1MiB"), {0, 1, 2, 3}),
        (("--remember", "9kB"), {2, 3}),  # a small record counts as 4,000 bytes
        (("--remember", "0"), set()),
        (("--remember", "1MiB", "--memory-only"), set()),
    ],
)
def test_a_storage_peer_remembers_what_it_was_told_to(
    tmp_path: Path, arguments: tuple[str, ...], remembered: set[int]
) -> None:
    options = told(*arguments)
    with Folder(tmp_path) as folder, store_of(options, folder, MANIFEST) as store:
        store.hold(ALL.tolist())
        for chunk in range(4):
            store.apply([lesson(chunk, store.limits)])
            assert chunk in {kept.chunk for kept in store.kept()}
            store.release(JOB, [chunk])
        assert {kept.chunk for kept in store.kept()} == remembered
    if options.memory_only:
        return
    with Folder(tmp_path) as folder, store_of(options, folder, MANIFEST) as store:
        assert {kept.chunk for kept in store.kept()} == remembered  # after a restart as well


def test_cold_copies_that_cannot_be_read_are_told_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = told()
    with Folder(tmp_path) as folder, store_of(options, folder, MANIFEST) as store:
        store.hold(ALL.tolist())
        for shard in range(9):
            store.cool(shard, 0.0)
    with Folder(tmp_path) as folder, store_of(options, folder, MANIFEST):
        assert caplog.messages == []
    for shard in (3, 5):
        (folder.store / f"cold-{shard:05d}").write_bytes(b"x")
    with Folder(tmp_path) as folder, store_of(options, folder, MANIFEST):
        (said,) = caplog.messages
    assert said.startswith(
        f"2 cold copies in {folder.store} cannot be read, and will not be used: cold-00003,"
        " cold-00005. "
    )
    assert "`giaann fsck --join LINK`" in said
    for shard in range(9):
        (folder.store / f"cold-{shard:05d}").write_bytes(b"x")
    with Folder(tmp_path) as folder, store_of(options, folder, MANIFEST):
        assert "cold-00007, .... " in caplog.messages[-1]


def test_a_peer_whose_store_could_not_be_opened_is_not_announced_again(tmp_path: Path) -> None:
    """Or one with a damaged store, that is started again and again, would keep its shards."""
    options, shards = told(), MANIFEST.layout.shards
    with Folder(tmp_path) as folder:
        with prepared(options, folder, MANIFEST, shards) as store:
            store.hold([3, 4])
        found, layout = listed(folder)
        assert (found.tolist(), layout) == ([3, 4], MANIFEST.layout)
        with pytest.raises(StoreError, match="could not be opened the last time"):
            listed(folder)
        with prepared(options, folder, MANIFEST, 2 * shards) as store:
            assert len(store.shards) == 4
        assert listed(folder)[1].shards == 2 * shards


def test_a_store_that_cannot_be_prepared_is_closed(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        with pytest.raises(UsageError, match="--renew"):
            prepared(told("--renew", "99"), folder, MANIFEST, MANIFEST.layout.shards)
        with prepared(told(), folder, MANIFEST, MANIFEST.layout.shards):
            pass  # it is not locked


def test_what_is_to_be_renewed_is_dropped_and_nothing_else(tmp_path: Path) -> None:
    options = told("--renew", "3, 5")
    with Folder(tmp_path) as folder, store_of(options, folder, MANIFEST) as store:
        store.hold([3, 4])
        renew(store, options.renewed)
        assert store.shards.tolist() == [4]
        renew(store, [])
        assert store.shards.tolist() == [4]
        for wrong in (-1, MANIFEST.layout.shards):
            with pytest.raises(UsageError, match=f"shards 0 to 15, and no shard {wrong}"):
                renew(store, [4, wrong])
        assert store.shards.tolist() == [4]


def test_a_shard_that_is_only_cold_is_renewed_as_well(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Or the copy that differs would come back into memory when this peer owns the shard again."""
    caplog.set_level(logging.INFO)
    with Folder(tmp_path) as folder, store_of(told(), folder, MANIFEST) as store:
        store.hold([3, 4])
        store.cool(3, 0.0)
        store.cool(4, 0.0)
        store.drop([3, 4])
        renew(store, [3])
        assert sorted(store.cold.copies) == [4]
    assert "dropped for --renew, and fetched again later: shards [3]" in caplog.text
    with Folder(tmp_path) as folder, store_of(told(), folder, MANIFEST) as store:
        assert sorted(store.cold.copies) == [4]


@pytest.mark.parametrize("wrong", ["x", "1,x", "1.5", "1-3"])
def test_what_is_no_shards_number_is_told(wrong: str) -> None:
    with pytest.raises(UsageError, match="renew must be numbers of shards, such as 3,17"):
        StorageOptions(join="x", renew=wrong)


def test_shards_are_divided_at_the_start_before_some_are_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever names shards goes by the edition that counts now."""
    first = MANIFEST.layout.shards
    rules = Rules(2 * first, founding_shards=first)
    with Folder(tmp_path) as folder, store_of(told(), folder, MANIFEST) as store:
        store.hold([3, 5])
    served = list[list[int]]()

    @asynccontextmanager
    async def context(*_: object) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(gate=SimpleNamespace(rules=lambda: rules))

    async def run(node: Store, *_: object) -> int:
        served.append(node.shards.tolist())
        return 0

    @asynccontextmanager
    async def joined(*_: object) -> AsyncIterator[SimpleNamespace]:
        with Folder(tmp_path) as folder:
            yield SimpleNamespace(folder=folder, manifest=MANIFEST, context=context, run=run)

    monkeypatch.setattr(daemon, "joined", joined)
    monkeypatch.setattr(daemon, "StorageNode", lambda context, store, **_: store)
    monkeypatch.setattr(daemon, "_departure", lambda *_: None)
    assert asyncio.run(daemon.serve(told("--renew", f"3,{5 + first}"))) == 0
    assert served == [[5, 3 + first]]
