"""The messages between the supervisor and the zygote: JSON, one message per line."""

import socket
from typing import NoReturn

import msgspec


class Spawn(msgspec.Struct, frozen=True, kw_only=True, tag="spawn"):
    """An order to fork a peer."""

    name: str
    entry: str
    """The function that the peer runs, as module:function."""
    arguments: list[str]
    """The command-line arguments of the peer, passed to that function as a list."""
    log: str
    """The file to which the peer's output is appended."""
    folder: str
    """The peer's working directory."""
    environment: dict[str, str] = {}
    """Environment variables that the peer has in addition to those of the zygote."""


class Signal(msgspec.Struct, frozen=True, tag="signal"):
    """An order to send a peer a signal; it has no effect if the peer has ended."""

    name: str
    number: int
    everyone: bool = False
    """Whether the processes that the peer has started get the signal, too."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """News: the zygote has imported all modules."""

    pid: int


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """News: the zygote could not import a module, and ends."""

    why: str


class Spawned(msgspec.Struct, frozen=True, tag="spawned"):
    """News: a peer was forked."""

    name: str
    pid: int


class OrderRefused(msgspec.Struct, frozen=True, tag="refused"):
    """News: a peer could not be forked."""

    name: str
    why: str


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """News: a peer has ended; `code` is its exit code or, negative, the signal that ended it."""

    name: str
    pid: int
    code: int


class Paused(msgspec.Struct, frozen=True, tag="paused"):
    """News: a peer was stopped (SIGSTOP) or continued (SIGCONT)."""

    name: str
    pid: int
    paused: bool


Order = Spawn | Signal
News = Ready | Failed | Spawned | OrderRefused | Ended | Paused

read_order = msgspec.json.Decoder(Order).decode
read_news = msgspec.json.Decoder(News).decode


def line_of(message: Order | News) -> bytes:
    """Return the line of JSON in which a message is sent."""
    return msgspec.json.encode(message) + b"\n"


class Hangup(Exception):  # noqa: N818  (nothing is wrong)
    """The supervisor has closed its end of the connection."""


class Line:
    """The zygote's end of its connection to the supervisor."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._rest = b""

    def fileno(self) -> int:
        """Return the file descriptor of the connection, for poll(2)."""
        return self._line.fileno()

    def orders(self) -> list[Order]:
        """Read from the connection; return complete orders. Hangup if the supervisor is gone."""
        try:
            data = self._line.recv(1 << 16)
        except OSError:
            self._hang_up()
        if not data:
            self._hang_up()
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [read_order(line) for line in lines]

    def tell(self, news: News) -> None:
        """Send news to the supervisor; Hangup if it is gone."""
        try:
            self._line.sendall(line_of(news))
        except OSError:
            self._hang_up()

    def close(self) -> None:
        """Close the zygote's end of the connection."""
        self._line.close()

    def _hang_up(self) -> NoReturn:
        raise Hangup
