"""What peers say to one another: each question, and what may be answered to it.

Plain structs, in MessagePack behind a byte of version. Deltas and sets of chunks inside are in the
store's own forms, shards as `shardset` packs them; all are checked where they are read. Nothing
here is executed, and nothing is larger than `MOST_BYTES`: what may be is asked for in parts.
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
from giaann_p2p.swarm.manifest import MOST_REDUNDANCY
from giaann_p2p.swarm.voucher import Root, Voucher
from giaann_p2p.swarm.withdrawn import MOST as MOST_ORPHANS
from giaann_p2p.swarm.withdrawn import Part as Orphaned

VERSION = 3
"""1: many rows came as a parcel; 2: as a sheaf; 3: who asks for much says how much at once, and
deltas are sealed."""
MOST_BYTES = 8 << 20
"""Of one message; a shard's part is smaller, and an answer is cut before it grows so far."""

MOST_READ = 1 << 12
"""Neurons that may be asked for at once."""

MOST_PROMPT = 1 << 16
"""Characters."""

BUSY = "busy"
"""How a refusal begins that is none if it is asked again later."""
_HALF = 8
NEURON_BYTES = 2 * _HALF
"""A concept and a feature."""

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
"""What a worker tells of at once; it has some slots, and reports what is done as it comes."""
Chunks = Annotated[list[Chunk], msgspec.Meta(max_length=_MOST_CHUNKS)]
Reason = Annotated[str, msgspec.Meta(max_length=200)]
_MOST_KINDS = 16
Kind = Annotated[str, msgspec.Meta(max_length=32)]
Sentences = Annotated[int, msgspec.Meta(ge=0, le=_MOST_SENTENCES)]
"""A number of a chunk's sentences, or the number of one of them."""


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Something that one peer says to another."""


class Push(Message, frozen=True, tag="push"):
    """Take a chunk in: its delta's rows for some shards that you hold.

    Never a withdrawal: owners fetch those from each other.
    """

    job: Job
    chunk: Annotated[int, msgspec.Meta(ge=0, lt=WITHDRAWN)]
    shards: bytes
    parcel: bytes
    seal: Seal = UNSEALED
    """Who stands for it."""


class Pushed(Message, frozen=True, tag="pushed"):
    """It is on my disk, for these shards; the others are not held here."""

    shards: bytes


class Read(Message, frozen=True, tag="read"):
    """Tell me the rows of some neurons."""

    concepts: bytes
    features: bytes


class Rows(Message, frozen=True, tag="rows"):
    """These are all that I have of them, but for those of shards that are not ready here."""

    parcel: bytes
    """Of few rows plain bytes (`store.codec.plain`), of more a sheaf (`store.codec.sheaf`)."""
    moved: bytes
    """The shards that are not."""


class AskColumn(Message, frozen=True, tag="column?"):
    """Which words has a concept's column?"""

    concept: Annotated[bytes, msgspec.Meta(min_length=_HALF, max_length=_HALF)]


class Column(Message, frozen=True, tag="column"):
    """These, as far as I have it: those first that occur most often, up to `MOST_READ`."""

    features: Annotated[bytes, msgspec.Meta(max_length=_HALF * MOST_READ)]


class Compare(Message, frozen=True, tag="compare"):
    """Which chunks have you taken in? I have those with these marks."""

    shards: bytes
    marks: Annotated[list[bytes], _ONE_EACH]
    """The mark of each shard's set of chunks; empty where I have none."""


class Compared(Message, frozen=True, tag="compared"):
    """What each shard is with me, and its set of chunks where it is not the same as yours."""

    states: bytes
    """One letter for each shard that was asked for."""
    which: Annotated[list[int], _ONE_EACH]
    """For each, which of the sets is its own; -1 where it is the same as yours, or none."""
    sets: Annotated[list[bytes], _ONE_EACH]


class Fetch(Message, frozen=True, tag="fetch"):
    """Give me the deltas of some chunks, for some shards."""

    shards: bytes
    chunks: bytes
    most: _Amount = MOST_BYTES
    """Bytes that are to come at once; a delta that is larger comes alone."""
    remembered: bool = False
    """Also what you thought nobody lacks, if you remember it: else nothing helps me."""


class Fetched(Message, frozen=True, tag="fetched"):
    """As many of them as were to come, or go into a message."""

    updates: Annotated[list["Piece"], msgspec.Meta(max_length=_MOST_PIECES)]
    gone: bytes
    """The chunks whose deltas I do not keep any longer, for one of the shards or all."""


class Piece(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A chunk's delta for some shards."""

    job: Job
    chunk: Chunk
    shards: bytes
    parcel: bytes
    seal: Seal = UNSEALED
    """Who stands for it."""


class Offer(Message, frozen=True, tag="offer"):
    """I want a whole shard: what is there to be sent?"""

    shard: Shard
    most: _Amount = MOST_BYTES
    """Bytes that its first part may have to come along at once."""


class Offered(Message, frozen=True, tag="offered"):
    """This: a manifest of it, and so that most need not ask again, more."""

    manifest: bytes
    kept: bytes
    """The chunks of it whose deltas I still keep: they are to be fetched first."""
    part: bytes
    """The first part; empty if there is none, or if it is too long."""


class AskPart(Message, frozen=True, tag="part?"):
    """Send one part of what a manifest with this digest promises."""

    shard: Shard
    digest: bytes
    number: Annotated[int, msgspec.Meta(ge=0)]


class Part(Message, frozen=True, tag="part"):
    """This is it."""

    parcel: bytes


class AskDigests(Message, frozen=True, tag="digests?"):
    """What do your replicas of some shards come to?"""

    shards: bytes


class Digests(Message, frozen=True, tag="digests"):
    """This, for the first of those shards: as many as could be worked out at once."""

    shards: bytes
    found: Annotated[list["Digest"], _ONE_EACH]
    """For each of these in turn."""


class Digest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A replica, in short."""

    state: Annotated[bytes, msgspec.Meta(min_length=1, max_length=1)]
    """Its letter; see `swarm.replica`."""
    chunks: Annotated[bytes, msgspec.Meta(max_length=16)]
    """The digest of its set of chunks; empty where nothing is held."""
    content: Annotated[bytes, msgspec.Meta(max_length=32)]
    """The digest of its rows, which add up."""
    rows: Annotated[int, msgspec.Meta(ge=0)]
    connections: Annotated[int, msgspec.Meta(ge=0)]


class AskProof(Message, frozen=True, tag="proof?"):
    """I am about to let some shards go: show that you hold what these chunks come to in each."""

    shards: bytes
    chunks: bytes
    salt: Annotated[bytes, msgspec.Meta(min_length=SALT_BYTES, max_length=SALT_BYTES)]
    """By chance, so that nobody can know the answer before, and have let go of the shards."""


class Proof(Message, frozen=True, tag="proof"):
    """This shows it, for the first of those shards: as many as could be worked out at once."""

    shards: bytes
    found: Annotated[list[Annotated[bytes, msgspec.Meta(max_length=_PROOF_BYTES)]], _ONE_EACH]
    """For each of these in turn; empty where I lack some of it, or cannot tell. See `weighing`."""


class Learn(Message, frozen=True, tag="learn"):
    """Learn a chunk of my job, and bring it to its owners."""

    job: Job
    chunk: Chunk
    sentences: Annotated[list[str], msgspec.Meta(max_length=_MOST_SENTENCES)]


class Taken(Message, frozen=True, tag="taken"):
    """I do."""


class Skip(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What of a chunk could not be learned."""

    reason: Kind
    count: Sentences
    first: Sentences
    """The number of the first such sentence in the chunk, from 0."""


class Learned(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A chunk that is committed."""

    chunk: Chunk
    sequences: Sentences = 0
    skips: Annotated[list[Skip], msgspec.Meta(max_length=_MOST_KINDS)] = []
    pushed: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Bytes that it took to bring it to its owners."""


class Came(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a chunk came to; it is brought to nobody before that is wanted."""

    chunk: Chunk
    root: Root
    voucher: Voucher


class Bring(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A chunk to be brought to its owners, with the words of all who came to the same."""

    chunk: Chunk
    vouchers: Annotated[list[Voucher], msgspec.Meta(min_length=1, max_length=MOST_REDUNDANCY)]


class Beat(Message, frozen=True, tag="beat"):
    """How it goes with the chunks of your job."""

    job: Job
    working: Chunks
    done: Annotated[list[Learned], msgspec.Meta(max_length=_MOST_CHUNKS)]
    failed: Annotated[list[tuple[Chunk, Reason]], msgspec.Meta(max_length=_MOST_CHUNKS)]
    came: Annotated[list[Came], msgspec.Meta(max_length=_MOST_CHUNKS)] = []
    """What is learned, and waits for a word: bring it, or leave it."""


class Heard(Message, frozen=True, tag="heard"):
    """Thank you; these you may leave."""

    leave: Chunks
    bring: Annotated[list[Bring], msgspec.Meta(max_length=_MOST_CHUNKS)] = []
    """These are to be brought to their owners."""


class Ask(Message, frozen=True, tag="ask"):
    """Go on from my prompt, and tell me what is new as soon as something is.

    The same question with more that was `said` asks for what comes next. All that is needed is in
    it, so any peer that is asked goes on, whoever was asked before.
    """

    number: Annotated[bytes, msgspec.Meta(min_length=_NUMBER, max_length=_NUMBER)]
    """Of the prompt, by chance."""
    prompt: Annotated[str, msgspec.Meta(max_length=MOST_PROMPT)]
    manner: Manner
    said: Annotated[bytes, msgspec.Meta(max_length=NEURON_BYTES * MOST_TOKENS)]
    """The neurons of the tokens that I have, one after the other: concept, feature, as u64."""


class Cost(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a token took, or the prompt before the first one."""

    micros: _Amount = 0
    """From the one before to this one."""
    waited: _Amount = 0
    """Of these: for rows."""
    rows: _Amount = 0
    """Rows that were wanted."""
    kept: _Amount = 0
    """Of these: were at hand."""
    trips: _Amount = 0
    """Times that others had to be waited for."""
    nbytes: _Amount = 0
    """That came for it, be it ahead of what is wanted next."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*map(add, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))


class Told(Message, frozen=True, tag="told"):
    """This came to mind since; nothing, if it still takes time."""

    completion: str
    unknown: list[str]
    tokens: list[Token]
    stopped: Stopped | None
    costs: list[Cost] = []
    """Of each token."""
    begun: Cost | None = None
    """What it took to take the prompt in, once that is done."""
    fault: str = ""
    """Why there is no answer to this prompt, whoever is asked."""


class AskManifest(Message, frozen=True, tag="manifest?"):
    """What did all of this swarm agree on?"""


class ManifestIs(Message, frozen=True, tag="manifest"):
    """This: see `Manifest.read`; its hash is the swarm's id."""

    manifest: bytes


class AskRevoked(Message, frozen=True, tag="revoked?"):
    """Who is no longer a member? Tell me what is newer than the list with this number."""

    number: Annotated[int, msgspec.Meta(ge=0)]


class RevokedIs(Message, frozen=True, tag="revoked"):
    """These: see `swarm.revoked`; nothing if no newer list is here. Also told unasked."""

    revoked: bytes


class AskOrphans(Message, frozen=True, tag="orphans?"):
    """Which chunks do only disowned peers stand for, as far as you remember? See `orphans`."""

    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
    """Of the list of the revoked that you are to go by, or a newer one."""
    page: Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)] = 0


class OrphansAre(Message, frozen=True, tag="orphans"):
    """These, of those that are not withdrawn yet."""

    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
    """Of the list that I went by."""
    pages: Annotated[int, msgspec.Meta(ge=1, lt=1 << 16)]
    """How many there are; this is one."""
    found: Annotated[tuple[Orphaned, ...], msgspec.Meta(max_length=MOST_ORPHANS)]


class Refused(Message, frozen=True, tag="refused"):
    """I can't, for this reason; nothing has changed."""

    reason: str

    @property
    def is_busy(self) -> bool:
        """Whether it is none if it is asked again later."""
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
    | Told
    | AskManifest
    | ManifestIs
    | AskRevoked
    | RevokedIs
    | Refused
    | AskProof
    | Proof
    | AskOrphans
    | OrphansAre
)

_VERSION = bytes([VERSION])
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: Message) -> bytes:
    """Return a message as bytes; MessageError if it is too long to be sent."""
    data = _VERSION + _ENCODER.encode(message)
    if len(data) > MOST_BYTES:
        raise MessageError(f"a message of {len(data):,} bytes; at most {MOST_BYTES:,} are sent")
    return data


def decode(data: bytes | memoryview) -> Message:
    """Read what `encode` wrote, whoever sent it."""
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
