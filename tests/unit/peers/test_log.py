"""What daemons write to their standard error."""

import json
import logging
import re

import pytest

from peers.log import log_to_stderr


@pytest.mark.parametrize("name", ["giaann.storage", "giaann_p2p.net.hive.host"])
def test_lines_for_people(capsys: pytest.CaptureFixture[str], name: str) -> None:
    log_to_stderr(as_json=False)
    log = logging.getLogger(name)
    log.info("ready %d/%d shards", 3, 4)
    log.debug("nobody is to see this")
    log.warning("said by a stranger: \x1b[31mred\x07")
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d ready 3/4 shards", first)
    assert re.fullmatch(r"\d\d:\d\d:\d\d warning: said by a stranger: \?\[31mred\?", second)


def test_lines_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(as_json=True, level="debug")
    log = logging.getLogger("giaann.storage")
    log.debug("of little weight")
    try:
        raise ValueError("no luck")
    except ValueError:
        log.exception("it failed")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert first["time"] > 1e9
    assert {**first, "time": 0} == {
        "time": 0,
        "level": "debug",
        "logger": "giaann.storage",
        "message": "of little weight",
    }
    assert second["level"] == "error"
    assert "ValueError: no luck" in second["error"]


def test_an_error_comes_with_where_it_happened(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(as_json=False)
    try:
        raise ValueError("no luck")
    except ValueError:
        logging.getLogger("giaann.storage").exception("it failed")
    assert "error: it failed\nTraceback" in capsys.readouterr().err
