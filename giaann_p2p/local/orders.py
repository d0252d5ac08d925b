"""The messages between supervisor and zygote: JSON, one message per line."""

import socket
from typing import NoReturn

import msgspec


class Spawn(msgspec.Struct, frozen=True, kw_only=True, tag="spawn"):
    """Fork a peer."""

    name: str
    entry: str
    """The function to call, as module:function."""
    arguments: list[str]
    """The arguments of that call."""
    log: str
    """The file to which the peer's output is appended."""
    folder: str
    """The peer's working directory."""
    environment: dict[str, str] = {}
    """Environment variables in addition to those of the zygote."""


class Signal(msgspec.Struct, frozen=True, tag="signal"):
    """Send a peer a signal; does nothing if it has ended."""

    name: str
    number: int
    everyone: bool = False
    """Whether to send it also to the processes that the peer started."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """All modules are imported."""

    pid: int


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """A module could not be imported; the zygote ends."""

    why: str


class Spawned(msgspec.Struct, frozen=True, tag="spawned"):
    """A peer has started."""

    name: str
    pid: int


class OrderRefused(msgspec.Struct, frozen=True, tag="refused"):
    """A peer could not be forked."""

    name: str
    why: str


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A peer has ended, with an exit code or, negative, by a signal."""

    name: str
    pid: int
    code: int


class Paused(msgspec.Struct, frozen=True, tag="paused"):
    """A peer was stopped or continued."""

    name: str
    pid: int
    paused: bool


Order = Spawn | Signal
News = Ready | Failed | Spawned | OrderRefused | Ended | Paused

read_order = msgspec.json.Decoder(Order).decode
read_news = msgspec.json.Decoder(News).decode


def line_of(message: Order | News) -> bytes:
    """Return a message as it is sent."""
    return msgspec.json.encode(message) + b"\n"


class Hangup(Exception):  # noqa: N818  (nothing is wrong)
    """The supervisor is gone."""


class Line:
    """The zygote's end of the connection."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._rest = b""

    def fileno(self) -> int:
        """Return the file descriptor to poll."""
        return self._line.fileno()

    def orders(self) -> list[Order]:
        """Return the orders that have arrived; Hangup if the supervisor is gone."""
        try:
            data = self._line.recv(1 << 16)
        except OSError:
            self._hang_up()
        if not data:
            self._hang_up()
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [read_order(line) for line in lines]

    def tell(self, news: News) -> None:
        """Send news; Hangup if the supervisor is gone."""
        try:
            self._line.sendall(line_of(news))
        except OSError:
            self._hang_up()

    def close(self) -> None:
        """Close this end."""
        self._line.close()

    def _hang_up(self) -> NoReturn:
        raise Hangup
