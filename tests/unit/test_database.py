"""The brain's file: whole or not at all, and never a wrong value."""

import errno
import os
import random
from pathlib import Path

import numpy as np
import pytest

from giaann_p2p import Brain, DatabaseError, ModelSpec
from giaann_p2p.solo import database

TEXT = "Bees make honey from the nectar that they collect from flowers in the summer."


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with Brain.open(tmp_path) as brain:
        brain.train(TEXT)
    return tmp_path


def test_what_is_saved_is_what_is_loaded(directory: Path, tmp_path: Path) -> None:
    state = database.load(directory)
    copy = tmp_path / "copy"
    copy.mkdir()
    database.save(copy, state)
    again = database.load(copy)
    assert again.knowledge.digest() == state.knowledge.digest()
    assert (again.spec, again.jobs) == (state.spec, state.jobs)


@pytest.mark.filterwarnings("ignore::UserWarning")  # numpy's, of a header it can no longer read
def test_a_flipped_byte_is_refused_or_harmless(directory: Path) -> None:
    file = directory / "brain.npz"
    good, state = file.read_bytes(), database.load(directory)
    refused = 0
    for at in random.Random(1).sample(range(len(good)), 400):
        bad = bytearray(good)
        bad[at] ^= 0xFF
        file.write_bytes(bad)
        try:
            found = database.load(directory)
        except DatabaseError:
            refused += 1
            continue
        assert found.knowledge.digest() == state.knowledge.digest()
        assert (found.spec, found.jobs) == (state.spec, state.jobs)
    assert refused > 200


@pytest.mark.parametrize("size", [0, 1, 100, -1])
def test_a_cut_file_is_refused(directory: Path, size: int) -> None:
    file = directory / "brain.npz"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(DatabaseError, match="damaged"):
        database.load(directory)


def test_a_later_format_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = database.load(directory)
    monkeypatch.setattr(database, "FORMAT", 2)
    database.save(directory, state)
    monkeypatch.undo()
    with pytest.raises(DatabaseError, match="has format 2; this version reads 1"):
        database.load(directory)


@pytest.mark.parametrize("step", ["savez", "fsync", "replace"])
def test_a_failing_disk_leaves_what_was_saved_before(
    directory: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    before = database.load(directory).knowledge.digest()

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Brain.open(directory) as brain:
        target: object = {"savez": np, "fsync": os, "replace": Path}[step]
        monkeypatch.setattr(target, step, fail)
        with pytest.raises(DatabaseError, match="No space left on device"):
            brain.train(
                TEXT + " Wasps come for the honey of the bees in autumn, and they are many."
            )
        monkeypatch.undo()
    assert database.load(directory).knowledge.digest() == before
    assert sorted(file.name for file in directory.iterdir()) == ["brain.npz"]


def test_only_one_may_write_but_all_may_read(directory: Path) -> None:
    with Brain.open(directory):
        with pytest.raises(DatabaseError, match="another process is learning"):
            Brain.open(directory)
        with Brain.open(directory, readonly=True) as reader:
            assert reader.knowledge.connections


def test_the_lock_is_let_go_when_opening_fails(directory: Path) -> None:
    for _ in range(2):
        with pytest.raises(Exception, match="another model"):
            Brain.open(directory, ModelSpec(seed_tokens=8))
    with Brain.open(directory) as brain:
        assert brain.spec.seed_tokens == 12


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseError, match="file"):
        Brain.open(tmp_path / "file" / "brain")
