"""The messages of the protocol between peers: each question, and the answers to it.

Messages are plain structs, encoded as MessagePack after a version byte. A question also states how
many shards its sender counts, unless that is the manifest's number; the answer uses the same
number. Deltas and sets of chunks in them have the store's encodings, and sets of shards the
encoding of `shardset`; each is validated where it is read. Nothing in a message is executed. No
message exceeds `MOST_BYTES`; larger things are requested in parts.

Docstrings call the peer that sends a message its sender, and the other one its receiver. The
messages about a swarm and its members, about prompts, about learning and about rows are in
`member_messages`, `prompt_messages`, `training_messages` and `row_messages`.
"""

from typing import Annotated

import msgspec

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.store.applied import PART_BYTES, PARTS, WITHDRAWN
from giaann_p2p.store.layout import MOST_SHARDS
from giaann_p2p.store.seal import MOST_WORDS, UNSEALED, Seal
from giaann_p2p.swarm.wire.identity import PeerField
from giaann_p2p.swarm.wire.member_messages import (
    AskEdition,
    AskManifest,
    AskPulses,
    AskRecords,
    AskRelease,
    AskRevoked,
    EditionIs,
    ManifestIs,
    RecordsAre,
    ReleaseIs,
    RevokedIs,
)
from giaann_p2p.swarm.wire.message import Amount, Chunk, Counting, Job, Message
from giaann_p2p.swarm.wire.prompt_messages import Ask, Continued, ContinuedSubwords
from giaann_p2p.swarm.wire.row_messages import AskColumn, Column, Read, ReadSlice, Rows
from giaann_p2p.swarm.wire.training_messages import (
    Beat,
    BeatAck,
    Learn,
    LearnAck,
    LearnCut,
    LearnIn,
)
from giaann_p2p.swarm.wire.withdrawn import MOST as MOST_ORPHANS
from giaann_p2p.swarm.wire.withdrawn import Part as Orphaned

VERSION = 7
"""Version of the message formats. 2: many rows travel as a sheaf instead of a parcel. 3: large
requests state how many bytes may come at once, and deltas are sealed. 4: large sets of chunks are
compared by parts, and a read has marks of rows that the reader knows, which the answer leaves out.
5: a learner sends a chunk's rows to a courier. 7: words of the vocabulary travel by number."""
_COUNTED = 8
"""Version of a question whose second byte states how often its sender's number of shards was
doubled. If it never was, that byte is left out, and the version is `VERSION`."""
_MOST_DOUBLINGS = MOST_SHARDS.bit_length() - 1
MOST_BYTES = 8 << 20
"""Maximum length of one message, in bytes. Parts of a shard are smaller, and answers are cut before
they grow this long."""

MOST_NOUNS = 1 << 12
MOST_FREQUENT = 64
"""Maximum number of nouns in one page of a shard's nouns."""
BUSY = "busy"
"""Prefix of the reason of a temporary refusal, after which the same question may succeed later."""
TOO_LONG = "too long"
"""Prefix of the reason of a refusal because the answer would be too long: ask for less at once."""
SOURCE = "source"
"""Prefix of the reason why rows could not be fetched, which may be the fault of their source."""
NO_SOURCE = "unknown source"
"""Prefix of the reason why rows were not fetched: the refusing peer does not know their source."""
UNREADABLE = "a message cannot be read"
"""Prefix of the reason of a refusal because the message breaks a bound or is unknown."""
MOST_AGAIN = 300
"""Maximum retry delay that a refusal may ask for, in seconds."""


MANY_JOBS = 200
"""Number of jobs beyond which sets of chunks are compared by parts: the digests of the parts take
fewer bytes than half of such a set."""
MOST_IN_PARTS = 8
"""Maximum number of sets of which one comparison sends the parts' digests; other sets wait for the
next comparison."""

SALT_BYTES = 16
_PROOF_BYTES = 32
_MOST_PIECES = 1 << 16
Shard = Annotated[int, msgspec.Meta(ge=0, lt=MOST_SHARDS)]
_ONE_EACH = msgspec.Meta(max_length=MOST_SHARDS)
_SIZE = PARTS * PART_BYTES
_Parts = Annotated[bytes, msgspec.Meta(min_length=_SIZE, max_length=_SIZE)]


class Push(Counting, frozen=True, tag="push"):
    """Request to apply a chunk: its delta's rows for some shards that the receiver holds.

    The chunk is never a withdrawal, because owners fetch withdrawals from each other.
    """

    job: Job
    chunk: Annotated[int, msgspec.Meta(ge=0, lt=WITHDRAWN)]
    shards: bytes
    parcel: bytes
    seal: Seal = UNSEALED
    """Seal with the signatures of the peers that vouch for the delta."""


class PushFrom(Counting, frozen=True, tag="push from"):
    """Request to apply a chunk like `Push`, but to fetch its rows from a peer that carries them."""

    job: Job
    chunk: Annotated[int, msgspec.Meta(ge=0, lt=WITHDRAWN)]
    shards: bytes
    source: PeerField
    """The peer to fetch the rows from."""
    vouchers: Annotated[bytes, msgspec.Meta(max_length=MOST_WORDS)] = b""
    """The encoded vouchers of the delta; its whole seal comes with the rows."""


class Carry(Counting, frozen=True, tag="carry"):
    """Request to keep a delta's rows for a while, for the holders of some shards to fetch them.

    The receiver, the *courier*, applies nothing yet: like every other holder, it does so when a
    `PushFrom` arrives. So the learner sends the rows once, not once for each replica.
    """

    job: Job
    chunk: Annotated[int, msgspec.Meta(ge=0, lt=WITHDRAWN)]
    shards: bytes
    parcel: bytes
    seal: Seal = UNSEALED


class Carried(Message, frozen=True, tag="carried"):
    """Answer to `Carry`: the sender keeps the rows, and sends them to holders that fetch them."""


class FetchCarried(Counting, frozen=True, tag="fetch carried"):
    """Request for the rows of some shards that the receiver carries for a sender of `Carry`.

    The answer is `Fetched`. `Fetch` never returns carried rows: a hostile sender can have other
    rows carried under the name of a chunk that the receiver has applied.
    """

    job: Job
    chunk: Annotated[int, msgspec.Meta(ge=0, lt=WITHDRAWN)]
    shards: bytes
    author: PeerField
    """The peer that sent the `Carry`, and that told this question's sender to fetch the rows."""


class Pushed(Message, frozen=True, tag="pushed"):
    """Answer to `Push` or `PushFrom`: the shards for which the sender has the chunk on its disk.

    The sender does not hold the other shards of the request.
    """

    shards: bytes


class AskNouns(Counting, frozen=True, tag="nouns?"):
    """Request for the nouns of a shard, in the order of their names, page by page."""

    shard: Shard
    after: str = ""
    """Only nouns whose names come after this one, the last name of the previous page."""
    frequent: Annotated[int, msgspec.Meta(ge=0, le=MOST_FREQUENT)] = 0
    """Number of nouns wanted: only the most frequent ones, in a single page; 0 for all nouns."""


class Nouns(Message, frozen=True, tag="nouns"):
    """Answer to `AskNouns`: a page of nouns, which is empty after the last one."""

    names: Annotated[list[str], msgspec.Meta(max_length=MOST_NOUNS)]
    """The nouns, in ascending order."""
    counts: Annotated[list[Amount], msgspec.Meta(max_length=MOST_NOUNS)]
    """How often each noun occurred."""


class Compare(Counting, frozen=True, tag="compare"):
    """Anti-entropy request: which chunks has the receiver applied to some shards?

    The sender includes digests of its own sets of chunks, so that only different sets are sent, and
    of large sets only the parts that differ (see `Applied.parts`).
    """

    shards: bytes
    marks: Annotated[list[bytes], _ONE_EACH]
    """For each shard, the digest of the sender's set of chunks; empty where it has none."""
    parts: Annotated[list[_Parts], msgspec.Meta(max_length=MOST_IN_PARTS)] | None = None
    """The digests of the parts of some of the sender's sets. Of any other large set that differs,
    the answer says only that it differs, and the sender asks again. None: send whole sets, however
    large."""
    job: Job | None = None
    """If given, only this job's chunks are wanted."""


class Compared(Message, frozen=True, tag="compared"):
    """Answer to `Compare`: each shard's state at the sender, and its set of chunks if different."""

    states: bytes
    """For each requested shard, the letter of its `ReplicaState`."""
    which: Annotated[list[int], _ONE_EACH]
    """For each requested shard, the index of its set in `sets`; -1 if it is equal, or absent; -2 if
    it differs, and is so large that the digests of its parts must be sent first."""
    sets: Annotated[list[bytes], _ONE_EACH]
    """The encoded sets of chunks, whole or parts of them; several shards may share one."""
    parts: Annotated[list[bytes], _ONE_EACH] = msgspec.field(default_factory=list)
    """For each of `sets`, the numbers of the parts that it has, one byte each; empty if it is
    whole. The list itself is empty if all sets are whole."""

    @property
    def is_different(self) -> bool:
        """Whether the sender's set of any shard differs from that of the peer that asked."""
        return any(which != -1 for which in self.which)


class Fetch(Counting, frozen=True, tag="fetch"):
    """Request for the deltas of some chunks, for some shards."""

    shards: bytes
    chunks: bytes
    most: Amount = MOST_BYTES
    """Maximum number of bytes of deltas in the answer; a larger delta is sent alone."""
    remembered: bool = False
    """Whether to include deltas that the receiver remembers but assumes every peer to have; set if
    the sender has no other source."""


class Fetched(Message, frozen=True, tag="fetched"):
    """Answer to `Fetch`: requested deltas, as many as were wanted at once or fit into a message."""

    updates: Annotated[list["Piece"], msgspec.Meta(max_length=_MOST_PIECES)]
    gone: bytes
    """The chunks whose deltas the sender no longer keeps, for at least one of the shards."""


class Piece(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A chunk's delta for some shards, as part of a `Fetched`."""

    job: Job
    chunk: Chunk
    shards: bytes
    parcel: bytes
    seal: Seal = UNSEALED
    """Seal with the signatures of the peers that vouch for the delta."""


class Offer(Counting, frozen=True, tag="offer"):
    """Request for a snapshot of a whole shard, which is then fetched in parts."""

    shard: Shard
    most: Amount = MOST_BYTES
    """The answer should include the first part if that has at most this many bytes."""


class Offered(Message, frozen=True, tag="offered"):
    """Answer to `Offer`: the manifest of a shard's snapshot, and its first and often only part."""

    manifest: bytes
    kept: bytes
    """The chunks whose deltas the sender still keeps; the receiver should fetch these first."""
    part: bytes
    """The first part of the snapshot; empty if there is none, or if it is too long."""


class AskPart(Counting, frozen=True, tag="part?"):
    """Request for one part of a shard's snapshot, named by the digest of its manifest."""

    shard: Shard
    digest: bytes
    number: Annotated[int, msgspec.Meta(ge=0)]


class Part(Message, frozen=True, tag="part"):
    """Answer to `AskPart`: the requested part of a shard's snapshot."""

    parcel: bytes


class AskDigests(Counting, frozen=True, tag="digests?"):
    """Request for the digests of the receiver's replicas of some shards."""

    shards: bytes


class Digests(Message, frozen=True, tag="digests"):
    """Answer to `AskDigests`: digests of the first requested shards.

    There are as many as the sender could compute at once.
    """

    shards: bytes
    found: Annotated[list["Digest"], _ONE_EACH]
    """The digest of each of `shards`, in their order."""


class Digest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Summary of one replica, with which replicas at different peers can be compared."""

    state: Annotated[bytes, msgspec.Meta(min_length=1, max_length=1)]
    """The letter of the replica's `ReplicaState`."""
    chunks: Annotated[bytes, msgspec.Meta(max_length=16)]
    """Digest of the replica's set of chunks; empty if the peer holds nothing of the shard."""
    content: Annotated[bytes, msgspec.Meta(max_length=32)]
    """Digest of the replica's rows; the digests of all shards add up to the swarm's digest."""
    rows: Annotated[int, msgspec.Meta(ge=0)]
    connections: Annotated[int, msgspec.Meta(ge=0)]


class AskProof(Counting, frozen=True, tag="proof?"):
    """Request to prove that the receiver holds the content of some chunks in some shards.

    The sender wants to release these shards, and needs proof that they are held elsewhere.
    """

    shards: bytes
    chunks: bytes
    salt: Annotated[bytes, msgspec.Meta(min_length=SALT_BYTES, max_length=SALT_BYTES)]
    """Random bytes, so that no peer can compute its proof in advance and then drop the shards."""


class Proof(Message, frozen=True, tag="proof"):
    """Answer to `AskProof`: proofs for the first requested shards.

    There are as many as the sender could compute at once.
    """

    shards: bytes
    found: Annotated[list[Annotated[bytes, msgspec.Meta(max_length=_PROOF_BYTES)]], _ONE_EACH]
    """For each of `shards`, the proof (see `shard_fingerprint.proof_of`); empty where the sender
    lacks one of the chunks."""


class AskOrphans(Message, frozen=True, tag="orphans?"):
    """Request for the orphans among the chunks that the receiver remembers.

    Orphans are chunks that only disowned peers vouch for (see `orphans`).
    """

    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
    """Number of the founder's list to go by; the receiver may also use a newer one."""
    page: Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)] = 0


class OrphansAre(Message, frozen=True, tag="orphans"):
    """Answer to `AskOrphans`: one page of the orphans that are not withdrawn yet."""

    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
    """Number of the founder's list that the sender used."""
    pages: Annotated[int, msgspec.Meta(ge=1, lt=1 << 16)]
    """Number of pages of orphans, this one included."""
    found: Annotated[tuple[Orphaned, ...], msgspec.Meta(max_length=MOST_ORPHANS)]


class Refusal(Message, frozen=True, tag="refused"):
    """Answer to any request: the sender refuses it, and nothing has changed there."""

    reason: str
    again: Annotated[float, msgspec.Meta(ge=0, le=MOST_AGAIN)] = 0.0
    """Seconds after which a retry of the request makes sense; 0 if unknown."""

    @property
    def is_busy(self) -> bool:
        """Whether the refusal is temporary, so that a retry may succeed."""
        return self.reason.startswith(BUSY)

    @property
    def is_too_long(self) -> bool:
        """Whether the answer would be too long, so that less must be asked for at once."""
        return self.reason.startswith(TOO_LONG)

    @property
    def is_of_source(self) -> bool:
        """Whether rows could not be fetched from the peer that a `PushFrom` named."""
        return self.reason.startswith(SOURCE)

    @property
    def knows_no_source(self) -> bool:
        """Whether the sender does not know the peer that a `PushFrom` named."""
        return self.reason.startswith(NO_SOURCE)


AnyQuestion = (
    Push
    | PushFrom
    | Carry
    | FetchCarried
    | Read
    | ReadSlice
    | AskColumn
    | AskNouns
    | Compare
    | Fetch
    | Offer
    | AskPart
    | AskDigests
    | Learn
    | LearnIn
    | LearnCut
    | Beat
    | Ask
    | AskManifest
    | AskRelease
    | AskRevoked
    | RevokedIs
    | AskEdition
    | EditionIs
    | AskProof
    | AskOrphans
    | AskRecords
    | AskPulses
)
"""All questions, and the newer documents of the founder that a peer is asked to adopt."""
AnyMessage = (
    AnyQuestion
    | Carried
    | Pushed
    | Rows
    | Column
    | Nouns
    | Compared
    | Fetched
    | Offered
    | Part
    | Digests
    | LearnAck
    | BeatAck
    | Continued
    | ContinuedSubwords
    | ManifestIs
    | ReleaseIs
    | Refusal
    | Proof
    | OrphansAre
    | RecordsAre
)

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(AnyMessage)
_QUESTIONS: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(AnyQuestion)


def encode(message: Message, doublings: int = 0) -> bytes:
    """Encode a message; MessageError if it is too long to be sent.

    `doublings`: how often the number of shards was doubled for the sender of a question. An answer
    omits it, because its shards are counted as in the question.
    """
    first = bytes([_COUNTED, doublings]) if doublings else bytes([VERSION])
    data = first + _ENCODER.encode(message)
    if len(data) > MOST_BYTES:
        raise MessageError(f"a message has {len(data):,} bytes; at most {MOST_BYTES:,} can be sent")
    return data


def decode(data: bytes | memoryview) -> Message:
    """Decode a message from untrusted bytes; MessageError says what is wrong with them."""
    return _decoded(data, _DECODER)


def decode_question(data: bytes | memoryview) -> Message:
    """Decode a question, as `decode` does; an answer is refused before its fields are unpacked."""
    return _decoded(data, _QUESTIONS)


def _decoded(data: bytes | memoryview, decoder: msgspec.msgpack.Decoder[Message]) -> Message:
    if len(data) > MOST_BYTES:
        raise MessageError(f"a message has {len(data):,} bytes; at most {MOST_BYTES:,} are read")
    body = memoryview(data)[2 if doublings_of(data) else 1 :]
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, UsageError) as error:
        raise MessageError(f"{UNREADABLE}: {error}") from None


def doublings_of(data: bytes | memoryview) -> int:
    """Return how often the number of shards was doubled for the sender of an encoded question."""
    if data[:1] == bytes([VERSION]):
        return 0
    if data[:1] != bytes([_COUNTED]):
        raise MessageError(
            f"a message has version {data[0] if len(data) else 'none'}, but this peer reads version"
            f" {VERSION}: both must run the same release of giaann-p2p"
        )
    if len(data) < 2 or not 1 <= data[1] <= _MOST_DOUBLINGS:
        raise MessageError(f"shards cannot be doubled more often than {_MOST_DOUBLINGS} times")
    return data[1]
