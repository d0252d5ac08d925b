"""The messages by which clients have compute peers learn the chunks of a text."""

from typing import Annotated

import msgspec

from giaann_p2p.model.spec import CHUNK, MOST_CHUNK
from giaann_p2p.store.layout import MOST_SHARDS
from giaann_p2p.swarm.wire.identity import PeerField
from giaann_p2p.swarm.wire.manifest import MOST_REDUNDANCY
from giaann_p2p.swarm.wire.message import Chunk, Counting, Job, Message
from giaann_p2p.swarm.wire.voucher import Root, Voucher

MOST_AWAITED = 8
"""Maximum number of absent peers that a compute peer may name as awaited in one report."""
_MOST_CHUNKS = 1 << 10
"""Maximum number of chunks in one report of a compute peer, which works on far fewer at a time."""
_SEVERAL = msgspec.Meta(max_length=_MOST_CHUNKS)
Chunks = Annotated[list[Chunk], _SEVERAL]
Reason = Annotated[str, msgspec.Meta(max_length=200)]
_FEW = msgspec.Meta(max_length=MOST_AWAITED)
_MOST_KINDS = 16
Kind = Annotated[str, msgspec.Meta(max_length=32)]
Sentences = Annotated[int, msgspec.Meta(ge=0, le=MOST_CHUNK)]
"""Number of sentences of a chunk, or the index of one of them."""


class Learn(Message, frozen=True, tag="learn"):
    """Request of a client to a compute peer: learn a chunk of the client's job."""

    job: Job
    chunk: Chunk
    sentences: Annotated[list[str], msgspec.Meta(max_length=MOST_CHUNK)]

    @property
    def doublings(self) -> int:
        """Number of doublings of the layout in which the chunk's delta is to be sealed."""
        return 0

    @property
    def size(self) -> int:
        """The job's chunk size, which determines how the delta is cut; 0 for the manifest's."""
        return 0


class LearnIn(Learn, Counting, frozen=True, tag="learn in"):
    """Request like `Learn`, in a swarm whose number of shards was doubled.

    All peers that learn a chunk must seal it alike, so the client names the layout. The receiver
    must know that layout, and may count more shards by now.
    """

    doublings: Annotated[int, msgspec.Meta(ge=1, lt=MOST_SHARDS.bit_length())]


class LearnCut(Learn, Counting, frozen=True, tag="learn cut"):
    """Request like `LearnIn`, for a chunk whose delta is cut in another way than the manifest's."""

    doublings: Annotated[int, msgspec.Meta(ge=0, lt=MOST_SHARDS.bit_length())]
    size: Annotated[int, msgspec.Meta(ge=CHUNK, le=MOST_CHUNK)]


def learn_order(
    job: bytes, chunk: int, sentences: list[str], doublings: int, size: int = 0
) -> Learn:
    """Return the request to learn a chunk, and seal its delta in a layout with these `doublings`.

    `size` determines how the delta is cut, as `Rules.cut_as` returns it.
    """
    if size:
        return LearnCut(job, chunk, sentences, doublings, size)
    if doublings:
        return LearnIn(job, chunk, sentences, doublings)
    return Learn(job, chunk, sentences)


class LearnAck(Message, frozen=True, tag="taken"):
    """Answer to `Learn`: the compute peer has accepted the chunk."""


class Skip(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Sentences of a chunk that could not be learned, for one reason."""

    reason: Kind
    count: Sentences
    first: Sentences
    """Index of the first such sentence in the chunk; indices start at 0."""


class Learned(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A committed chunk, in the report of a compute peer."""

    chunk: Chunk
    sequences: Sentences = 0
    skips: Annotated[list[Skip], msgspec.Meta(max_length=_MOST_KINDS)] = msgspec.field(
        default_factory=list
    )
    """The sentences that could not be learned, by reason."""
    pushed: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Number of bytes that were sent to the owners to commit the chunk."""


class Result(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A signed result of learning a chunk; it is pushed to the owners once the client orders it."""

    chunk: Chunk
    root: Root
    voucher: Voucher


class PushOrder(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Order to push a chunk's delta to the owners, with the vouchers of all peers that agree."""

    chunk: Chunk
    vouchers: Annotated[list[Voucher], msgspec.Meta(min_length=1, max_length=MOST_REDUNDANCY)]


class Beat(Message, frozen=True, tag="beat"):
    """Report of a compute peer to a client: the progress of the chunks of a job."""

    job: Job
    working: Chunks
    done: Annotated[list[Learned], _SEVERAL]
    failed: Annotated[list[tuple[Chunk, Reason]], _SEVERAL]
    results: Annotated[list[Result], _SEVERAL] = msgspec.field(default_factory=list)
    """Signed results; the client must order each of them to be pushed or dropped."""
    awaited: Annotated[list[PeerField], _FEW] = msgspec.field(default_factory=list)
    """Absent keepers that the job's chunks wait for before they can commit."""


class BeatAck(Message, frozen=True, tag="heard"):
    """Answer to `Beat`: the client has received the report, and gives its orders."""

    leave: Chunks
    """Chunks that the compute peer must drop."""
    orders: Annotated[list[PushOrder], _SEVERAL] = msgspec.field(default_factory=list)
    """Chunks that the compute peer must push to the owners."""
