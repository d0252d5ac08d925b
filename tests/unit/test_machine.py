"""What memory there is, and what a storage peer may promise of it."""

from pathlib import Path

import pytest

from giaann_p2p import machine
from giaann_p2p.errors import UsageError

GIB = 1 << 30


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with what a system tells of itself."""
    (tmp_path / "meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:   1000 kB\n")
    (tmp_path / "cgroup").write_text("0::/some.slice/of.service\n")
    (tmp_path / "groups/some.slice/of.service").mkdir(parents=True)
    monkeypatch.setattr(machine, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "_OWN_GROUP", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "_CGROUP", tmp_path / "groups")
    return tmp_path


def test_without_a_limit_it_is_the_machines(here: Path) -> None:
    assert (machine.memory(), machine.available_memory()) == (9000 << 10, 1000 << 10)
    (here / "meminfo").write_text("MemAvailable: much\n")
    assert (machine.memory(), machine.available_memory()) == (None, None)


@pytest.mark.parametrize("group", [".", "some.slice", "some.slice/of.service"])
def test_the_tightest_limit_counts(here: Path, group: str) -> None:
    folder = here / "groups" / group
    (folder / "memory.current").write_text("200\n")
    (folder / "memory.max").write_text("max\n")
    assert (machine.memory(), machine.available_memory()) == (9000 << 10, 1000 << 10)
    (folder / "memory.max").write_text("5000\n")
    assert (machine.memory(), machine.available_memory()) == (5000, 4800)
    (folder / "memory.max").write_text("100\n")
    assert (machine.memory(), machine.available_memory()) == (100, 0)


def test_a_group_that_is_not_seen_here_does_no_harm(here: Path) -> None:
    (here / "cgroup").write_text("0::/elsewhere/../..\n")
    assert machine.memory() == 9000 << 10
    (here / "cgroup").unlink()
    assert machine.memory() == 9000 << 10


def test_nobody_promises_more_than_there_is() -> None:
    machine.check_capacity(GIB, GIB + machine.PROCESS_BYTES)
    machine.check_capacity(GIB, None)
    with pytest.raises(UsageError, match=r"127\.0 TiB is more than there is.*at most 1\.6 GiB, or"):
        machine.check_capacity(127 << 40, 2 * GIB)
    with pytest.raises(UsageError, match="give at most 0 B"):
        machine.check_capacity(GIB, 1)
