"""The messages of the protocol: each question, and the answers to it.

Messages are plain structs, encoded as MessagePack after a version byte. Deltas and sets of chunks
inside use the store's own encodings, sets of shards that of `shardset`; each is validated where it
is read. Nothing in a message is executed. No message exceeds `MOST_BYTES`; larger things are
requested in parts. Docstrings of messages are in the words of the sender.
"""

from operator import add
from typing import Annotated

import msgspec

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.model.manner import MOST_TOKENS, Manner
from giaann_p2p.model.said import Stopped, Token
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.store.applied import JOB_BYTES, WITHDRAWN
from giaann_p2p.store.layout import MOST_SHARDS
from giaann_p2p.store.seal import UNSEALED, Seal
from giaann_p2p.swarm.wire.identity import PeerField
from giaann_p2p.swarm.wire.manifest import MOST_REDUNDANCY
from giaann_p2p.swarm.wire.voucher import Root, Voucher
from giaann_p2p.swarm.wire.withdrawn import MOST as MOST_ORPHANS
from giaann_p2p.swarm.wire.withdrawn import Part as Orphaned

VERSION = 3
"""Version of the messages. 1: many rows travel as a parcel. 2: many rows travel as a sheaf. 3:
large requests state how many bytes may come at once, and deltas are sealed."""
MOST_BYTES = 8 << 20
"""Maximum length of one message, in bytes. A part of a shard is smaller, and answers are cut before
they grow this long."""

MOST_READ = 1 << 12
"""Maximum number of neurons in one read."""

MOST_AWAITED = 8
"""Maximum number of peers that a worker may name as awaited; it waits for any one of them."""
MOST_PROMPT = 1 << 16
"""Maximum length of a prompt, in characters."""

BUSY = "busy"
"""Prefix of the reason of a temporary refusal: the same question may succeed later."""
MOST_AGAIN = 300
"""Upper bound of a refusal's retry delay, in seconds."""
_HALF = 8
NEURON_BYTES = 2 * _HALF
"""Length of an encoded neuron, in bytes: a concept and a feature."""

SALT_BYTES = 16
_PROOF_BYTES = 32
_NUMBER = 16
_MOST_PIECES = 1 << 16
_Amount = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
Job = Annotated[bytes, msgspec.Meta(min_length=JOB_BYTES, max_length=JOB_BYTES)]
Chunk = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
Shard = Annotated[int, msgspec.Meta(ge=0, lt=MOST_SHARDS)]
_ONE_EACH = msgspec.Meta(max_length=MOST_SHARDS)
_MOST_SENTENCES = CHUNK
_MOST_CHUNKS = 1 << 10
"""Maximum number of chunks in one report of a worker, which has a few slots and reports each
result soon."""
Chunks = Annotated[list[Chunk], msgspec.Meta(max_length=_MOST_CHUNKS)]
Reason = Annotated[str, msgspec.Meta(max_length=200)]
_MOST_KINDS = 16
Kind = Annotated[str, msgspec.Meta(max_length=32)]
Sentences = Annotated[int, msgspec.Meta(ge=0, le=_MOST_SENTENCES)]
"""Number of sentences of a chunk, or the index of one of them."""


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Base class of everything that one peer sends to another."""


class Push(Message, frozen=True, tag="push"):
    """Apply a chunk: these are its delta's rows for some shards that you hold.

    Never a withdrawal: owners fetch withdrawals from each other.
    """

    job: Job
    chunk: Annotated[int, msgspec.Meta(ge=0, lt=WITHDRAWN)]
    shards: bytes
    parcel: bytes
    seal: Seal = UNSEALED
    """Seal with the signatures of the peers that vouch for the delta."""


class Pushed(Message, frozen=True, tag="pushed"):
    """The chunk is on my disk for these shards; I do not hold the other shards."""

    shards: bytes


class Read(Message, frozen=True, tag="read"):
    """Send me the rows of some neurons."""

    concepts: bytes
    features: bytes


class Rows(Message, frozen=True, tag="rows"):
    """These are all of the rows that I have, except rows of shards that are not ready here."""

    parcel: bytes
    """A few rows as plain bytes (`store.codec.plain`); more rows as a sheaf
    (`store.codec.sheaf`)."""
    moved: bytes
    """The shards that are not ready here."""


class AskColumn(Message, frozen=True, tag="column?"):
    """Which words are in a concept's column?"""

    concept: Annotated[bytes, msgspec.Meta(min_length=_HALF, max_length=_HALF)]


class Column(Message, frozen=True, tag="column"):
    """The words of the column that I hold: the most frequent ones first, up to `MOST_READ`."""

    features: Annotated[bytes, msgspec.Meta(max_length=_HALF * MOST_READ)]


class Compare(Message, frozen=True, tag="compare"):
    """Anti-entropy: which chunks have you applied? My sets of chunks have these marks."""

    shards: bytes
    marks: Annotated[list[bytes], _ONE_EACH]
    """The mark (digest) of each shard's set of chunks; empty where I have none."""


class Compared(Message, frozen=True, tag="compared"):
    """The state of each shard here, and its set of chunks where that differs from yours."""

    states: bytes
    """The letter of a `ReplicaState` for each shard that was asked for."""
    which: Annotated[list[int], _ONE_EACH]
    """Index in `sets` of each shard's set; -1 if the set equals yours, or if I have none."""
    sets: Annotated[list[bytes], _ONE_EACH]


class Fetch(Message, frozen=True, tag="fetch"):
    """Send me the deltas of some chunks, for some shards."""

    shards: bytes
    chunks: bytes
    most: _Amount = MOST_BYTES
    """Maximum number of bytes to send at once; a larger delta is sent alone."""
    remembered: bool = False
    """Include deltas that you remember but assume every peer has: I have no other source."""


class Fetched(Message, frozen=True, tag="fetched"):
    """The deltas that you asked for, as many as you wanted at once or as fit into a message."""

    updates: Annotated[list["Piece"], msgspec.Meta(max_length=_MOST_PIECES)]
    gone: bytes
    """The chunks whose deltas I no longer keep, for at least one of the shards."""


class Piece(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A chunk's delta for some shards."""

    job: Job
    chunk: Chunk
    shards: bytes
    parcel: bytes
    seal: Seal = UNSEALED
    """Seal with the signatures of the peers that vouch for the delta."""


class Offer(Message, frozen=True, tag="offer"):
    """I want a whole shard: what can you send?"""

    shard: Shard
    most: _Amount = MOST_BYTES
    """Include the first part if it has at most this many bytes."""


class Offered(Message, frozen=True, tag="offered"):
    """The manifest of a shard's snapshot, and its first part, which often is all of it."""

    manifest: bytes
    kept: bytes
    """Chunks in the shard whose deltas I still keep; fetch these first."""
    part: bytes
    """The first part; empty if there is none, or if it is too long."""


class AskPart(Message, frozen=True, tag="part?"):
    """Send one part of the snapshot whose manifest has this digest."""

    shard: Shard
    digest: bytes
    number: Annotated[int, msgspec.Meta(ge=0)]


class Part(Message, frozen=True, tag="part"):
    """The part of the snapshot that was asked for."""

    parcel: bytes


class AskDigests(Message, frozen=True, tag="digests?"):
    """Which digests have your replicas of some shards?"""

    shards: bytes


class Digests(Message, frozen=True, tag="digests"):
    """The digests of the first of those shards, as many as could be computed at once."""

    shards: bytes
    found: Annotated[list["Digest"], _ONE_EACH]
    """Digests, in the order of `shards`."""


class Digest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Summary of one replica."""

    state: Annotated[bytes, msgspec.Meta(min_length=1, max_length=1)]
    """The letter of the replica's `ReplicaState`."""
    chunks: Annotated[bytes, msgspec.Meta(max_length=16)]
    """Digest of the replica's set of chunks; empty where nothing is held."""
    content: Annotated[bytes, msgspec.Meta(max_length=32)]
    """Digest of the replica's rows; the digests of all shards add up to that of the swarm."""
    rows: Annotated[int, msgspec.Meta(ge=0)]
    connections: Annotated[int, msgspec.Meta(ge=0)]


class AskProof(Message, frozen=True, tag="proof?"):
    """I am about to release some shards: prove that you hold the content of these chunks."""

    shards: bytes
    chunks: bytes
    salt: Annotated[bytes, msgspec.Meta(min_length=SALT_BYTES, max_length=SALT_BYTES)]
    """Random bytes, so that no peer can compute the answer in advance and then drop the shards."""


class Proof(Message, frozen=True, tag="proof"):
    """Proofs for the first of those shards, as many as could be computed at once."""

    shards: bytes
    found: Annotated[list[Annotated[bytes, msgspec.Meta(max_length=_PROOF_BYTES)]], _ONE_EACH]
    """Salted fingerprints (see `shard_fingerprint`), in order; empty where I lack one of the
    chunks."""


class Learn(Message, frozen=True, tag="learn"):
    """Learn a chunk of my job, and push its delta to the owners."""

    job: Job
    chunk: Chunk
    sentences: Annotated[list[str], msgspec.Meta(max_length=_MOST_SENTENCES)]


class Taken(Message, frozen=True, tag="taken"):
    """I took the chunk."""


class Skip(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Sentences of a chunk that could not be learned, for one reason."""

    reason: Kind
    count: Sentences
    first: Sentences
    """Index of the first such sentence in the chunk, from 0."""


class Learned(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A chunk that is committed."""

    chunk: Chunk
    sequences: Sentences = 0
    skips: Annotated[list[Skip], msgspec.Meta(max_length=_MOST_KINDS)] = []
    pushed: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Number of bytes that were sent to the chunk's owners."""


class Came(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A signed result of learning a chunk; it is not pushed until the client orders it."""

    chunk: Chunk
    root: Root
    voucher: Voucher


class Bring(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Order to push a chunk to its owners, with the vouchers of all workers that agree on it."""

    chunk: Chunk
    vouchers: Annotated[list[Voucher], msgspec.Meta(min_length=1, max_length=MOST_REDUNDANCY)]


class Beat(Message, frozen=True, tag="beat"):
    """Progress of the chunks of your job."""

    job: Job
    working: Chunks
    done: Annotated[list[Learned], msgspec.Meta(max_length=_MOST_CHUNKS)]
    failed: Annotated[list[tuple[Chunk, Reason]], msgspec.Meta(max_length=_MOST_CHUNKS)]
    came: Annotated[list[Came], msgspec.Meta(max_length=_MOST_CHUNKS)] = []
    """Results that wait for an order: push them, or drop them."""
    awaited: Annotated[list[PeerField], msgspec.Meta(max_length=MOST_AWAITED)] = []
    """Absent storage peers without which none of these chunks can be committed."""


class Heard(Message, frozen=True, tag="heard"):
    """Your report has arrived; drop these chunks."""

    leave: Chunks
    bring: Annotated[list[Bring], msgspec.Meta(max_length=_MOST_CHUNKS)] = []
    """Push these chunks to their owners."""


class Ask(Message, frozen=True, tag="ask"):
    """Continue my prompt, and answer as soon as there is a new token.

    The client repeats the question with a longer `said` to get the next tokens. The question holds
    all the state, so any peer can continue the answer of another one.
    """

    number: Annotated[bytes, msgspec.Meta(min_length=_NUMBER, max_length=_NUMBER)]
    """Random id of the prompt."""
    prompt: Annotated[str, msgspec.Meta(max_length=MOST_PROMPT)]
    manner: Manner
    said: Annotated[bytes, msgspec.Meta(max_length=NEURON_BYTES * MOST_TOKENS)]
    """The neurons of the tokens that I have, in order: concept and feature, each as u64."""


class Cost(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The cost of one token, or of taking in the prompt."""

    micros: _Amount = 0
    """Microseconds since the previous token."""
    waited: _Amount = 0
    """Microseconds of `micros` that were spent waiting for rows."""
    rows: _Amount = 0
    """Number of rows that were needed."""
    kept: _Amount = 0
    """Number of these rows that were cached."""
    trips: _Amount = 0
    """Number of waits for other peers."""
    nbytes: _Amount = 0
    """Bytes received meanwhile, those of prefetched rows included."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*map(add, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))


class Continued(Message, frozen=True, tag="told"):
    """The tokens after `said`; none if the next one takes longer."""

    completion: str
    unknown: list[str]
    tokens: list[Token]
    stopped: Stopped | None
    costs: list[Cost] = []
    """Cost of each token, in order."""
    begun: Cost | None = None
    """The cost of taking in the prompt, once that is done."""
    fault: str = ""
    """Reason why no peer can answer this prompt."""


class AskManifest(Message, frozen=True, tag="manifest?"):
    """Send me the swarm's manifest."""


class ManifestIs(Message, frozen=True, tag="manifest"):
    """The encoded manifest (see `Manifest.read`); its hash is the swarm's id."""

    manifest: bytes


class AskRevoked(Message, frozen=True, tag="revoked?"):
    """Send me the founder's list of revoked peers, if yours is newer than this number."""

    number: Annotated[int, msgspec.Meta(ge=0)]


class RevokedIs(Message, frozen=True, tag="revoked"):
    """The list (see `swarm.wire.revoked`); empty if I have no newer one. Also sent unasked."""

    revoked: bytes


class AskOrphans(Message, frozen=True, tag="orphans?"):
    """Which of the chunks that you remember are orphans, vouched for by disowned peers only?"""

    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
    """Use the founder's list with this number, or a newer one."""
    page: Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)] = 0


class OrphansAre(Message, frozen=True, tag="orphans"):
    """One page of the orphans, without chunks that are withdrawn already."""

    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
    """The number of the founder's list that I used."""
    pages: Annotated[int, msgspec.Meta(ge=1, lt=1 << 16)]
    """Number of pages, this one included."""
    found: Annotated[tuple[Orphaned, ...], msgspec.Meta(max_length=MOST_ORPHANS)]


class Refusal(Message, frozen=True, tag="refused"):
    """I refuse, for this reason; nothing has changed."""

    reason: str
    again: Annotated[float, msgspec.Meta(ge=0, le=MOST_AGAIN)] = 0.0
    """Seconds after which a retry makes sense; 0 if unknown."""

    @property
    def is_busy(self) -> bool:
        """Whether the refusal is temporary, so that a retry may succeed."""
        return self.reason.startswith(BUSY)


AnyMessage = (
    Push
    | Pushed
    | Read
    | Rows
    | AskColumn
    | Column
    | Compare
    | Compared
    | Fetch
    | Fetched
    | Offer
    | Offered
    | AskPart
    | Part
    | AskDigests
    | Digests
    | Learn
    | Taken
    | Beat
    | Heard
    | Ask
    | Continued
    | AskManifest
    | ManifestIs
    | AskRevoked
    | RevokedIs
    | Refusal
    | AskProof
    | Proof
    | AskOrphans
    | OrphansAre
)

_VERSION = bytes([VERSION])
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: Message) -> bytes:
    """Encode a message; MessageError if it is too long to be sent."""
    data = _VERSION + _ENCODER.encode(message)
    if len(data) > MOST_BYTES:
        raise MessageError(f"a message of {len(data):,} bytes; at most {MOST_BYTES:,} are sent")
    return data


def decode(data: bytes | memoryview) -> Message:
    """Decode untrusted bytes that `encode` should have made; MessageError says what is wrong."""
    if len(data) > MOST_BYTES:
        raise MessageError(f"a message of {len(data):,} bytes; at most {MOST_BYTES:,} are read")
    if not len(data) or data[0] != VERSION:
        told = data[0] if len(data) else "none"
        raise MessageError(f"a message of version {told}; this version reads {VERSION}")
    try:
        message: Message = _DECODER.decode(memoryview(data)[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, UsageError) as error:
        raise MessageError(f"a message that cannot be read: {error}") from None
    return message
