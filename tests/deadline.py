"""`--begin-within SECONDS`: no test begins later than that, and those left out are named.

A run that left out all tests fails.

CI has a limit, and a slow machine would be cut off in the middle of a test of real processes.
"""

import time

import pytest


def add_option(parser: pytest.Parser) -> None:
    parser.addoption(
        "--begin-within",
        type=float,
        metavar="SECONDS",
        help="begin no test later than this after the start; name those that were left out",
    )


class Deadline:
    """A plugin that leaves out the tests that would begin after some seconds."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._left_out: list[str] = []
        self._began = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if time.monotonic() < self._end:
            self._began += 1
            return None
        self._left_out.append(item.nodeid)
        return True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._left_out and not self._began:  # a run without any test has shown nothing
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._left_out:
            terminalreporter.section(f"{len(self._left_out)} tests left out: the time is up")
            for name in self._left_out:
                terminalreporter.line(name)


def configure(config: pytest.Config) -> None:
    seconds: float | None = config.getoption("--begin-within")
    if seconds is None:
        return
    if config.getoption("numprocesses", default=None):
        raise pytest.UsageError("--begin-within and -n: workers do not tell which tests began")
    config.pluginmanager.register(Deadline(seconds))
