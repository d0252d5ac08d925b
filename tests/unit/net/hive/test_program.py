"""Only a p2pd that is known is started."""

import hashlib
from pathlib import Path

import pytest

from giaann_p2p.net.hive import program as module
from giaann_p2p.net.hive.daemon import Daemon
from giaann_p2p.net.hive.program import KNOWN, OWN, DaemonError, check, known_program
from tests.unit.net.hive.helpers import Place, hosts


def test_the_installed_one_is_known_and_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OWN, raising=False)
    program = known_program()
    assert hashlib.sha256(program.read_bytes()).hexdigest() in KNOWN
    read = module._digest.cache_info().misses
    assert known_program() == program
    assert module._digest.cache_info().misses == read


def test_another_one_is_refused_unless_its_user_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(OWN, raising=False)
    own = tmp_path / "p2pd"
    own.write_bytes(known_program().read_bytes())
    check(own)
    own.write_bytes(own.read_bytes() + b"\0")
    digest = hashlib.sha256(own.read_bytes()).hexdigest()
    with pytest.raises(DaemonError, match=f"not started: its SHA-256 is {digest}.*{OWN}={digest}"):
        check(own)
    monkeypatch.setenv(OWN, digest.upper())
    check(own)
    monkeypatch.setenv(OWN, "0" * 64)
    with pytest.raises(DaemonError, match="Install it again"):
        check(own)
    with pytest.raises(DaemonError, match="cannot be read"):
        check(tmp_path / "none")


def test_nothing_is_started_that_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    other = tmp_path / "p2pd"
    other.write_text(f"#!/bin/sh\ntouch {started}\n")
    other.chmod(0o755)
    monkeypatch.setattr(module, "HIVEMIND", tmp_path / "package")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "hivemind_cli").symlink_to(tmp_path)

    async def story(place: Place) -> None:
        with pytest.raises(DaemonError, match="is not started"):
            await Daemon.start(place.folder / "a.key", place.folder / "s", place.config())

    hosts(story)
    assert not started.exists()
