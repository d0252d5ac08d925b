"""Actions: the orders that decision code, which does no I/O, returns for its shell to carry out.

A shell carries out actions in order. Calls run concurrently; actions that change the store run one
after another. The outcome of a numbered action comes back as an event with the same number.
"""

from collections.abc import Mapping
from typing import NamedTuple

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.content import Content
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.transfer import Import
from giaann_p2p.store.update import Packed, Update
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message


class Call(NamedTuple):
    """Send a question to a peer; the answer is reported as `answered(number, message or None)`."""

    number: int
    peer: Peer
    message: Message
    timeout: float
    """Timeout of the call, in seconds."""


class Reply(NamedTuple):
    """Send the answer to another peer's question; the question arrived with this ticket."""

    ticket: int
    message: Message


class Hold(NamedTuple):
    """Start holding some shards in the store."""

    shards: Shards


class Drop(NamedTuple):
    """Stop holding some shards in the store."""

    shards: Shards


class Cool(NamedTuple):
    """Write a cold copy of a shard to the disk, durably; the outcome is reported as `stored`."""

    number: int
    shard: int
    now: float


class Thaw(NamedTuple):
    """Load a shard's cold copy into memory, durably; the outcome is reported as `stored`."""

    number: int
    shard: int


class Note(NamedTuple):
    """Store a small value that must survive a restart."""

    key: str
    value: bytes


class Forget(NamedTuple):
    """Delete the cold copies of some shards."""

    shards: Shards


class Apply(NamedTuple):
    """Apply updates durably; the outcome is reported as `stored(number, error or None)`."""

    number: int
    updates: list[Packed]
    ticket: int | None = None
    """The ticket of the push that brought the updates; None if this peer fetched them itself."""

    def unpacked(self) -> list[Update]:
        """Unpack the updates, which is slow, so call it off the event loop.

        MessageError if an update is malformed.
        """
        try:
            return [update.unpacked() for update in self.updates]
        except DamagedError as error:
            raise MessageError(str(error)) from None


class Adopt(NamedTuple):
    """Import a shard's content from another peer, durably; the outcome is reported as `stored`."""

    number: int
    arrived: Import

    def content(self) -> Content:
        """Unpack the content, which is slow, so call it off the event loop.

        MessageError if the content does not fit its manifest.
        """
        try:
            return self.arrived.content()
        except DamagedError as error:
            raise MessageError(str(error)) from None


class Release(NamedTuple):
    """Discard the deltas of some chunks for some shards, which the store kept to pass them on."""

    parts: list[tuple[Shards, Applied]]


class TakeFingerprints(NamedTuple):
    """Compute the fingerprints of some shards with a salt; they are reported as `weighed`."""

    number: int
    shards: Shards
    salt: bytes


class Compute(NamedTuple):
    """Learn a chunk from its sentences; the result is reported as `computed(job, chunk, ...)`."""

    job: bytes
    chunk: int
    sentences: list[str]
    doublings: int = 0
    """Number of doublings of the layout in which the chunk's delta is sealed."""
    size: int = 0
    """The chunk size that determines how the delta is cut; 0 for the manifest's."""


class Stop(NamedTuple):
    """Stop learning a chunk, if that is still under way; nothing is reported."""

    job: bytes
    chunk: int


class Lost(NamedTuple):
    """Lost shards: this peer remembers more of them than any known peer holds now."""

    shards: Shards
    connections: int
    """Number of connections that the shards held when they were last seen whole."""
    seen: float
    """Time at which the last of the shards was seen whole, in seconds since 1970."""


class Announce(NamedTuple):
    """Publish a record of the shards that this peer holds."""

    ready: Shards
    syncing: Shards
    leaving: bool
    wrong: Mapping[Peer, Shards]
    """Accused peers, each with the shards of which it holds wrong content."""
    cold: Shards
    """Shards whose content is on disk but not in memory."""
    missing: Lost
    """Shards that this peer remembers and that no known peer has whole."""


class Leave(NamedTuple):
    """End this peer's process, because it has nothing left to hand over."""


Action = (
    Call
    | Reply
    | Hold
    | Drop
    | Cool
    | Thaw
    | Forget
    | Note
    | Apply
    | Adopt
    | Release
    | TakeFingerprints
    | Announce
    | Compute
    | Stop
    | Leave
)
