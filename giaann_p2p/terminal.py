"""Terminal output of all commands: results on standard output, the rest on standard error.

A result is one line for people or, with `--json`, one JSON value for machines. Strangers may have
written parts of it, so no control character of theirs reaches the terminal.

Importing rich takes as long as a gateway takes to answer a prompt, so functions import it when they
need it.
"""

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from io import TextIOWrapper
from types import FrameType
from typing import TYPE_CHECKING, TextIO, cast

import msgspec

from giaann_p2p.errors import GiaannError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress
    from rich.text import Text

_WIDE = 1000
_NO_CHARACTER = "\N{REPLACEMENT CHARACTER}"
_ORDERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters, except tabs and newlines."""
_NOT_ASCII = re.compile(r"[^\t\n -~]")


@cache
def errors() -> "Console":
    """Return the console on standard error, for spinners and progress bars."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def open_streams() -> None:
    """Make the standard streams fit for any text, and open those that are closed.

    A letter that the output's encoding lacks is replaced, and input that is not text is left to
    `readable`. A closed stream is None to Python, and the next file that is opened would get its
    number, and with it what other libraries write there. Instead, input ends at once, and output is
    discarded.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, _nowhere(mode))
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "replace")):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=errors)


def write_utf_8() -> None:
    """Write results in UTF-8 from now on, whatever the terminal's encoding, because they are data.

    Otherwise letters would be lost that the encoding lacks.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")


def say(text: str, end: str = "\n", flush: bool = True) -> None:
    """Write a result, its control characters replaced; with `flush`, it is visible at once."""
    with _output():
        sys.stdout.write(_ORDERS.sub(_NO_CHARACTER, text) + end)
        if flush:
            sys.stdout.flush()


def flush() -> None:
    """Flush all results written so far."""
    with _output():
        sys.stdout.flush()


def typed(prompt: str) -> str:
    """Return a line of input, with each byte that is not UTF-8 replaced; EOFError at its end."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say(prompt, end="")
        prompt = ""
    try:
        return readable(input(prompt))  # on a terminal, so that editing the line spares the prompt
    except OSError as error:
        raise GiaannError(f"standard input cannot be read: {error.strerror}") from None


def _nowhere(mode: str) -> TextIO:
    """Return a stream that takes any text and has none."""
    return cast(TextIO, open(os.devnull, mode, encoding="utf-8", errors="replace"))  # noqa: PTH123


@contextmanager
def _output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # the reader has closed the pipe
        raise
    except OSError as error:
        sys.stdout = _nowhere("w")  # else the exit flushes the old one
        raise GiaannError(f"standard output cannot be written: {error.strerror}") from None


def show(what: "RenderableType") -> None:
    """Write a result that is more than plain text, such as a table."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:  # a file or a pipe gets everything
        console.width = _WIDE
    with _output():
        console.print(what, soft_wrap=True)


def harmless(text: str) -> "Text":
    """Return a stranger's text, made harmless for the terminal: no colour, no bell."""
    from rich.text import Text

    return Text(printable(text))


def printable(text: str, also: str = "") -> str:
    """Return a text with its unprintable characters replaced, except for those in `also`."""
    return "".join(one if one.isprintable() or one in also else _NO_CHARACTER for one in text)


def say_json(value: object, flush: bool = True) -> None:
    """Write a result as JSON, for machines; what cannot be written as it is, is escaped."""
    text = msgspec.json.encode(value).decode()
    escaped = _ORDERS if _has_letters_for(text) else _NOT_ASCII
    say(escaped.sub(_json_escape, text), flush=flush)


def _has_letters_for(text: str) -> bool:
    """Return whether the encoding of standard output has all letters of a text."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _json_escape(found: re.Match[str]) -> str:
    return "\\u" + found[0].encode("utf-16-be").hex("-", 2).replace("-", "\\u")


def complain(text: str) -> None:
    """Write an error message, made printable because strangers may have written parts of it."""
    remark(printable(readable(f"giaann: {text}"), also="\n"))


def remark(text: str) -> None:
    """Write lines that are not a result, to standard error."""
    sys.stderr.write(text + "\n")


def readable(text: str) -> str:
    """Return a command line's text with each byte that is not UTF-8 replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@contextmanager
def waiting(what: str, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """Show a spinner with this text until the block ends, or until the yielded function is called.

    It is shown only on a terminal: nothing appears in a file or a pipe, or if `quiet` is set.
    """
    if quiet or not _is_watched():
        yield lambda: None
        return
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    shown = Live(Spinner("line", Text(what)), console=errors(), transient=True)
    shown.start(refresh=True)
    try:
        yield shown.stop
    finally:
        shown.stop()


def _is_watched() -> bool:
    return sys.stderr.isatty()


@contextmanager
def joining(quiet: bool = False) -> Iterator[Callable[[], None]]:
    """Show until the yielded function is called that a swarm is being joined; it takes seconds."""
    with waiting("joining the swarm ...", quiet) as over:
        yield over


@contextmanager
def progress_bar(label: str) -> Iterator["Bar"]:
    """Show a progress bar during the block; only on a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[news]}"),
    )
    console = errors()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        yield Bar(bars, label)


class Bar:
    """A progress bar; its owner reports the share that is done, and a text to show after it."""

    def __init__(self, bars: "Progress", label: str) -> None:
        self._bars = bars
        self._task = bars.add_task(label, total=1.0, news="")

    def update(self, share: float, news: str) -> None:
        """Show the share that is done, from 0 to 1, and the text `news`."""
        self._bars.update(self._task, completed=share, news=news)


@contextmanager
def ctrl_c_told() -> Iterator[None]:
    """Report when Ctrl-C stops a command."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        complain("interrupted")
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Interrupt:
    """Handles Ctrl-C for work that checks now and then whether to stop.

    The first Ctrl-C requests an orderly stop, the second stops at once. Before the work's first
    check, the first Ctrl-C also stops at once.
    """

    def __init__(self) -> None:
        self._asked = self._requested = False

    def __call__(self) -> bool:
        """Return whether to stop."""
        self._asked = True
        return self._requested

    def __enter__(self) -> "Interrupt":
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._requested or not self._asked:
            raise KeyboardInterrupt
        self._requested = True
        complain("stopping after this chunk; Ctrl-C again to stop at once")
