"""Checks whether a link's addresses can be reached from here, and this peer from elsewhere."""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Sequence

from giaann_p2p.client.doctor.finding import Finding, note, ok, problem, softened
from giaann_p2p.net.hive.ports import taken

_WITHIN = 5.0
"""Timeout of a name lookup or a connection, in seconds."""
_PLACE = re.compile(r"/(ip4|ip6|dns|dns4|dns6)/([^/]+)/(tcp|udp)/(\d+)(?=/|$)")
_FAMILY = {"ip4": socket.AF_INET, "dns4": socket.AF_INET, "ip6": socket.AF_INET6}
_FAMILY |= {"dns6": socket.AF_INET6}
_IP = re.compile(r"/ip[46]/([^/]+)/")
_NEWER = "check that the peer runs, or get a newer link"


async def knocked(addresses: Sequence[str], within: float = _WITHIN) -> list[Finding]:
    """Try to connect to each address of a link; if one answers, problems of others become notes."""
    found = await asyncio.gather(*[knock(address, within) for address in addresses])
    if any(one.verdict == "ok" for one in found):
        return [softened(one) for one in found]
    return found


async def knock(address: str, within: float = _WITHIN) -> Finding:
    """Resolve the host name of an address, and try to connect to its port."""
    check, loop = f"address {_short(address)}", asyncio.get_running_loop()
    found = None if "/p2p-circuit" in address else _PLACE.match(address)
    if found is None:
        return note(check, "uses a relay, or is of a kind that cannot be tested")
    kind, host, protocol, port = found.groups()
    family = _FAMILY.get(kind, socket.AF_UNSPEC)
    try:
        async with asyncio.timeout(within):
            places = await loop.getaddrinfo(host, int(port), family=family, type=_STREAM)
    except (TimeoutError, OSError, OverflowError, UnicodeError) as error:
        return problem(
            check,
            f"{host} cannot be resolved here: {_words(error, within)}",
            f"check this machine's DNS (getent hosts {host}), or get a newer link",
        )
    if protocol == "udp":
        return note(check, f"resolves to {places[0][4][0]}; UDP cannot be tested")
    begun = loop.time()
    try:
        async with asyncio.timeout(within):
            _, writer = await asyncio.open_connection(*places[0][4][:2])
    except (TimeoutError, OSError) as error:
        return problem(check, _words(error, within), _remedy(error))
    writer.close()
    return ok(check, f"accepts connections, after {1000 * (loop.time() - begun):.0f} ms")


def listening(listen: Sequence[str]) -> Finding:
    """Check that no other process uses the addresses to listen at."""
    where = ", ".join(listen)
    if address := taken(listen):
        return problem(
            "listen",
            f"another process listens at {address}",
            "end it (ss -ltnup shows which it is), or choose another port with --listen; is this"
            " peer running already?",
        )
    return ok("listen", f"{where} is free")


def outside(told: Sequence[str], link: Sequence[str], announced: bool, relay: bool) -> Finding:
    """Check how far away a peer may be and still dial this one, at the addresses `told` to it.

    Every peer that can dial the addresses of the `link` must be able to. `announced` and `relay`:
    whether the user gave those options.
    """
    reach, needed = _reach(told), _reach(link)
    listed = ", ".join(map(_short, told)) or "none"
    if not told or reach < needed:
        where = ("this machine", "this network", "everywhere")
        said = f"other peers are told {listed}, which works from {where[reach]} only"
        if reach == 0:
            return problem(
                "reachable",
                said,
                "listen on an address that others can dial: --listen /ip4/0.0.0.0/tcp/4100",
            )
        remedy = (
            "unless the router opens a port by itself, let it forward one, and give --listen"
            " /ip4/0.0.0.0/tcp/4100 --announce /ip4/<its public address>/tcp/4100; or, slower,"
            " --relay"
        )
        return note("reachable", said, "" if relay else remedy)
    said = f"other peers are told {listed}"
    if announced:
        said += "; whether the router forwards that port can be tested only from outside"
    return ok("reachable", said)


def _reach(addresses: Sequence[str]) -> int:
    """Return the widest reach of some addresses: 0 this machine, 1 its network, 2 anywhere."""
    return max((_reach_of(address) for address in addresses), default=0)


def _reach_of(address: str) -> int:
    """Return the reach of an address: 0 this machine, 1 its network, 2 anywhere."""
    found = _IP.match(address)
    try:
        ip = ipaddress.ip_address(found[1]) if found else None
    except ValueError:
        return 0
    if ip is None:
        return 2
    return 0 if ip.is_loopback or ip.is_unspecified else 1 if ip.is_private else 2


def _remedy(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return f"no process listens there; {_NEWER}"
    if isinstance(error, TimeoutError):
        return f"it is down, or a firewall at either end drops packets; {_NEWER}"
    return f"check this machine's network (ip route); {_NEWER}"


def _words(error: Exception, within: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer in {within:g} s"
    if isinstance(error, ConnectionRefusedError):
        return "refuses connections"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _short(address: str) -> str:
    return address.partition("/p2p/")[0]


_STREAM = socket.SOCK_STREAM
