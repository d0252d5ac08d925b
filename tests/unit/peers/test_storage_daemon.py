"""What a storage peer is told on the command line reaches its store."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from peers.command import command
from peers.folder import Folder
from peers.storage.daemon import store_of
from peers.storage.options import StorageOptions
from tests.unit.node.helpers import ALL, JOB, MANIFEST, lesson


def told(*arguments: str) -> StorageOptions:
    """Return what a command line comes to."""
    app, seen = typer.Typer(), list[StorageOptions]()
    app.command()(command(StorageOptions, seen.append, "Do it."))
    result = CliRunner().invoke(app, ["--join", "x", *arguments])
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
