"""The context of a node: everything that any role needs to take part in its swarm."""

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
    """A node's identity, its swarm, and its means of reaching other peers."""

    identity: Identity
    manifest: Manifest
    transport: Transport
    board: Board
    gate: Gate
    clock: Callable[[], float] = field(default_factory=Clock)
    addresses: Callable[[], Sequence[str]] = tuple
    """Returns the addresses that the node announces."""
    book: AddressBook | None = None
    """The transport's address book; the node gives it the peer directory."""
    acquaintances: Acquaintances | None = None
    options: Options = field(default_factory=Options)
    incarnation: int = field(default_factory=lambda: secrets.randbits(63))
    """Random number of this start of the node; by it, other peers notice a restart."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    """Random bytes that no other peer can guess; salts and chains of pulses are derived from
    them."""
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("giaann.node"))
