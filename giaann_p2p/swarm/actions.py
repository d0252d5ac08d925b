"""What decisions come to: the little that a shell has to do, and what it tells of it afterwards.

A shell carries out actions in their order. Calls go on side by side; what changes the store is done
one after the other. Each call and each deed comes back as an event with its number.
"""

from collections.abc import Mapping
from typing import NamedTuple

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.content import Content
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.transfer import Import
from giaann_p2p.store.update import Packed, Update
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import Message


class Call(NamedTuple):
    """Ask a peer, and tell what it answered: `answered(number, message or None)`."""

    number: int
    peer: Peer
    message: Message
    timeout: float


class Reply(NamedTuple):
    """Answer a question that was asked under this ticket."""

    ticket: int
    message: Message


class Hold(NamedTuple):
    """Begin to hold shards."""

    shards: Shards


class Drop(NamedTuple):
    """Let shards go."""

    shards: Shards


class Apply(NamedTuple):
    """Take updates in, durably, and tell: `stored(number, the store's error or None)`."""

    number: int
    updates: list[Packed]

    def unpacked(self) -> list[Update]:
        """Unpack them, where nobody waits; MessageError if one is none."""
        try:
            return [update.unpacked() for update in self.updates]
        except DamagedError as error:
            raise MessageError(str(error)) from None


class Adopt(NamedTuple):
    """Take in what a shard holds elsewhere, durably, and tell as for `Apply`."""

    number: int
    arrived: Import

    def content(self) -> Content:
        """Unpack it, where nobody waits; MessageError if it is not what was promised."""
        try:
            return self.arrived.content()
        except DamagedError as error:
            raise MessageError(str(error)) from None


class Release(NamedTuple):
    """Keep the deltas that some shards got of some chunks no longer."""

    parts: list[tuple[Shards, Applied]]


class Weigh(NamedTuple):
    """Weigh some shards under a salt, as `weighing` does, and tell: `weighed(number, weights)`."""

    number: int
    shards: Shards
    salt: bytes


class Compute(NamedTuple):
    """Learn a chunk from its sentences, and tell: `computed(job, chunk, cut or error)`."""

    job: bytes
    chunk: int
    sentences: list[str]


class Stop(NamedTuple):
    """Learn a chunk no further, if it is still being learned, and tell nothing of it."""

    job: bytes
    chunk: int


class Announce(NamedTuple):
    """Tell everybody what is held here."""

    ready: Shards
    syncing: Shards
    leaving: bool
    wrong: Mapping[Peer, Shards]
    """Who holds something wrong, of which shards."""


class Leave(NamedTuple):
    """Nothing is left to hand over: stop."""


Action = (
    Call | Reply | Hold | Drop | Apply | Adopt | Release | Weigh | Announce | Compute | Stop | Leave
)
