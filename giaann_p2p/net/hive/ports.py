"""Ports of listen addresses: which p2pd found, and whether another process has one.

libp2p shares ports: a second p2pd of the same user listens where the first one does, without an
error, and each of them is brought some of the connections. So it is checked before.
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
    """Return the first port of each protocol."""
    found: dict[str, int] = {}
    for address in addresses:
        for protocol, port in _PORT.findall(address)[:1]:
            found.setdefault(protocol, int(port))
    return found


def taken(addresses: Sequence[str]) -> str:
    """Return the first address at which another process listens; nothing if there is none."""
    for address in addresses:
        match = _LISTEN.match(address)
        if match and int(match[4]) and not _is_free(match[1], match[2], match[3], int(match[4])):
            return address
    return ""


def _is_free(family: str, ip: str, protocol: str, port: int) -> bool:
    with socket.socket(_FAMILY[family], _KIND[protocol]) as probe:
        if protocol == "tcp":  # connections that have ended are no hindrance
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == "6":
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind((ip, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE  # p2pd has better words for all else
    return True
