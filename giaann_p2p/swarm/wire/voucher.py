"""Somebody's word that a chunk comes to a certain delta.

Whoever has learned a chunk signs the root of its delta's digests (`store.seal`), once, for all
shards. A delta travels and is kept with the words of those who stand for it, so that
1. no owner can pass on anything else as theirs, and a lie has an author, who signed it;
2. a swarm, or who has a text learned, can ask for the words of several peers that came to the same:
   deltas follow from the text alone, so who learned it comes to the same bytes.
A word counts for ever: also when its author is long gone, a delta that is kept must be of use. Who
may push, and when, is asked where the connection is opened (`swarm.admission`).
"""

import struct
from collections.abc import Callable, Collection
from functools import partial
from typing import Annotated, Protocol

import msgspec

from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import DIGEST, Seal, Tree, told
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.identity import SIGNATURE_BYTES, Identity, Peer, PeerField, name_of, verified
from giaann_p2p.swarm.manifest import MOST_REDUNDANCY
from giaann_p2p.swarm.token import MOST_BYTES as MOST_TOKEN
from giaann_p2p.swarm.withdrawn import Withdrawn

_KIND = "voucher"
_CHUNK = struct.Struct("<I")

Sealing = Callable[[Shards], Seal]
"""Returns the seal of a delta's rows for some shards."""
Vouch = Callable[[bytes, int, bytes], "Voucher"]
"""Signs that a chunk of a job comes to a delta with this root."""
Root = Annotated[bytes, msgspec.Meta(min_length=DIGEST, max_length=DIGEST)]


class Voucher(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One peer's word; of which chunk and which root goes without saying."""

    author: PeerField
    signature: Annotated[
        bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)
    ]
    token: Annotated[bytes, msgspec.Meta(max_length=MOST_TOKEN)] = b""
    """In a swarm of members: that it may compute there."""


_DECODER = msgspec.msgpack.Decoder(
    Annotated[list[Voucher], msgspec.Meta(min_length=1, max_length=MOST_REDUNDANCY)]
)


class Members(Protocol):
    """Who may compute, and what the founder has withdrawn; see `Admission`."""

    @property
    def withdrawn(self) -> Withdrawn:
        """The chunks that are withdrawn."""
        ...

    def authored(self, peer: Peer, token: bytes) -> str:
        """Tell why a peer is nobody whose work counts; nothing if it is somebody."""
        ...

    def disowned(self, peer: Peer) -> bool:
        """Tell whether what a peer learned counts no longer."""
        ...


def vouched(
    author: Identity, swarm_id: bytes, job: bytes, chunk: int, root: bytes, token: bytes = b""
) -> Voucher:
    """Return a peer's word."""
    signature = author.sign(_KIND, _said(swarm_id, job, chunk, root))
    return Voucher(author.peer, signature, token)


def is_true(said: Voucher, swarm_id: bytes, job: bytes, chunk: int, root: bytes) -> bool:
    """Tell whether its author said so."""
    return verified(said.author, _KIND, _said(swarm_id, job, chunk, root), said.signature)


def words_of(vouchers: list[Voucher]) -> bytes:
    """Return vouchers as they go with a delta."""
    return msgspec.msgpack.encode(vouchers)


def sealing(vouchers: list[Voucher], tree: Tree) -> Sealing:
    """Return how a delta is sealed that somebody stands for."""
    return partial(_sealed, words_of(vouchers), tree)


def _sealed(words: bytes, tree: Tree, shards: Shards) -> Seal:
    return tree.seal(words, shards.tolist())


def authors_of(seal: Seal) -> list[Peer]:
    """Return who stands for a delta that was checked."""
    return [said.author for said in _read(seal.words)]


def is_disowned(authors: Collection[Peer], members: Members) -> bool:
    """Tell whether nobody is left of those who stand for a delta."""
    return bool(authors) and all(map(members.disowned, authors))


class Notary:
    """Checks that deltas have as many authors as a swarm asks for."""

    def __init__(self, swarm_id: bytes, layout: Layout, redundancy: int, members: Members) -> None:
        self._swarm_id, self._layout = swarm_id, layout
        self._needed, self._members = redundancy, members

    def __repr__(self) -> str:
        return f"<Notary: {self._needed} authors to a delta>"

    def check(self, update: Update) -> None:
        """Raise MessageError unless enough stand for a delta, and DamagedError for a broken seal.

        What is withdrawn is what the founder's list says, whoever signed: a disowned peer can give
        what it signs the name of a chunk that others taught, or sign of one that is withdrawn what
        others taught in another.
        """
        root = told(update.delta, update.shards, self._layout, update.seal).root
        authors = set[Peer]()
        chunk = update.chunk & ~WITHDRAWN
        for said in _read(update.seal.words):
            if not is_true(said, self._swarm_id, update.job, chunk, root):
                raise MessageError(f"seal: {name_of(said.author)} did not sign this delta")
            if why := self._members.authored(said.author, said.token):
                raise MessageError(f"seal: {why}")
            authors.add(said.author)
        if len(authors) < self._needed:
            raise MessageError(
                f"seal: {len(authors)} peers stand for this delta; here {self._needed} have to"
            )
        if update.chunk >= WITHDRAWN:
            self._check_withdrawal(update.job, chunk, root)

    def _check_withdrawal(self, job: bytes, chunk: int, root: bytes) -> None:
        listed = self._members.withdrawn.root_of(job, chunk)
        if not listed:
            raise MessageError(f"chunk {chunk} is not withdrawn by the founder's list")
        if listed != root:
            raise MessageError(f"chunk {chunk} is withdrawn, but this is not what it came to")


def _read(words: bytes) -> list[Voucher]:
    try:
        found: list[Voucher] = _DECODER.decode(words)
    except msgspec.MsgspecError as error:
        raise MessageError(f"seal: whose word it is cannot be read: {error}") from None
    return found


def _said(swarm_id: bytes, job: bytes, chunk: int, root: bytes) -> bytes:
    return b"".join([swarm_id, job, _CHUNK.pack(chunk), root])
