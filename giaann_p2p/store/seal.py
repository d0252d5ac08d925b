"""Merkle trees over deltas, so that the rows for some shards can be verified on their own.

A delta has a digest for each shard for which it has rows. These digests are the leaves of the tree.
The set of these shards, called the *shape*, and the top of the tree are hashed into the root, and
each author signs the root. A peer that receives the rows for some shards also receives the shape,
which shows the shards without rows, and the digests of the branches that cover none of these rows.
From all of them it computes the same root, or detects that something else was signed. A peer that
receives all shards needs no branches.

Shards without rows are not leaves: in a large swarm most shards get nothing from a chunk, and as
leaves they would cost far more than all the others.

A seal covers whole shards of the layout in which it was made, and states how often that layout was
doubled. After a later doubling, it still proves the rows of those shards, but no smaller part of
them. So the rows for some shards of the present layout are sent, verified and kept with those of
their *cover*, the seal's shards that contain them (see `Layout.cover`).

This module does not check signatures; `swarm.wire.voucher` does.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Annotated, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
import numpy as np

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.digest import row_digests
from giaann_p2p.store.codec.arrays import pack, unpack
from giaann_p2p.store.codec.damage import check
from giaann_p2p.store.layout import MOST_SHARDS, Layout, Shards

DIGEST = 16
"""The size in bytes of each digest of the tree: leaf, branch or root."""
MOST_WORDS = 1 << 14
"""The most bytes of encoded vouchers in a seal."""
_MOST_SHAPE = 4 * MOST_SHARDS
_DOUBLED = 1 << 7
"""If this bit of a shape's first byte is set, the byte's other bits are the number of doublings. No
encoded array starts with such a byte, so it is left out if the layout was never doubled."""
_LEAF, _BRANCH, _ROOT = b"giaann leaf", b"giaann branch", b"giaann root"
_SHAPES = 64
"""The number of decoded shapes to cache; all parts of a delta have the same shape. The cache takes
24 MB at most."""
_LEAVES: WeakKeyDictionary[Delta, tuple[Layout, dict[int, bytes]]] = WeakKeyDictionary()
"""A cache of each delta's leaves, for as long as the delta is in memory. A delta never changes, and
its leaves are needed three times: when it arrives, when it is cut to the shards to which it is new,
and when it is passed on."""


class Seal(NamedTuple):
    """The proof that is sent with a delta's rows for some shards: which peers signed the delta."""

    words: Annotated[bytes, msgspec.Meta(max_length=MOST_WORDS)] = b""
    """The encoded vouchers, which sign the tree's root; empty in an unsealed update."""
    shape: Annotated[bytes, msgspec.Meta(max_length=_MOST_SHAPE)] = b""
    """The encoded numbers of all shards for which the whole delta has rows, after the number of
    doublings, unless it is 0."""
    beside: Annotated[bytes, msgspec.Meta(max_length=DIGEST * MOST_SHARDS)] = b""
    """The digests of the branches that cover none of the rows sent with this seal, from the leaves
    up, left to right."""

    @property
    def size(self) -> int:
        """The size of the seal in bytes."""
        return len(self.words) + len(self.shape) + len(self.beside)

    @property
    def doublings(self) -> int:
        """How often the layout in which the seal was made was doubled since the manifest."""
        first = self.shape[0] if self.shape else 0
        return first ^ _DOUBLED if first & _DOUBLED else 0

    def layout(self, layout: Layout) -> Layout:
        """Return the layout in which the seal was made, given the present one.

        DamagedError for a later layout than the present one: otherwise, some owners would accept an
        update that others cannot read yet. An unsealed update has the present layout.
        """
        if not self.shape:
            return layout
        check(self.doublings <= layout.doublings, "a seal is of a later layout than this peer's")
        return layout.doubled(self.doublings)


UNSEALED = Seal()


def leaves_of(delta: Delta, shards: Shards, layout: Layout) -> dict[int, bytes]:
    """Return the leaf of each given shard for which the delta has rows."""
    known = _LEAVES.get(delta)
    if known is None or known[0] != layout:
        known = _LEAVES[delta] = layout, _leaves(delta, layout)
    wanted = {*shards.tolist()}
    return {shard: leaf for shard, leaf in known[1].items() if shard in wanted}


def _leaves(delta: Delta, layout: Layout) -> dict[int, bytes]:
    """Compute the leaf of each shard for which the delta has rows, by ascending shard number."""
    rows = (delta.count > 0) | (delta.lengths > 0)
    homes = layout.shards_of(delta.concept[rows], delta.feature[rows]).tolist()
    found: dict[int, list[bytes]] = {}
    for home, digest in zip(homes, row_digests(delta), strict=True):
        found.setdefault(home, []).append(digest)
    return {
        home: hashlib.blake2b(b"".join(found[home]), digest_size=DIGEST, person=_LEAF).digest()
        for home in sorted(found)
    }


class Tree:
    """The Merkle tree of a delta, computed from some leaves and the branches beside them."""

    def __init__(
        self,
        leaves: Mapping[int, bytes],
        shape: Shards,
        beside: bytes = b"",
        doublings: int = 0,
    ) -> None:
        """Compute the tree from the leaves of some shards and the branches in `beside`.

        `shape`: all shards for which the delta has rows, ascending. `doublings`: how often the
        layout of these shards was doubled. DamagedError unless `beside` has exactly the branches
        that the root requires.
        """
        check(len(beside) % DIGEST == 0, "a seal ends within a digest")
        left = [beside[at : at + DIGEST] for at in range(0, len(beside), DIGEST)]
        left.reverse()
        self._rank = {shard: rank for rank, shard in enumerate(shape.tolist())}
        check(leaves.keys() <= self._rank.keys(), "a seal lacks a shard that has rows")
        level, size = {self._rank[shard]: leaf for shard, leaf in leaves.items()}, len(shape)
        self._levels, self._sizes = [level], [size]
        while size > 1 and level:
            for at in sorted(level):
                if at ^ 1 not in level and at ^ 1 < size:
                    check(bool(left), "a seal lacks a branch")
                    level[at ^ 1] = left.pop()
            level = {at >> 1: _joined(level, at) for at in level if not at & 1}
            size = (size + 1) // 2
            self._levels.append(level)
            self._sizes.append(size)
        if not level and len(shape):
            check(bool(left), "a seal lacks a branch")
            level[0] = left.pop()
        check(not left, "a seal has too many branches")
        self._shape = shape
        self._doubled = bytes([_DOUBLED | doublings]) if doublings else b""
        plain = shape.astype("<u2").tobytes()
        top = level.get(0, b"")
        whole = plain + top + self._doubled
        self.root = hashlib.blake2b(whole, digest_size=DIGEST, person=_ROOT).digest()
        """The digest of the whole delta, which the delta's authors sign."""
        self._top = top

    def __repr__(self) -> str:
        return f"<Tree of {len(self._rank)} leaves: {self.root.hex()}>"

    @cached_property
    def shape(self) -> bytes:
        """The numbers of all shards for which the delta has rows, encoded as in a seal."""
        steps = self._shape.astype(np.uint32)
        steps[1:] -= self._shape[:-1]
        return self._doubled + pack([steps])

    def beside(self, shards: Iterable[int]) -> bytes:
        """Return the digests of the branches that cover none of the given shards' leaves."""
        covered = {self._rank[shard] for shard in shards if shard in self._rank}
        if not covered:
            return self._top
        found: list[bytes] = []
        for level, size in zip(self._levels, self._sizes, strict=True):
            wanted = sorted(at ^ 1 for at in covered if at ^ 1 not in covered and at ^ 1 < size)
            found += [level[at] for at in wanted]
            covered = {at >> 1 for at in covered}
        return b"".join(found)

    def seal(self, words: bytes, shards: Iterable[int]) -> Seal:
        """Return the seal to send with the rows for some shards; `words`: the encoded vouchers."""
        return Seal(words, self.shape, self.beside(shards))


def made(delta: Delta, layout: Layout) -> Tree:
    """Return the Merkle tree of a whole delta."""
    leaves = leaves_of(delta, np.arange(layout.shards, dtype=np.uint16), layout)
    return Tree(leaves, np.fromiter(leaves, np.uint16), doublings=layout.doublings)


def told(delta: Delta, shards: Shards, layout: Layout, seal: Seal) -> Tree:
    """Compute the tree from a delta's rows for the cover of some shards and from their seal.

    DamagedError if the rows do not fit the seal.
    """
    shape, made_in = _shape(seal.shape), seal.layout(layout)
    shards = layout.cover(shards, made_in)
    leaves = leaves_of(delta, shards, made_in)
    wanted = {*shape.tolist()} & {*shards.tolist()}
    check(leaves.keys() == wanted, "the seal states other shards than the delta has rows for")
    return Tree(leaves, shape, seal.beside, seal.doublings)


def narrowed(seal: Seal, delta: Delta, shards: Shards, some: Shards, layout: Layout) -> Seal:
    """Narrow a seal, of a delta's rows for `shards`, to its rows for `some` of these shards."""
    if not seal.words or len(some) == len(shards):
        return seal
    made_in = seal.layout(layout)
    part = layout.cover(some, made_in)
    if len(part) == len(layout.cover(shards, made_in)):
        return seal
    return seal._replace(beside=told(delta, shards, layout, seal).beside(part.tolist()))


def leaves_in(seal: Seal) -> int:
    """Return the number of shards that a seal names; DamagedError if it cannot be read."""
    return len(_shape(seal.shape)) if seal.shape else 0


def check_shape(seal: Seal, layout: Layout) -> None:
    """Raise DamagedError if a seal names shards that do not exist, or has too many branches."""
    shape = _shape(seal.shape)
    most = seal.layout(layout).shards
    check(not len(shape) or int(shape[-1]) < most, "a seal names shards beyond the last")
    check(len(seal.beside) <= DIGEST * len(shape), "a seal has more branches than shards")


def to_bytes(leaves: Mapping[int, bytes]) -> bytes:
    """Encode all leaves of a delta as bytes: shard and digest of each, concatenated."""
    return b"".join(shard.to_bytes(2, "little") + leaf for shard, leaf in leaves.items())


def from_bytes(data: bytes, doublings: int = 0) -> Tree:
    """Compute a delta's tree from all its leaves, as `to_bytes` encoded them.

    `doublings`: how often the layout of these leaves was doubled.
    """
    each = np.frombuffer(data, [("shard", "<u2"), ("leaf", f"V{DIGEST}")])
    shape = each["shard"].astype(np.uint16)
    leaves = [leaf.tobytes() for leaf in each["leaf"]]
    return Tree(dict(zip(shape.tolist(), leaves, strict=True)), shape, doublings=doublings)


@lru_cache(maxsize=_SHAPES)
def _shape(data: bytes) -> Shards:
    is_doubled = bool(data and data[0] & _DOUBLED)
    check(not is_doubled or data[0] != _DOUBLED, "a seal's shape states no doublings")
    (steps,) = unpack(data, 1, MOST_SHARDS, int(is_doubled))
    check(steps.dtype == np.uint32, "a seal's shape has the wrong type")
    shape = np.cumsum(steps, dtype=np.int64)
    check(
        not len(shape) or int(shape[-1]) < MOST_SHARDS,
        "a seal's shape has shards that do not exist",
    )
    check(bool(np.all(steps[1:] > 0)), "a seal's shape has a shard twice")
    found = shape.astype(np.uint16)
    found.flags.writeable = False
    return found


def _joined(level: Mapping[int, bytes], at: int) -> bytes:
    """Return the digest of the parent of nodes `at` and `at + 1`.

    The last node of an odd level has no neighbour, and is its own parent.
    """
    if at + 1 not in level:
        return level[at]
    both = level[at] + level[at + 1]
    return hashlib.blake2b(both, digest_size=DIGEST, person=_BRANCH).digest()
