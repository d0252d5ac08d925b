"""Decides whether a request is admitted, from its head alone and without sockets.

1. The name in Host must be this machine's. A web site can point a name of its own at 127.0.0.1 and
   would then share an origin with the gateway ("DNS rebinding"), but its name is in Host.
2. A request that a browser sends for another site's page is refused: its Origin is foreign, or
   Sec-Fetch-Site says so. Only following a link to the page itself is allowed.
3. If there is a key, it must be given: as `Authorization: Bearer KEY`, or by a browser, which asks
   its user, as the password of Basic authentication. It is compared in constant time.
"""

import hmac
import ipaddress
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.gateway.failures import Failure

_HEADERS = "authorization, content-type"
"""The headers that a page of another site may always send."""
_LONGEST_HEADERS = 1024
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_ORIGIN = re.compile(r"(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?")
_HOST = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?")
_USUAL_PORTS = {"http": "80", "https": "443"}
OPEN_PATHS = frozenset({"/healthz"})
"""The paths that are served without a key."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a gateway admits."""

    loopback: bool = True
    """Whether only this machine can reach it; then Host must be a loopback name."""
    hosts: frozenset[str] = frozenset()
    """More names that Host may have, in lower case."""
    origins: frozenset[str] = frozenset()
    """Foreign origins whose pages may use the gateway, such as https://chat.example."""
    key: bytes = b""
    """The key that each request must give; empty if there is none."""


class Head(NamedTuple):
    """The parts of a request's head that the rules use; a missing header is empty."""

    method: str
    path: str
    host: str = ""
    origin: str = ""
    site: str = ""
    mode: str = ""
    authorization: str = ""

    @classmethod
    def of(cls, method: str, path: str, headers: Mapping[str, str]) -> "Head":
        """Return the head of a request with these headers, whose names are in lower case."""
        names = ("host", "origin", "sec-fetch-site", "sec-fetch-mode", "authorization")
        return cls(method, path, *(headers.get(name, "") for name in names))


def refusal(head: Head, access: Access) -> Failure | None:
    """Return why a request is refused; None if it is admitted."""
    if not names_this_machine(head.host, access):
        text = f"{_name_of(head.host)!r} is not a name of this gateway; --allow-host adds one"
        return Failure(421, text, "wrong_host")
    if head.origin and not is_own(head, access):
        return Failure(403, f"pages of {head.origin} may not use this gateway", "foreign_origin")
    if not head.origin and _is_foreign(head):
        return Failure(403, "pages of other sites may not use this gateway", "foreign_origin")
    if head.path in OPEN_PATHS or is_preflight(head) or has_key(head.authorization, access.key):
        return None
    return Failure(401, "give this gateway's key: Authorization: Bearer KEY", "invalid_api_key")


def is_preflight(head: Head) -> bool:
    """Return whether a request is a preflight of a browser, which never has the key."""
    return head.method == "OPTIONS" and bool(head.origin)


def allowed_headers(wanted: str) -> str:
    """Return the headers that a page of an allowed site may send, given those that it announces.

    All of them may be sent, because clients send headers of their own: OpenAI's for JavaScript
    sends x-stainless-lang and more. An announcement that is malformed or too long counts as none.
    """
    names = [name.strip() for name in wanted.lower().split(",")]
    if len(wanted) > _LONGEST_HEADERS or not all(map(_HEADER_NAME.fullmatch, names)):
        return _HEADERS
    return ", ".join([_HEADERS, *(name for name in names if name not in _HEADERS.split(", "))])


def names_this_machine(host: str, access: Access) -> bool:
    """Return whether a Host header names this machine."""
    name = _name_of(host)
    if name == "localhost" or name in access.hosts:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback if access.loopback else True  # no site can rebind an address


def is_own(head: Head, access: Access) -> bool:
    """Return whether a request's Origin is the gateway itself, or an allowed one."""
    if head.origin in access.origins:
        return True
    try:
        netloc = urlsplit(head.origin).netloc
    except ValueError:  # it is malformed, so no browser sent it
        return False
    return bool(head.host) and netloc.lower() == head.host.lower()


def host_of(given: str) -> str:
    """Return the host name in an option, as `Access.hosts` has it; UsageError if it is none.

    It is in lower case and has no port, because a port in Host is ignored.
    """
    if not _HOST.fullmatch(given.lower()):
        raise UsageError(f"--allow-host must be a host name, such as chat.example, not {given!r}")
    return _name_of(given)


def origin_of(given: str) -> str:
    """Return the origin in an option, as browsers write it; UsageError if it is none.

    They write it in lower case, and without the usual port of its scheme.
    """
    found = _ORIGIN.fullmatch(given.lower())
    if found is None:
        raise UsageError(
            f"--allow-origin must be a scheme and a host, such as https://a.b, not {given!r}"
        )
    scheme, host, port = found.groups()
    usual = port is None or port == _USUAL_PORTS[scheme]
    return f"{scheme}://{host}" if usual else f"{scheme}://{host}:{port}"


def has_key(authorization: str, key: bytes) -> bool:
    """Return whether a request has the key, if the gateway requires one."""
    if not key:
        return True
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() == "basic":
        given = _password(given)
    elif scheme.lower() != "bearer":
        given = ""
    return hmac.compare_digest(given.strip().encode(errors="replace"), key)


def _is_foreign(head: Head) -> bool:
    """Return whether a browser reports that another site's page asks, but not by a link to `/`."""
    if head.site not in ("cross-site", "same-site"):
        return False
    return not (head.method == "GET" and head.mode == "navigate" and head.path == "/")


def _password(given: str) -> str:
    try:
        return b64decode(given, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _name_of(host: str) -> str:
    """Return the name in a Host header, in lower case, without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
