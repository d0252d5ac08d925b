"""Everything that a node of any role is given to take part in its swarm."""

import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from giaann_p2p.net.board import Board
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.members.acquaintances import Acquaintances
from giaann_p2p.node.members.address_book import AddressBook
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.options import Options
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Manifest


@dataclass(frozen=True, kw_only=True)
class Context:
    """Who a node is, which swarm it is in, and how it reaches the other peers."""

    identity: Identity
    manifest: Manifest
    transport: Transport
    board: Board
    gate: Gate
    clock: Callable[[], float] = field(default_factory=Clock)
    addresses: Callable[[], Sequence[str]] = tuple
    """Returns the addresses to announce."""
    book: AddressBook | None = None
    """The transport's address book, which is to know the directory."""
    acquaintances: Acquaintances | None = None
    options: Options = field(default_factory=Options)
    incarnation: int = field(default_factory=lambda: secrets.randbits(63))
    """Number that differs after each start."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    """Bytes that no other peer can guess, from which salts are made."""
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("giaann.node"))
