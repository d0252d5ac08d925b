"""Vouchers: signed statements that learning a chunk produces a certain delta.

A peer that has learned a chunk signs the root of its delta's hash tree (`store.seal`) once, for all
shards. The delta travels and is stored together with its vouchers. This has two effects:

1. No owner can pass off anything else as the authors' work, and every lie has an author.
2. A swarm, or the client of a job, can require vouchers of several peers for the same delta. All
   honest peers produce the same bytes, because the delta follows from the text alone.

A voucher never expires, because a stored delta must stay usable when its author is long gone.
Whether a peer may push is decided at the time of the push (`swarm.wire.admission`).
"""

import struct
from collections.abc import Callable, Collection
from functools import partial
from typing import Annotated, Protocol

import msgspec

from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.seal import DIGEST, Seal, Tree, told
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.wire.identity import (
    SIGNATURE_BYTES,
    Identity,
    Peer,
    PeerField,
    name_of,
    verified,
)
from giaann_p2p.swarm.wire.manifest import MOST_REDUNDANCY, Rules
from giaann_p2p.swarm.wire.token import MOST_BYTES as MOST_TOKEN
from giaann_p2p.swarm.wire.withdrawn import Withdrawn

_KIND = "voucher"
_CHUNK = struct.Struct("<I")

Sealing = Callable[[Shards], Seal]
"""A function that returns the seal of a delta's rows for some shards."""
Vouch = Callable[[bytes, int, bytes], "Voucher"]
"""A function that signs a voucher; its arguments are a job, a chunk and the root of its delta."""
Root = Annotated[bytes, msgspec.Meta(min_length=DIGEST, max_length=DIGEST)]


class Voucher(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One peer's signature for a chunk's delta; chunk and root are known from the context."""

    author: PeerField
    signature: Annotated[
        bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)
    ]
    token: Annotated[bytes, msgspec.Meta(max_length=MOST_TOKEN)] = b""
    """Token that proves the right to compute, in a swarm that admits by token."""


_DECODER = msgspec.msgpack.Decoder(
    Annotated[list[Voucher], msgspec.Meta(min_length=1, max_length=MOST_REDUNDANCY)]
)


class Members(Protocol):
    """The part of `Admission` that the check of vouchers needs."""

    @property
    def withdrawn(self) -> Withdrawn:
        """The chunks that the founder's list withdraws."""
        ...

    def authored(self, peer: Peer, token: bytes) -> str:
        """Return why the deltas that a peer signed do not count; empty if they do."""
        ...

    def disowned(self, peer: Peer) -> bool:
        """Return whether the founder's list disowns a peer, so that its work no longer counts."""
        ...


def vouched(
    author: Identity, swarm_id: bytes, job: bytes, chunk: int, root: bytes, token: bytes = b""
) -> Voucher:
    """Return the author's voucher that learning a chunk produces a delta with this root."""
    signature = author.sign(_KIND, _said(swarm_id, job, chunk, root))
    return Voucher(author.peer, signature, token)


def is_true(said: Voucher, swarm_id: bytes, job: bytes, chunk: int, root: bytes) -> bool:
    """Return whether the author of a voucher really signed it for this chunk and root."""
    return verified(said.author, _KIND, _said(swarm_id, job, chunk, root), said.signature)


def words_of(vouchers: list[Voucher]) -> bytes:
    """Encode vouchers, to be put into the seal of a delta."""
    return msgspec.msgpack.encode(vouchers)


def sealing(vouchers: list[Voucher], tree: Tree) -> Sealing:
    """Return a function that seals a delta's rows for some shards with these vouchers."""
    return partial(_sealed, words_of(vouchers), tree)


def _sealed(words: bytes, tree: Tree, shards: Shards) -> Seal:
    return tree.seal(words, shards.tolist())


def authors_of(seal: Seal) -> list[Peer]:
    """Return the authors of a delta, as named in its seal, which must have been checked before."""
    return [said.author for said in _read(seal.words)]


def is_disowned(authors: Collection[Peer], members: Members) -> bool:
    """Return whether a delta has authors, and all of them are disowned."""
    return bool(authors) and all(map(members.disowned, authors))


class Notary:
    """Checks that a delta has valid vouchers of as many authors as the swarm requires."""

    def __init__(
        self, swarm_id: bytes, rules: Callable[[], Rules], redundancy: int, members: Members
    ) -> None:
        """Check a swarm's deltas; `rules` returns the rules by the newest known edition."""
        self._swarm_id, self._rules = swarm_id, rules
        self._needed, self._members = redundancy, members

    def __repr__(self) -> str:
        return f"<Notary: {self._needed} authors to a delta>"

    def check(self, update: Update) -> None:
        """Raise MessageError if a delta lacks vouchers, and DamagedError if its seal is broken.

        A withdrawal must also match the root in the founder's list. Signatures do not suffice,
        because a disowned peer could sign its own delta under the name of a chunk that others
        learned, or their delta under the name of a withdrawn chunk.
        """
        root = told(update.delta, update.shards, self._rules().layout, update.seal).root
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
                f"seal: the delta has vouchers of {len(authors)} peers; this swarm requires"
                f" {self._needed}"
            )
        if update.chunk >= WITHDRAWN:
            self._check_withdrawal(update.job, chunk, root)

    def _check_withdrawal(self, job: bytes, chunk: int, root: bytes) -> None:
        listed = self._members.withdrawn.root_of(job, chunk)
        if not listed:
            raise MessageError(f"chunk {chunk} is not withdrawn by the founder's list")
        if listed != root:
            raise MessageError(f"chunk {chunk}: the founder's list withdraws another delta of it")


def _read(words: bytes) -> list[Voucher]:
    try:
        found: list[Voucher] = _DECODER.decode(words)
    except msgspec.MsgspecError as error:
        raise MessageError(f"seal: the vouchers cannot be read: {error}") from None
    return found


def _said(swarm_id: bytes, job: bytes, chunk: int, root: bytes) -> bytes:
    return b"".join([swarm_id, job, _CHUNK.pack(chunk), root])
