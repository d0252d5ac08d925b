"""The manifest of a swarm: the settings that all its peers share and that never change.

The manifest fixes the model, the shards, and how many replicas make an update count.

1. A manifest has one canonical encoding; any other encoding of the same fields is refused.
2. The swarm's id is the hash of the whole manifest, the founder's signature included. So a peer
   with the id can check every part of the manifest itself, and two manifests that differ at all,
   even only in the founder or the signature, are two swarms.
3. The founder signs the manifest, so that a list of swarms can show who made each, and so that the
   same key can later admit members to a swarm that admits by token.
"""

import hashlib
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

import msgspec

from giaann_p2p.errors import MessageError, SpecError
from giaann_p2p.model.spec import CHUNK, ModelSpec, pipeline_advice
from giaann_p2p.store.cut_columns import CutColumns, cut_columns, read_columns
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.wire.identity import SIGNATURE_BYTES, Identity, PeerField, verified

FORMAT = 1
"""Version of the manifest's encoding."""
PROTOCOL = 8
"""Version of the protocol between peers; see also `messages.VERSION`."""
MOST_BYTES = 1 << 16
"""Maximum length of an encoded manifest, in bytes. Without cut columns, it is below 2,000."""
MOST_REPLICAS = 64
MOST_REDUNDANCY = 8
"""Maximum number of compute peers that a swarm may require to agree on a delta."""
_MOST_NAME = 64
_KIND = "manifest"
_OTHER_RELEASE = "install the release of giaann-p2p that the swarm was made with"

_Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
_Signature = Annotated[bytes, msgspec.Meta(max_length=SIGNATURE_BYTES)]


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of software and data that a peer has, to compare with a swarm's requirements."""

    protocol: int = PROTOCOL
    pipelines: tuple[str, ...] = ()
    """Digests of the English pipelines that are installed (see `model.english`)."""
    lexicon: str = ""
    """Digest of the word lists (see `model.lexicon`)."""


class Rules(NamedTuple):
    """The rules that decide where updates go and when they count (see `edition`)."""

    shards: int
    replicas: int = 3
    """Number of peers that own each shard."""
    quorum: int = 2
    """Number of replicas that must have an update durably before it counts."""
    founded: int = 0
    """Number of peers that own each shard by the manifest; 0 if it is `replicas`."""
    first_quorum: int = 0
    """The quorum by the manifest; 0 if it is `quorum`."""
    edition: int = 0
    """Number of the edition that sets these rules."""
    sizes: tuple[int, ...] = (CHUNK,)
    """Chunk sizes, in sentences: the manifest's, then those of editions; the last is in force."""
    founding_shards: int = 0
    """Number of shards by the manifest; 0 if it is `shards`."""
    blocks: int = 1
    """Number of blocks per column."""
    cuts: tuple[CutColumns, ...] = (cut_columns(()),)
    """For each of the `sizes`, the columns that are cut by target in chunks of that size."""

    @property
    def first_shards(self) -> int:
        """The number of shards by the manifest."""
        return self.founding_shards or self.shards

    @property
    def layout(self) -> Layout:
        """The layout now: the manifest's, with the number of shards of the edition."""
        return _layout(self.first_shards, self.shards, self.blocks, self.sizes[0], self.cuts[0])

    @property
    def columns(self) -> CutColumns:
        """The columns that are cut by target now, to read them."""
        return read_columns(self.cuts)

    def layout_at(self, size: int) -> Layout:
        """Return the layout with the columns that are cut in chunks of one of the `sizes`.

        0 stands for the manifest's size.
        """
        cuts = self.cuts[self.sizes.index(size)] if size else self.cuts[0]
        return _layout(self.first_shards, self.shards, self.blocks, self.sizes[0], cuts)

    def cut_as(self, size: int) -> int:
        """Return `size` if chunks of it are cut in another way than the manifest's; otherwise 0."""
        return 0 if self.layout_at(size) == self.layout else size

    @property
    def chunk(self) -> int:
        """The number of sentences in a chunk of a text that was not learned before."""
        return self.sizes[-1]

    @property
    def least_quorum(self) -> int:
        """The lowest quorum of any edition: no committed update is on fewer replicas."""
        return self.first_quorum or self.quorum

    @property
    def begin(self) -> int:
        """Number of owners that must be present to declare a shard ready with the chunks they have.

        It matters only if no peer has the shard ready, as after a restart of the whole swarm. If
        any two quorums of the manifest meet, at least one of these owners has each committed
        update.
        """
        do_meet = self.least_quorum >= usual_quorum(self.founded or self.replicas)
        return max(self.quorum, self.replicas - self.least_quorum + 1) if do_meet else self.quorum


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A swarm's manifest: the settings that all its peers share, signed by the founder.

    Invariants: 1 <= quorum <= replicas, and redundancy >= 1.
    """

    format: _Number = FORMAT
    protocol: _Number = PROTOCOL
    name: str
    spec: ModelSpec
    layout: Layout
    replicas: _Number = 3
    """R: the number of peers that hold each shard."""
    quorum: _Number = 0
    """W: the number of replicas of a shard that must have an update on disk before it counts. Pass
    0 for a majority of R."""
    redundancy: _Number = 1
    """Number of compute peers that must produce the same delta before it counts."""
    admission: Literal["open", "token"] = "open"
    """Which peers are served: all, or only those with a token from the founder."""
    places: Literal["near"] | msgspec.UnsetType = msgspec.UNSET
    """Whether the keys of the peer directory are close together in the DHT, so that a few nodes
    store all records while the swarm is small. Unset in swarms that earlier releases founded: all
    peers of a swarm must look for records under the same keys."""
    founder: PeerField
    signature: _Signature = b""

    def __post_init__(self) -> None:
        if not self.quorum:
            msgspec.structs.force_setattr(self, "quorum", usual_quorum(self.replicas))
        rules = {
            f"name must have 1 to {_MOST_NAME} printable characters": (
                1 <= len(self.name) <= _MOST_NAME and self.name.isprintable()
            ),
            "admission must be open or token": self.admission in ("open", "token"),
            f"redundancy must be 1 to {MOST_REDUNDANCY}": 1 <= self.redundancy <= MOST_REDUNDANCY,
            f"replicas must be 1 to {MOST_REPLICAS}": 1 <= self.replicas <= MOST_REPLICAS,
            f"quorum must be 1 to {self.replicas}, the number of replicas": (
                1 <= self.quorum <= self.replicas
            ),
        }
        for rule, kept in rules.items():
            if not kept:
                raise SpecError(f"{rule}; it is {getattr(self, rule.split()[0])!r}")
        if self.layout.doublings:
            raise SpecError("a manifest's layout must not be doubled; double it with an edition")

    @classmethod
    def founded(
        cls,
        founder: Identity,
        name: str,
        *,
        spec: ModelSpec | None = None,
        layout: Layout | None = None,
        replicas: int = 3,
        quorum: int = 0,
        redundancy: int = 1,
        admission: Literal["open", "token"] = "open",
        places: Literal["near"] | msgspec.UnsetType = msgspec.UNSET,
    ) -> "Manifest":
        """Return the signed manifest of a new swarm; SpecError names the rule that is broken."""
        draft = cls(
            name=name,
            spec=spec or ModelSpec(),
            layout=layout or Layout(),
            replicas=replicas,
            quorum=quorum,
            redundancy=redundancy,
            admission=admission,
            places=places,
            founder=founder.peer,
        )
        signed = msgspec.structs.replace(draft, signature=founder.sign(_KIND, draft.to_bytes()))
        if (size := len(signed.to_bytes())) > MOST_BYTES:
            raise SpecError(
                f"a manifest has at most {MOST_BYTES:,} bytes, not {size:,}: cut fewer columns"
            )
        return signed

    @classmethod
    def read(cls, data: bytes, swarm_id: bytes | None = None) -> "Manifest":
        """Parse and verify an encoded manifest; MessageError says what is wrong.

        If `swarm_id` is given, only the manifest of that swarm is accepted.
        """
        if len(data) > MOST_BYTES:
            raise MessageError(f"a manifest has at most {MOST_BYTES:,} bytes, not {len(data):,}")
        if swarm_id is not None and swarm_id_of(data) != swarm_id:
            raise MessageError("this is another swarm's manifest: its hash is not the swarm's id")
        found = _decoded(data)
        if found.to_bytes() != data:
            raise MessageError("the manifest is not in its canonical encoding")
        draft = msgspec.structs.replace(found, signature=b"").to_bytes()
        if not verified(found.founder, _KIND, draft, found.signature):
            raise MessageError("the manifest's signature is not its founder's")
        return found

    @property
    def swarm_id(self) -> bytes:
        """The swarm's id: the 32-byte hash of its manifest."""
        return swarm_id_of(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the canonical encoding of the manifest: JSON with sorted keys."""
        return msgspec.json.encode(self, order="sorted")

    def differences(self, here: Versions, *, computes: bool = True) -> list[str]:
        """Return each version mismatch that keeps a peer out of the swarm, with its remedy.

        A peer that only stores (`computes` is false) needs no English pipeline and no word lists.
        """
        found = []
        if here.protocol != self.protocol:
            found.append(
                f"protocol: the swarm speaks {self.protocol}, this giaann-p2p {here.protocol}; "
                f"{_OTHER_RELEASE}"
            )
        if computes and self.spec.pipeline not in here.pipelines:
            have = ", ".join(here.pipelines) or "none is installed"
            found.append(
                f"pipeline: the swarm needs {self.spec.pipeline}, here: {have}; "
                f"{pipeline_advice(self.spec.pipeline)}"
            )
        if computes and self.spec.lexicon and self.spec.lexicon != here.lexicon:
            found.append(
                f"lexicon: the swarm needs {self.spec.lexicon}, here: {here.lexicon or 'none'}; "
                f"{_OTHER_RELEASE}"
            )
        return found


def usual_quorum(replicas: int) -> int:
    """Return the usual write quorum: a majority of the replicas, so that any two quorums meet."""
    return replicas // 2 + 1


def swarm_id_of(data: bytes) -> bytes:
    """Return the id of the swarm that has this encoded manifest."""
    return hashlib.blake2b(b"giaann swarm\0" + data, digest_size=32).digest()


@lru_cache(maxsize=16)
def _layout(first: int, shards: int, blocks: int, sentences: int, columns: CutColumns) -> Layout:
    founding = Layout(shards=first, blocks=blocks, sentences=sentences, cuts=columns.cuts)
    return founding.with_shards(shards)


class _Format(msgspec.Struct):
    format: int


def _decoded(data: bytes) -> Manifest:
    try:
        number = msgspec.json.decode(data, type=_Format).format
        if number != FORMAT:
            raise MessageError(
                f"the manifest has format {number}, but this giaann-p2p reads {FORMAT}; "
                f"{_OTHER_RELEASE}"
            )
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, SpecError) as error:
        raise MessageError(f"this is not a swarm's manifest: {error}") from None
