"""Selects the addresses of a peer that other machines can use.

A loopback address leads every machine to itself, and a link-local address is useless without the
name of an interface. So a peer announces neither if it has other addresses. A peer without other
addresses announces all that it has, so that a swarm on one machine works.
"""

import ipaddress
import re
from collections.abc import Sequence

_IP = re.compile(r"/ip[46]/([^/]+)")


def outside(addresses: Sequence[str]) -> tuple[str, ...]:
    """Return the addresses that other machines can use; return all of them if there are none."""
    return tuple(one for one in addresses if not _leads_nowhere(one)) or tuple(addresses)


def _leads_nowhere(address: str) -> bool:
    found = _IP.match(address)
    try:
        ip = ipaddress.ip_address(found[1]) if found else None
    except ValueError:
        return False
    return ip is not None and (ip.is_loopback or ip.is_link_local)
