"""The configuration of a peer's p2pd: how others reach it, and which resources it may use."""

import ipaddress
import re
from pathlib import Path

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.daemon_limits import WatchLimits

_NO_PORT = re.compile(r"/(tcp|udp)/0(/|$)")
_IP = re.compile(r"/ip[46]/([^/]+)")


class HostConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a host, that is, of a peer's p2pd; all addresses are multiaddrs."""

    listen: tuple[str, ...] = ("/ip4/0.0.0.0/tcp/0",)
    """The addresses to listen on. Prefer TCP alone: QUIC (/udp/4100/quic-v1) is about half as fast,
    and libp2p uses QUIC wherever both are offered. Port 0 means any free port, which is kept for as
    long as this process runs."""
    announce: tuple[str, ...] = ()
    """The addresses to announce instead of those that this peer listens on, such as the outer side
    of a NAT. Empty: all addresses that this machine is known to have."""
    relay: bool | None = None
    """Whether this peer may reach others, and be reached, over relays. None: yes, unless it listens
    on loopback addresses only. A host without relays that has to dial an address of a relay
    restarts p2pd with them. Without: p2pd starts with a quarter of the processor time and half of
    the memory, because it makes no table of the internet's networks, by which relays limit their
    guests."""
    auto_relay: bool = False
    """Whether this peer is to be reached over relays if it cannot be reached directly."""
    trusted_relays: tuple[str, ...] = ()
    """The relays that `auto_relay` uses, with their /p2p/ parts; p2pd keeps a reservation at each
    of them."""
    serve_relay: bool = True
    """Whether this peer serves as a relay for others, if it runs with relays."""
    nat: bool | None = None
    """Whether to ask a router for a port, and other peers how they see this peer. None: yes, unless
    this peer listens only on loopback and private addresses."""
    connections: tuple[int, int] = (256, 512)
    """The lower and upper bound on connections: above the upper one, p2pd closes connections until
    the lower one is reached. It may close connections to peers in use, so choose far more than
    there are."""
    grace: float = 10.0
    """The seconds for which a new connection is exempt from `connections`. p2pd's own default of
    120 s would let a stranger pile up 120 s worth of new connections, at 70 KB each."""
    folder: Path | None = None
    """The folder for the sockets to p2pd; each run makes a folder of its own in it. None: the
    user's runtime folder, or else the folder for temporary files."""
    gogc: int = 50
    """The percentage by which p2pd's memory may grow before a garbage collection (Go's GOGC); GOGC
    in the environment takes precedence. Less: less memory, and slower unary calls, which only the
    directory makes. Streams make next to no garbage, so rows and updates are as fast with any
    value. Measured with 400, 100 and 50: 95, 85 and 71 MB resident after four idle minutes in a
    swarm of five; 193, 91 and 74 MB in a flood of unary calls, with 0.51, 0.57 and 0.74 s of CPU
    for 4,000 of them; 1.10, 1.09 and 1.10 s of CPU for 500 MiB over a stream. A fixed limit
    (GOMEMLIMIT) alone held 60 MB, but took three times the CPU when idle: the more memory stays in
    use, the more often Go then collects."""
    watch: WatchLimits = WatchLimits()
    """The resources that p2pd may use before strangers are disconnected, and before p2pd is
    restarted."""
    start_within: float = 60.0
    """The seconds that p2pd has to start. It usually takes a third of a second; where a hundred
    peers begin on one machine, some need more than fifteen."""
    check_every: float = 5.0
    """The seconds between two checks whether p2pd still answers."""
    answer_within: float = 10.0
    """The seconds after which a p2pd that does not answer is killed and restarted. Higher: p2pd
    survives on a machine that swaps. Lower: calls fail for a shorter time when p2pd hangs."""
    again_after: float = 0.1
    """The seconds before the first restart of p2pd; doubled before each further one while starting
    fails."""
    again_most: float = 10.0
    """The most seconds before a restart of p2pd."""

    def __post_init__(self) -> None:
        _check(bool(self.listen), "listen must name at least one address: /ip4/0.0.0.0/tcp/0")
        for field in ("listen", "announce", "trusted_relays"):
            for address in getattr(self, field):
                _check(address.startswith("/") and "," not in address, _no_address(field, address))
        for address in self.announce:
            _check(not _NO_PORT.search(address), f"announce must name a port: {address!r} does not")
            _check(
                not any(map(_NO_PORT.search, self.listen)),
                "listen must name ports if announce does, because port 0 is a random one",
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
        at once. p2pd's program takes another 30 MB or so.
        """
        return self.watch.memory * 2 // 3

    @property
    def uses_relays(self) -> bool:
        """Whether p2pd runs with relays: `relay`, or else judged by the addresses."""
        if self.relay is not None:
            return self.relay
        return self.auto_relay or bool(self.announce) or not all(map(_is_loopback, self.listen))

    @property
    def uses_nat(self) -> bool:
        """Whether to ask a router for a port: `nat`, or else judged by the listen addresses."""
        if self.nat is not None:
            return self.nat
        return not all(map(_is_private, self.listen))

    def settled(self, ports: dict[str, int]) -> "HostConfig":
        """Return a copy with port 0 replaced by the ports in use, by protocol ("tcp", "udp")."""
        listen = tuple(_with_port(address, ports) for address in self.listen)
        return msgspec.structs.replace(self, listen=listen)


def _with_port(address: str, ports: dict[str, int]) -> str:
    return _NO_PORT.sub(lambda m: f"/{m[1]}/{ports.get(m[1], 0)}{m[2]}", address)


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    found = _IP.match(address)
    try:
        return ipaddress.ip_address(found[1] if found else "")
    except ValueError:
        return None


def _is_loopback(address: str) -> bool:
    ip = _ip(address)
    return ip is not None and ip.is_loopback


def _is_private(address: str) -> bool:
    ip = _ip(address)
    if ip is None or ip.is_unspecified:
        return False
    return ip.is_private or ip.is_loopback or ip.is_link_local


def _no_address(field: str, address: str) -> str:
    return f"{field} must consist of multiaddrs like /ip4/0.0.0.0/tcp/4100, not {address[:80]!r}"


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise UsageError(f"host: {message}")
