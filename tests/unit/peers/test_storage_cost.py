"""What a storage peer says at start of what it takes, and whether it may take that."""

from pathlib import Path

import pytest

from giaann_p2p.errors import UsageError
from peers.storage.cost import costs
from peers.storage.daemon import main
from peers.storage.options import StorageOptions
from tests.unit.peers.helpers import LINK

FOLDER = Path("/data")
GIB = 1 << 30


def said(memory: int | None = 8 * GIB, **given: object) -> dict[str, str]:
    options = StorageOptions(join="x", **given)  # type: ignore[arg-type]
    lines = costs(options, FOLDER, memory, 90 * GIB)
    return dict(line.split(": ", 1) for line in lines)


def test_what_it_takes_and_what_leaving_costs_by_default() -> None:
    assert said() == {
        "memory": "up to 1.0 GiB (--capacity), and 450.0 MiB for the process itself; "
        "8.0 GiB are free",
        "disk": "up to 576.0 MiB in /data, and up to 64.0 GiB of cold copies (--cold); "
        "90.0 GiB are free",
        "network": "up to 50MB/s while it fetches shards (--bandwidth), besides reads and updates",
        "leaving": "Ctrl-C hands its shards over, for up to 10 min (--leave-within), and a "
        "second Ctrl-C ends it at once; what is not handed over stays in /data, and the same "
        "command brings it back",
    }


def test_what_was_told_otherwise() -> None:
    found = said(None, memory_only=True, bandwidth="0", leave_within=0.0)
    assert found["memory"].endswith("for the process itself")
    assert found["disk"].startswith("a few kilobytes in /data")
    assert found["network"].startswith("as much as there is while")
    assert ", without limit (--leave-within)" in found["leaving"]
    assert found["leaving"].endswith("is lost, unless another peer has it")


def test_more_than_the_machine_has_is_refused_unless_forced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served: list[StorageOptions] = []
    monkeypatch.setattr("peers.storage.daemon.run", lambda _, options: served.append(options))
    monkeypatch.setattr("peers.storage.daemon.serve", lambda _: None)
    monkeypatch.setattr("peers.storage.options.memory", lambda: 2 * GIB)
    huge = ["--join", LINK, "--capacity", "127TiB", "--memory-only"]
    assert main(huge) == UsageError.exit_code
    assert "--capacity 127.0 TiB is more than there is" in capsys.readouterr().err
    assert served == []
    assert main([*huge, "--force"]) == 0
    assert main(["--join", LINK, "--capacity", "1GiB"]) == 0
    assert [one.capacity for one in served] == ["127TiB", "1GiB"]
