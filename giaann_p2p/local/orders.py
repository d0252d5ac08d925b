"""What the supervisor tells the zygote, and what it hears: JSON, one message a line."""

import socket
from typing import NoReturn

import msgspec


class Spawn(msgspec.Struct, frozen=True, kw_only=True, tag="spawn"):
    """Fork a peer."""

    name: str
    entry: str
    """What it calls: module:function."""
    arguments: list[str]
    """What it calls it with."""
    log: str
    """The file that gets what it writes, at its end."""
    folder: str
    """Where it works."""
    environment: dict[str, str] = {}
    """What it has beside the zygote's environment."""


class Signal(msgspec.Struct, frozen=True, tag="signal"):
    """Send a peer a signal; nothing happens if it has ended."""

    name: str
    number: int
    everyone: bool = False
    """Also the processes that it started."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """All is imported."""

    pid: int


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Something could not be imported; the zygote ends."""

    why: str


class Spawned(msgspec.Struct, frozen=True, tag="spawned"):
    """A peer has begun."""

    name: str
    pid: int


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """A peer could not be forked."""

    name: str
    why: str


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A peer has ended, with an exit code or, negative, by a signal."""

    name: str
    pid: int
    code: int


class Paused(msgspec.Struct, frozen=True, tag="paused"):
    """A peer was stopped, or goes on."""

    name: str
    pid: int
    paused: bool


Order = Spawn | Signal
News = Ready | Failed | Spawned | Refused | Ended | Paused

read_order = msgspec.json.Decoder(Order).decode
read_news = msgspec.json.Decoder(News).decode


def line_of(message: Order | News) -> bytes:
    """Return a message as it is sent."""
    return msgspec.json.encode(message) + b"\n"


class Hangup(Exception):  # noqa: N818  (nothing is wrong)
    """The supervisor is gone."""


class Line:
    """The zygote's end of the line."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._rest = b""

    def fileno(self) -> int:
        """Return what to wait for."""
        return self._line.fileno()

    def orders(self) -> list[Order]:
        """Return what has come; Hangup if nothing will come any more."""
        try:
            data = self._line.recv(1 << 16)
        except OSError:
            self._hang_up()
        if not data:
            self._hang_up()
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [read_order(line) for line in lines]

    def tell(self, news: News) -> None:
        """Send news; Hangup if nobody is there to hear them."""
        try:
            self._line.sendall(line_of(news))
        except OSError:
            self._hang_up()

    def close(self) -> None:
        """Let go of this end."""
        self._line.close()

    def _hang_up(self) -> NoReturn:
        raise Hangup
