"""Whether a machine has what a storage peer takes."""

import os
import resource
from errno import EACCES
from pathlib import Path

import pytest

from giaann_p2p.client.doctor import machine
from giaann_p2p.store.home import locked

GIB = 1 << 30


def plan(columns: int, remembered: int = 0, cold: int = 0) -> machine.DiskPlan:
    return machine.DiskPlan(columns, remembered, cold)


@pytest.mark.parametrize(
    ("capacity", "available", "verdict", "told"),
    [
        (GIB, 4 * GIB, "ok", "4.0 GiB free"),
        (GIB, GIB, "problem", "1.0 GiB free"),
        (GIB, None, "note", "cannot be measured here"),
        (GIB, GIB + machine.PROCESS_BYTES, "ok", "up to 1.4 GiB needed"),
        (GIB, GIB + machine.PROCESS_BYTES - 1, "problem", "up to 1.4 GiB needed"),
    ],
)
def test_memory(capacity: int, available: int | None, verdict: str, told: str) -> None:
    found = machine.memory(capacity, available)
    assert found.verdict == verdict
    assert told in found.said


def test_too_much_memory_is_answered_by_how_much_would_do() -> None:
    found = machine.memory(8 * GIB, 2 * GIB)
    assert found.remedy == "give a --capacity of at most 1.6 GiB"
    assert "at most 0 B" in machine.memory(GIB, 1).remedy


def test_disk(tmp_path: Path) -> None:
    assert machine.disk(tmp_path / "not" / "there", plan(1 << 20)).verdict == "ok"
    found = machine.disk(tmp_path, plan(1 << 60))
    assert found.verdict == "problem"
    assert "free some space" in found.remedy


def test_what_is_remembered_takes_disk_and_cold_copies_take_what_is_left(tmp_path: Path) -> None:
    assert machine.disk(tmp_path, plan(0, remembered=1 << 60)).verdict == "problem"
    found = machine.disk(tmp_path, plan(0, cold=1 << 60))
    assert found.verdict == "note"
    assert "give a --cold of at most" in found.remedy


def test_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.folder(tmp_path / "a" / "b").said.endswith("can be created")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "kept").touch()
    assert machine.folder(tmp_path).said.endswith("can be used")
    with locked(tmp_path):
        found = machine.folder(tmp_path)
    assert (found.verdict, found.said) == ("problem", f"another process uses {tmp_path}")
    assert machine.folder(tmp_path / "kept").said.endswith("is not a folder")
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = machine.folder(tmp_path / "new")
    assert (found.verdict, "cannot be written to" in found.said) == ("problem", True)


def test_a_folder_that_may_not_be_searched_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    for found in (machine.folder(Path("/locked/in")), machine.disk(Path("/locked/in"), plan(1))):
        assert (found.verdict, found.said) == ("problem", "/locked/in: Permission denied")


def test_a_folder_that_cannot_be_opened_is_not_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: int) -> int:
        raise PermissionError(EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    found = machine.folder(tmp_path)
    assert (found.verdict, found.said) == ("problem", f"{tmp_path}: Permission denied")


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        (256, "problem"),
        (511, "problem"),
        (512, "note"),
        (1024, "note"),
        (2048, "ok"),
        (resource.RLIM_INFINITY, "ok"),
    ],
)
def test_open_files(limit: int, verdict: str) -> None:
    found = machine.files(limit)
    assert found.verdict == verdict
    assert bool(found.remedy) == (verdict != "ok")


def test_the_folder_is_looked_at_only_if_there_is_one(tmp_path: Path) -> None:
    checks = [found.check for found in machine.machine(None, GIB, plan(1))]
    assert checks == ["memory", "open files"]
    checks = [found.check for found in machine.machine(tmp_path, GIB, plan(1))]
    assert checks == ["memory", "folder", "disk", "open files"]
