"""What tells that a delta is the one its author made, also of a part of it for some shards.

A delta has a digest for each shard for which it has rows. These are the leaves of a tree of digests
(Merkle's); which shards they are, its *shape*, and the tree's top make the root, and that is what
its author signs. Whoever gets the rows for some shards gets the shape with them, so that it sees
which have none, and the digests of those branches that have none of its leaves: so it comes to the
same root, or sees that something else was signed. Who has all shards needs no branches.

Most shards of a large swarm get nothing from a chunk: as leaves they would cost far more than all
that the others need.

Who signed, and what that is worth, is not looked at here: see `swarm.voucher`.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Annotated, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
import numpy as np

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.digest import DIGEST_BYTES, row_digests
from giaann_p2p.store.codec.arrays import pack, unpack
from giaann_p2p.store.codec.damage import check
from giaann_p2p.store.layout import MOST_SHARDS, Layout, Shards

DIGEST = 16
"""Bytes of a leaf, of a branch, and of the root."""
MOST_WORDS = 1 << 14
_MOST_SHAPE = 4 * MOST_SHARDS
_LEAF, _BRANCH, _ROOT = b"giaann leaf", b"giaann branch", b"giaann root"
_SHAPES = 64
"""Shapes that are remembered, as each comes with every part of its delta; 24 MB at most."""
_LEAVES: WeakKeyDictionary[Delta, tuple[Layout, dict[int, bytes]]] = WeakKeyDictionary()
"""The leaves of deltas that are in memory, for as long as they are: a delta never changes, and is
looked at when it comes, when it is cut to what is new here, and when it is told for some shards."""


class Seal(NamedTuple):
    """What goes with a delta's rows for some shards."""

    words: Annotated[bytes, msgspec.Meta(max_length=MOST_WORDS)] = b""
    """Who says that the root is right."""
    shape: Annotated[bytes, msgspec.Meta(max_length=_MOST_SHAPE)] = b""
    """The shards for which the delta has rows."""
    beside: Annotated[bytes, msgspec.Meta(max_length=DIGEST * MOST_SHARDS)] = b""
    """The digests of the branches without any of these rows: from the leaves up, left to right."""

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.words) + len(self.shape) + len(self.beside)


UNSEALED = Seal()


def leaves_of(delta: Delta, shards: Shards, layout: Layout) -> dict[int, bytes]:
    """Digest a delta's rows for each of some shards for which it has any."""
    known = _LEAVES.get(delta)
    if known is None or known[0] != layout:
        known = _LEAVES[delta] = layout, _leaves(delta, layout)
    wanted = {*shards.tolist()}
    return {shard: leaf for shard, leaf in known[1].items() if shard in wanted}


def _leaves(delta: Delta, layout: Layout) -> dict[int, bytes]:
    """Digest a delta's rows for each shard, ascending."""
    rows = (delta.count > 0) | (delta.lengths > 0)
    homes = layout.shards_of(delta.concept[rows], delta.feature[rows]).tolist()
    found: dict[int, list[bytes]] = {}
    for home, digest in zip(homes, row_digests(delta), strict=True):
        found.setdefault(home, []).append(digest.to_bytes(DIGEST_BYTES, "little"))
    return {
        home: hashlib.blake2b(b"".join(found[home]), digest_size=DIGEST, person=_LEAF).digest()
        for home in sorted(found)
    }


class Tree:
    """The digests that follow from some leaves and the branches beside them."""

    def __init__(self, leaves: Mapping[int, bytes], shape: Shards, beside: bytes = b"") -> None:
        """Make one of the leaves of some shards; `shape`: all that there are, ascending.

        DamagedError unless there is just what is needed to come to a root.
        """
        check(len(beside) % DIGEST == 0, "a seal with half a digest")
        left = [beside[at : at + DIGEST] for at in range(0, len(beside), DIGEST)]
        left.reverse()
        self._rank = {shard: rank for rank, shard in enumerate(shape.tolist())}
        check(leaves.keys() <= self._rank.keys(), "a seal without a shard that has rows")
        level, size = {self._rank[shard]: leaf for shard, leaf in leaves.items()}, len(shape)
        self._levels, self._sizes = [level], [size]
        while size > 1 and level:
            for at in sorted(level):
                if at ^ 1 not in level and at ^ 1 < size:
                    check(bool(left), "a seal that lacks a branch")
                    level[at ^ 1] = left.pop()
            level = {at >> 1: _joined(level, at) for at in level if not at & 1}
            size = (size + 1) // 2
            self._levels.append(level)
            self._sizes.append(size)
        if not level and len(shape):
            check(bool(left), "a seal that lacks a branch")
            level[0] = left.pop()
        check(not left, "a seal with a branch too many")
        self._shape = shape
        plain = shape.astype("<u2").tobytes()
        top = level.get(0, b"")
        self.root = hashlib.blake2b(plain + top, digest_size=DIGEST, person=_ROOT).digest()
        """What stands for the whole delta."""
        self._top = top

    def __repr__(self) -> str:
        return f"<Tree of {len(self._rank)} leaves: {self.root.hex()}>"

    @cached_property
    def shape(self) -> bytes:
        """Which leaves there are, in a seal."""
        steps = self._shape.astype(np.uint32)
        steps[1:] -= self._shape[:-1]
        return pack([steps])

    def beside(self, shards: Iterable[int]) -> bytes:
        """Return the digests of the branches that have none of the leaves of some shards."""
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
        """Return what goes with the rows for some shards."""
        return Seal(words, self.shape, self.beside(shards))


def made(delta: Delta, layout: Layout) -> Tree:
    """Return the tree of a whole delta."""
    leaves = leaves_of(delta, np.arange(layout.shards, dtype=np.uint16), layout)
    return Tree(leaves, np.fromiter(leaves, np.uint16))


def told(delta: Delta, shards: Shards, layout: Layout, seal: Seal) -> Tree:
    """Return the tree that a delta's rows for some shards belong to; DamagedError if to none."""
    shape = _shape(seal.shape)
    leaves = leaves_of(delta, shards, layout)
    wanted = {*shape.tolist()} & {*shards.tolist()}
    check(leaves.keys() == wanted, "a seal of a delta that has rows for other shards")
    return Tree(leaves, shape, seal.beside)


def narrowed(seal: Seal, delta: Delta, shards: Shards, some: Shards, layout: Layout) -> Seal:
    """Return the seal for some of the shards that a delta is sealed for."""
    if not seal.words or len(some) == len(shards):
        return seal
    return seal._replace(beside=told(delta, shards, layout, seal).beside(some.tolist()))


def to_bytes(leaves: Mapping[int, bytes]) -> bytes:
    """Return all leaves of a delta, one behind the other."""
    return b"".join(shard.to_bytes(2, "little") + leaf for shard, leaf in leaves.items())


def from_bytes(data: bytes) -> Tree:
    """Return the tree of the leaves that `to_bytes` wrote."""
    each = np.frombuffer(data, [("shard", "<u2"), ("leaf", f"V{DIGEST}")])
    shape = each["shard"].astype(np.uint16)
    leaves = [leaf.tobytes() for leaf in each["leaf"]]
    return Tree(dict(zip(shape.tolist(), leaves, strict=True)), shape)


@lru_cache(maxsize=_SHAPES)
def _shape(data: bytes) -> Shards:
    (steps,) = unpack(data, 1, MOST_SHARDS)
    check(steps.dtype == np.uint32, "a seal's shape of another kind")
    shape = np.cumsum(steps, dtype=np.int64)
    check(not len(shape) or int(shape[-1]) < MOST_SHARDS, "a seal with shards that there are not")
    check(bool(np.all(steps[1:] > 0)), "a seal with a shard twice")
    found = shape.astype(np.uint16)
    found.flags.writeable = False
    return found


def _joined(level: Mapping[int, bytes], at: int) -> bytes:
    """Return what stands above two neighbours; a last one without any stands for itself."""
    if at + 1 not in level:
        return level[at]
    both = level[at] + level[at + 1]
    return hashlib.blake2b(both, digest_size=DIGEST, person=_BRANCH).digest()
