"""Which of a peer's addresses are of use to others.

Loopback leads everybody to itself, and a link-local address nobody who does not say by which of its
interfaces. So neither is told to anybody by who has others. Who has none tells all it has: a swarm
on one machine is found by them.
"""

import ipaddress
import re
from collections.abc import Sequence

_IP = re.compile(r"/ip[46]/([^/]+)")


def outside(addresses: Sequence[str]) -> tuple[str, ...]:
    """Return the addresses that others can use; all, if there are only such as lead nowhere."""
    return tuple(one for one in addresses if not _leads_nowhere(one)) or tuple(addresses)


def _leads_nowhere(address: str) -> bool:
    found = _IP.match(address)
    try:
        ip = ipaddress.ip_address(found[1]) if found else None
    except ValueError:
        return False
    return ip is not None and (ip.is_loopback or ip.is_link_local)
