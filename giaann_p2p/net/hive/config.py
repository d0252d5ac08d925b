"""How a peer is reached, and what its p2pd may cost."""

import ipaddress
import re
from pathlib import Path

import msgspec

from giaann_p2p.errors import UsageError

_NO_PORT = re.compile(r"/(tcp|udp)/0(/|$)")
_IP = re.compile(r"/ip[46]/([^/]+)")


class HostConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be chosen; all addresses are multiaddrs."""

    listen: tuple[str, ...] = ("/ip4/0.0.0.0/tcp/0",)
    """Where to take connections. TCP only unless there is need: QUIC (/udp/4100/quic-v1) is about
    half as fast, and is used wherever both are offered. Port 0: any that is free, and the same one
    for as long as this process runs."""
    announce: tuple[str, ...] = ()
    """What others are told instead of where this peer listens, say the outer side of a NAT. None:
    all addresses that this machine is known to have."""
    relay: bool = True
    """Whether to reach others, and be reached, over relays."""
    auto_relay: bool = False
    """Whether to look for relays, for a peer that cannot be reached otherwise."""
    trusted_relays: tuple[str, ...] = ()
    """Relays to use, with their /p2p/ parts; none: those that are found."""
    serve_relay: bool = True
    """Whether to pass others' bytes on."""
    nat: bool | None = None
    """Whether to ask a router for a port, and others how they see this peer. None: unless it
    listens on loopback and private addresses only."""
    connections: tuple[int, int] = (256, 512)
    """Above the second number p2pd closes connections, down to the first. Those of peers in use
    may be among them: choose far more than there are."""
    folder: Path | None = None
    """Where the sockets to p2pd are kept; each run makes a folder of its own there. None: the
    user's runtime folder, or else the one for temporary files."""
    gogc: int = 50
    """Percent by which p2pd's memory may grow before it cleans up; GOGC in the environment goes
    before it. Less: less memory, and unary calls, which only the directory makes, take longer.
    Streams make next to no garbage: rows and updates are as fast with any number. Measured at 400,
    100 and 50, resident after four idle minutes in a swarm of five: 95, 85 and 71 MB; under a flood
    of unary calls: 193, 91 and 74 MB, with 0.51, 0.57 and 0.74 s of CPU for 4,000 of them; CPU for
    500 MiB over a stream: 1.10, 1.09 and 1.10 s. A fixed limit (GOMEMLIMIT) held 60 MB, and took
    three times the CPU when idle: it cleans up the more, the more there is that stays."""
    start_within: float = 15.0
    """Seconds for p2pd to start; it takes a third of one."""
    check_every: float = 5.0
    """Seconds between two looks whether p2pd still answers."""
    answer_within: float = 10.0
    """Seconds after which a p2pd that does not answer is killed and started again. More: a
    machine that swaps is given time; less: calls fail for a shorter time."""
    again_after: float = 0.1
    """Seconds before the first new start; twice as many before each next one that fails."""
    again_most: float = 10.0
    """The most of those."""

    def __post_init__(self) -> None:
        _check(bool(self.listen), "listen must name an address at least: /ip4/0.0.0.0/tcp/0")
        for field in ("listen", "announce", "trusted_relays"):
            for address in getattr(self, field):
                _check(address.startswith("/") and "," not in address, _no_address(field, address))
        for address in self.announce:
            _check(not _NO_PORT.search(address), f"announce must name a port: {address!r} does not")
            _check(
                not any(map(_NO_PORT.search, self.listen)),
                "listen must name ports if announce does: nobody would find a free one",
            )
        low, high = self.connections
        _check(0 < low < high, f"connections must be two ascending numbers, not {low}, {high}")
        _check(self.gogc > 0, f"gogc must be more than 0; it is {self.gogc}")
        for field in ("start_within", "check_every", "answer_within", "again_after"):
            _check(getattr(self, field) > 0, f"{field} must be more than 0")
        _check(self.again_after <= self.again_most, "again_most must be at least again_after")

    @property
    def uses_nat(self) -> bool:
        """Whether there may be a router to be asked."""
        if self.nat is not None:
            return self.nat
        return not all(map(_is_private, self.listen))

    def settled(self, ports: dict[str, int]) -> "HostConfig":
        """Return the same, with the ports that were found free, by their protocol."""
        listen = tuple(_with_port(address, ports) for address in self.listen)
        return msgspec.structs.replace(self, listen=listen)


def _with_port(address: str, ports: dict[str, int]) -> str:
    return _NO_PORT.sub(lambda m: f"/{m[1]}/{ports.get(m[1], 0)}{m[2]}", address)


def _is_private(address: str) -> bool:
    found = _IP.match(address)
    try:
        ip = ipaddress.ip_address(found[1] if found else "")
    except ValueError:
        return False
    return (ip.is_private or ip.is_loopback or ip.is_link_local) and not ip.is_unspecified


def _no_address(field: str, address: str) -> str:
    return f"{field} must be of multiaddrs like /ip4/0.0.0.0/tcp/4100, not {address[:80]!r}"


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise UsageError(f"host: {message}")
