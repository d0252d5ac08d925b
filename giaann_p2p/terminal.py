"""What every command shares: results on standard output, everything else on standard error.

A result is one line for people or, with `--json`, one JSON value for machines.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import msgspec
from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.spinner import Spinner
from rich.text import Text

from giaann_p2p.errors import GiaannError

EXIT_CODES = """Exit codes: 0 done; 1 it failed, and standard error says why; 2 wrong usage; \
3 nothing comes to mind; 4 a peer left, and could not hand over what it keeps; \
130 interrupted (Ctrl-C)."""

FAILED, NOTHING, LEFT_BEHIND, INTERRUPTED = 1, 3, 4, 130

_WIDE = 1000
_NO_CHARACTER = "\N{REPLACEMENT CHARACTER}"
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str, end: str = "\n", flush: bool = True) -> None:
    """Write a result; `flush` so that it is seen at once."""
    with _output():
        sys.stdout.write(text + end)
        if flush:
            sys.stdout.flush()


def flush() -> None:
    """Have all results written that were not flushed."""
    with _output():
        sys.stdout.flush()


@contextmanager
def _output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # whoever reads has seen enough
        raise
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  (or it is flushed at the end)
        raise GiaannError(f"standard output cannot be written: {error.strerror}") from None


def show(what: RenderableType) -> None:
    """Write a result that is more than text."""
    console = Console()
    if not console.is_terminal:  # whoever reads a file or a pipe wants all of it
        console.width = _WIDE
    with _output():
        console.print(what, soft_wrap=True)


def harmless(text: str) -> Text:
    """Return what strangers wrote, so that it does nothing to the terminal: no colour, no bell."""
    return Text(printable(text))


def printable(text: str, also: str = "") -> str:
    """Return a text whose letters do nothing to a terminal; `also` names some that may stay."""
    return "".join(one if one.isprintable() or one in also else _NO_CHARACTER for one in text)


def say_json(value: object) -> None:
    """Write a result for machines."""
    say(msgspec.json.encode(value).decode())


def complain(text: str) -> None:
    """Write what went wrong; strangers may have said some of it."""
    errors.print(printable(readable(f"giaann: {text}"), also="\n"), markup=False)


def readable(text: str) -> str:
    """Return a command line's text without the bytes in it that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@contextmanager
def waiting(what: str, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """Show what is waited for until it ends, or until what is yielded is called.

    Only where somebody watches: nothing in a file or a pipe, nor if it is to be quiet.
    """
    if quiet or not errors.is_terminal:
        yield lambda: None
        return
    shown = Live(Spinner("line", Text(what)), console=errors, transient=True)
    shown.start(refresh=True)
    try:
        yield shown.stop
    finally:
        shown.stop()


@contextmanager
def joining(quiet: bool = False) -> Iterator[Callable[[], None]]:
    """Show that a swarm is being joined, which takes seconds, until what is yielded is called."""
    with waiting("joining the swarm ...", quiet) as over:
        yield over


@contextmanager
def progress_bar(label: str) -> Iterator["Bar"]:
    """Show a bar while it lasts; only where somebody watches."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[news]}"),
    )
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bars:
        yield Bar(bars, label)


class Bar:
    """A bar that is told how far it is, and what to say behind."""

    def __init__(self, bars: Progress, label: str) -> None:
        self._bars = bars
        self._task = bars.add_task(label, total=1.0, news="")

    def update(self, share: float, news: str) -> None:
        """Show how far it is, from 0 to 1."""
        self._bars.update(self._task, completed=share, news=news)


@contextmanager
def ctrl_c_told() -> Iterator[None]:
    """Say so when Ctrl-C stops a command."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        complain("interrupted")
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Interrupt:
    """Ctrl-C in work that asks now and then whether to stop.

    The first asks to stop in good order, the second stops at once; so does the first when the work
    has not begun to ask.
    """

    def __init__(self) -> None:
        self._asked = self._requested = False

    def __call__(self) -> bool:
        """Tell whether to stop."""
        self._asked = True
        return self._requested

    def __enter__(self) -> "Interrupt":
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._requested or not self._asked:
            complain("interrupted")
            raise KeyboardInterrupt
        self._requested = True
        complain("stopping after this chunk; Ctrl-C again to stop at once")
