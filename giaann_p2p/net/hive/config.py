"""Configuration of a peer's p2pd: how it is reached, and the resources that it may use."""

import ipaddress
import re
from pathlib import Path

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.daemon_limits import WatchLimits

_NO_PORT = re.compile(r"/(tcp|udp)/0(/|$)")
_IP = re.compile(r"/ip[46]/([^/]+)")


class HostConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a host; all addresses are multiaddrs."""

    listen: tuple[str, ...] = ("/ip4/0.0.0.0/tcp/0",)
    """Addresses to listen on. Prefer TCP alone: QUIC (/udp/4100/quic-v1) is about half as fast,
    and is used wherever both are offered. Port 0: any free port, kept for as long as this
    process runs."""
    announce: tuple[str, ...] = ()
    """Addresses to announce instead of those that this peer listens on, such as the outer side of a
    NAT. None: all addresses that this machine is known to have."""
    relay: bool = True
    """Whether this peer may reach others, and be reached, over relays."""
    auto_relay: bool = False
    """Whether to be reached over relays if this peer cannot be reached otherwise."""
    trusted_relays: tuple[str, ...] = ()
    """The relays for that, with their /p2p/ parts; p2pd keeps a reservation at each of them."""
    serve_relay: bool = True
    """Whether this peer relays for others."""
    nat: bool | None = None
    """Whether to ask a router for a port, and others how they see this peer. None: unless it
    listens on loopback and private addresses only."""
    connections: tuple[int, int] = (256, 512)
    """The bounds on connections: above the second number p2pd closes connections, down to the
    first. It may close those of peers in use, so choose far more than there are."""
    grace: float = 10.0
    """The seconds for which a new connection is exempt from those bounds. p2pd's own default of
    120 s would let a stranger hold 120 s worth of new connections, at 70 KB each."""
    folder: Path | None = None
    """The folder for the sockets to p2pd; each run makes a folder of its own in it. None: the
    user's runtime folder, or else the one for temporary files."""
    gogc: int = 50
    """Percent by which p2pd's memory may grow before a garbage collection; GOGC in the environment
    takes precedence. Less: less memory, and slower unary calls, which only the directory makes.
    Streams make next to no garbage: rows and updates are as fast with any number. Measured at 400,
    100 and 50, resident after four idle minutes in a swarm of five: 95, 85 and 71 MB; under a flood
    of unary calls: 193, 91 and 74 MB, with 0.51, 0.57 and 0.74 s of CPU for 4,000 of them; CPU for
    500 MiB over a stream: 1.10, 1.09 and 1.10 s. A fixed limit (GOMEMLIMIT) alone held 60 MB, and
    took three times the CPU when idle, because it collects the more often, the more memory stays in
    use."""
    watch: WatchLimits = WatchLimits()
    """The resources that p2pd may use before strangers are disconnected, and before it is
    restarted."""
    start_within: float = 15.0
    """The seconds that p2pd has to start; it usually takes a third of a second."""
    check_every: float = 5.0
    """The seconds between two checks whether p2pd still answers."""
    answer_within: float = 10.0
    """The seconds after which a p2pd that does not answer is killed and restarted. A higher value
    tolerates a machine that swaps; with a lower one, calls fail for a shorter time."""
    again_after: float = 0.1
    """The seconds before the first restart; doubled before each next one while starting fails."""
    again_most: float = 10.0
    """The most seconds before a restart."""

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
        for field in ("start_within", "grace", "check_every", "answer_within", "again_after"):
            _check(getattr(self, field) > 0, f"{field} must be more than 0")
        _check(self.again_after <= self.again_most, "again_most must be at least again_after")

    @property
    def heap(self) -> int:
        """The soft limit of p2pd's heap in bytes (GOMEMLIMIT).

        Above this limit p2pd collects garbage all the time, and returns freed memory to the system
        at once. Its program takes some 30 MB in addition.
        """
        return self.watch.memory * 2 // 3

    @property
    def uses_nat(self) -> bool:
        """Whether there may be a router to be asked for a port."""
        if self.nat is not None:
            return self.nat
        return not all(map(_is_private, self.listen))

    def settled(self, ports: dict[str, int]) -> "HostConfig":
        """Return a copy whose ports 0 are replaced by the ports in use, given by protocol."""
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
