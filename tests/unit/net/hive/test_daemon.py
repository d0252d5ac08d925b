"""p2pd as a child process: asyncio alone waits for it."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.daemon import Daemon, DaemonError

_WAITS = [sys.executable, "-c", "import sys; print('Peer ID: x', flush=True); sys.stdin.read()"]


async def _daemon() -> Daemon:
    pipe = asyncio.subprocess.PIPE
    daemon = Daemon(await asyncio.create_subprocess_exec(*_WAITS, stdin=pipe, stdout=pipe))
    await daemon._ready
    return daemon


def _polls(process: "subprocess.Popen[bytes]") -> int:
    raise AssertionError(f"{process.pid} was polled")


@pytest.mark.parametrize("gently", [True, False])
def test_a_signal_never_takes_the_exit_code_from_asyncio(
    gently: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def ended() -> str:
        daemon = await _daemon()
        monkeypatch.setattr(subprocess.Popen, "poll", _polls)
        if gently:
            await daemon.stop()
        else:
            daemon.kill()
        return await daemon.ended()

    with caplog.at_level(logging.WARNING):
        said = asyncio.run(ended())
    assert said == f"p2pd ended with exit code {-15 if gently else -9}: Peer ID: x"
    assert not caplog.records


def test_settings_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    config = HostConfig(relay=False)
    socket = tmp_path / "gone" / "p2pd.sock"
    with pytest.raises(DaemonError, match=r"gone/p2pd\.json: No such file or directory; free"):
        asyncio.run(Daemon.start(tmp_path / "key", socket, config))


def test_a_signal_to_a_process_that_has_ended_is_no_error() -> None:
    async def again() -> None:
        daemon = await _daemon()
        daemon.kill()
        await daemon.ended()
        daemon.kill()
        await daemon.stop()

    asyncio.run(again())
