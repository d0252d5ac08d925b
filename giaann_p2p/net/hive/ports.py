"""Ports of listen addresses: those that p2pd uses, and those that another process has taken.

libp2p shares ports: a second p2pd of the same user listens on the ports of the first one without an
error, and each of them gets some of the connections. So ports are checked before p2pd starts.
"""

import errno
import re
import socket
from collections.abc import Sequence

_PORT = re.compile(r"/(tcp|udp)/(\d+)")
_LISTEN = re.compile(r"/ip([46])/([^/]+)/(tcp|udp)/(\d+)")
_FAMILY = {"4": socket.AF_INET, "6": socket.AF_INET6}
_KIND = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


def ports_of(addresses: Sequence[str]) -> dict[str, int]:
    """Return the port of each protocol ("tcp", "udp") in the first address that has one."""
    found: dict[str, int] = {}
    for address in addresses:
        for protocol, port in _PORT.findall(address)[:1]:
            found.setdefault(protocol, int(port))
    return found


def taken(addresses: Sequence[str]) -> str:
    """Return the first address whose port another process has; an empty string if there is none."""
    for address in addresses:
        match = _LISTEN.match(address)
        if match and int(match[4]) and not _is_free(match[1], match[2], match[3], int(match[4])):
            return address
    return ""


def _is_free(family: str, ip: str, protocol: str, port: int) -> bool:
    with socket.socket(_FAMILY[family], _KIND[protocol]) as probe:
        if protocol == "tcp":  # ignore connections that have ended
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == "6":
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind((ip, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE  # p2pd reports all other errors better
    return True
