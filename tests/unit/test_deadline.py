"""Tests begin within the time given, or are named as left out."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.deadline import Deadline, configure


class Terminal:
    """What is written at the end of a run."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def section(self, title: str) -> None:
        self.lines.append(title)

    def line(self, text: str) -> None:
        self.lines.append(text)


class Config:
    """The options of a run, and its plugins."""

    def __init__(self, **options: object) -> None:
        self.options, self.plugins = options, list[Any]()
        self.pluginmanager = SimpleNamespace(register=self.plugins.append)

    def getoption(self, name: str, default: object = None) -> object:
        return self.options.get(name, default)


@pytest.mark.parametrize("seconds", [0.0, -60.0, 3600.0])
def test_what_would_begin_too_late_is_left_out_and_named(seconds: float) -> None:
    config, terminal = Config(**{"--begin-within": seconds}), Terminal()
    configure(cast("pytest.Config", config))
    (deadline,) = config.plugins
    assert isinstance(deadline, Deadline)
    ran = [deadline.pytest_runtest_protocol(cast("pytest.Item", item)) for item in ITEMS]
    session = SimpleNamespace(exitstatus=0)
    deadline.pytest_sessionfinish(cast("pytest.Session", session))
    assert session.exitstatus == (0 if seconds > 0 else pytest.ExitCode.NO_TESTS_COLLECTED)
    deadline.pytest_terminal_summary(cast("pytest.TerminalReporter", terminal))
    if seconds > 0:
        assert ran == [None, None]
        assert terminal.lines == []
    else:
        assert ran == [True, True]
        assert terminal.lines == ["2 tests left out: the time is up", "tests/a.py::a", "b"]


ITEMS = [SimpleNamespace(nodeid="tests/a.py::a"), SimpleNamespace(nodeid="b")]


def test_all_begin_unless_told_otherwise() -> None:
    config = Config(numprocesses=3)
    configure(cast("pytest.Config", config))
    assert config.plugins == []


def test_workers_are_refused_since_they_would_leave_tests_out_silently() -> None:
    with pytest.raises(pytest.UsageError, match="--begin-within and -n"):
        configure(cast("pytest.Config", Config(**{"--begin-within": 1.0, "numprocesses": 2})))
