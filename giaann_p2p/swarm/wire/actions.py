"""Actions: the orders that pure decision code returns for a shell to carry out.

A shell carries out actions in order. Calls run concurrently; actions that change the store run one
after another. Each numbered action is reported back as an event with the same number.
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
from giaann_p2p.swarm.wire.messages import Message


class Call(NamedTuple):
    """Ask a peer; its answer is reported as `answered(number, message or None)`."""

    number: int
    peer: Peer
    message: Message
    timeout: float
    """Timeout of the call, in seconds."""


class Reply(NamedTuple):
    """Answer the question that arrived with this ticket."""

    ticket: int
    message: Message


class Hold(NamedTuple):
    """Start holding shards."""

    shards: Shards


class Drop(NamedTuple):
    """Stop holding shards."""

    shards: Shards


class Cool(NamedTuple):
    """Write a cold copy of a shard, durably; reported like `Apply`."""

    number: int
    shard: int
    now: float


class Thaw(NamedTuple):
    """Load a shard's cold copy into memory, durably; reported like `Apply`."""

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
    """Apply updates durably; reported as `stored(number, the store's error or None)`."""

    number: int
    updates: list[Packed]

    def unpacked(self) -> list[Update]:
        """Unpack the updates, off the event loop; MessageError if one is malformed."""
        try:
            return [update.unpacked() for update in self.updates]
        except DamagedError as error:
            raise MessageError(str(error)) from None


class Adopt(NamedTuple):
    """Import a shard's content from another peer, durably; reported like `Apply`."""

    number: int
    arrived: Import

    def content(self) -> Content:
        """Unpack the content, off the event loop; MessageError if it does not fit the manifest."""
        try:
            return self.arrived.content()
        except DamagedError as error:
            raise MessageError(str(error)) from None


class Release(NamedTuple):
    """Discard the deltas that are kept of some chunks, for some shards."""

    parts: list[tuple[Shards, Applied]]


class Weigh(NamedTuple):
    """Fingerprint some shards with a salt (see `shard_fingerprint`); reported as `weighed`."""

    number: int
    shards: Shards
    salt: bytes


class Compute(NamedTuple):
    """Learn a chunk from its sentences; reported as `computed(job, chunk, cut or error)`."""

    job: bytes
    chunk: int
    sentences: list[str]


class Stop(NamedTuple):
    """Abort the learning of a chunk, if it is still under way; nothing is reported."""

    job: bytes
    chunk: int


class Lost(NamedTuple):
    """Shards of which this peer once knew more than any peer holds now."""

    shards: Shards
    connections: int
    """Number of connections that the shards held when they were last seen whole."""
    seen: float
    """Time at which the last of the shards was seen whole, in seconds since 1970."""


class Announce(NamedTuple):
    """Publish what this peer holds."""

    ready: Shards
    syncing: Shards
    leaving: bool
    wrong: Mapping[Peer, Shards]
    """Peers that hold wrong content, each with the shards concerned."""
    cold: Shards
    """Shards whose content is on disk but not in memory."""
    missing: Lost
    """Shards that this peer remembers and that no known peer has whole."""


class Leave(NamedTuple):
    """Stop: nothing is left to hand over."""


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
    | Weigh
    | Announce
    | Compute
    | Stop
    | Leave
)
