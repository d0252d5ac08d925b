"""A join link: the id of a swarm, and the addresses of some of its peers.

    giaann://<swarm>/ip4/203.0.113.7/tcp/4100/p2p/12D3Koo…,/dns4/seed.example.org/tcp/4100/p2p/…

The swarm's id is the hash of its manifest, so a joining peer needs to trust nothing but the link.
Commas separate the addresses. No character of a link is special to a shell, so a link can be pasted
without quotes, and a stranger's address in it cannot inject a command.
"""

import re

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.wire.identity import from_text, to_text

MOST_ADDRESSES = 32
"""Maximum number of addresses in a join link."""
MOST_ADDRESS_LENGTH = 256
"""Maximum length of an address, in characters."""
_SCHEME = "giaann://"
_MOST_LENGTH = len(_SCHEME) + 64 + MOST_ADDRESSES * (MOST_ADDRESS_LENGTH + 1)
_LETTERS = re.compile(r"(/[A-Za-z0-9._:%=-]+)+")
_PEER = re.compile(r"/p2p/[A-Za-z0-9]+(/|$)")


class Link(msgspec.Struct, frozen=True):
    """A join link: a swarm's id, and the addresses of peers that know the swarm."""

    swarm_id: bytes
    addresses: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.addresses) <= MOST_ADDRESSES:
            raise UsageError(
                f"a join link names 1 to {MOST_ADDRESSES} addresses, not {len(self.addresses)}"
            )
        for address in self.addresses:
            if why := fault_of(address):
                raise UsageError(f"the join link's address {address[:80]!r} {why}")

    def __str__(self) -> str:
        return _SCHEME + to_text(self.swarm_id) + ",".join(self.addresses)

    @classmethod
    def read(cls, text: str) -> "Link":
        """Parse a join link from its text; UsageError says which part is wrong."""
        text = text.strip()
        if len(text) > _MOST_LENGTH:
            raise UsageError(
                f"a join link has at most {_MOST_LENGTH} characters, not {len(text):,}; copy it"
                " again"
            )
        scheme, rest = text[: len(_SCHEME)], text[len(_SCHEME) :]
        if scheme.lower() != _SCHEME:
            raise UsageError(f"a join link begins with {_SCHEME}, not with {scheme!r}")
        swarm, slash, addresses = rest.partition("/")
        if not slash:
            raise UsageError(
                "the join link contains no address; one must follow the swarm, as in "
                f"{_SCHEME}<swarm>/ip4/203.0.113.7/tcp/4100/p2p/<peer>"
            )
        swarm_id = from_text(swarm, "the join link's swarm")
        return cls(swarm_id, tuple((slash + addresses).split(",")))


def fault_of(address: str) -> str:
    """Return why a text cannot be a peer's multiaddr; empty if it may be one."""
    if len(address) > MOST_ADDRESS_LENGTH:
        return f"has {len(address):,} characters, more than {MOST_ADDRESS_LENGTH}"
    if not _LETTERS.fullmatch(address):
        return "does not consist of parts like /ip4/203.0.113.7/tcp/4100"
    if not _PEER.search(address):
        return "names no peer: it lacks a part /p2p/<peer>"
    return ""
