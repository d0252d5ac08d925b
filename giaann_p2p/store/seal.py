"""What tells that a delta is the one its author made, also of a part of it for some shards.

A delta has a digest for each shard of the swarm, and these are the leaves of a binary tree of
digests (Merkle's). Its author signs the root, and nothing else. Whoever gets the rows for some
shards gets the digests of those branches, too, that have none of them, and so comes to the same
root or sees that something else was signed. Who has all shards needs none of them.

Who signed, and what that is worth, is not looked at here: see `swarm.voucher`.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.digest import DIGEST_BYTES, row_digests
from giaann_p2p.store.codec.damage import check
from giaann_p2p.store.layout import MOST_SHARDS, Layout, Shards

LEAF_BYTES = 16
MOST_WORDS = 1 << 14
_LEAF, _BRANCH = b"giaann leaf", b"giaann branch"


class Seal(NamedTuple):
    """What goes with a delta's rows for some shards."""

    words: Annotated[bytes, msgspec.Meta(max_length=MOST_WORDS)] = b""
    """Who says that the root is right."""
    beside: Annotated[bytes, msgspec.Meta(max_length=LEAF_BYTES * MOST_SHARDS)] = b""
    """The digests of the branches without these shards: from the leaves up, from left to right."""


UNSEALED = Seal()


def leaves_of(delta: Delta, shards: Shards, layout: Layout) -> dict[int, bytes]:
    """Digest a delta's rows for each of some shards."""
    hashes = {
        shard: hashlib.blake2b(digest_size=LEAF_BYTES, person=_LEAF) for shard in shards.tolist()
    }
    rows = (delta.count > 0) | (delta.lengths > 0)
    homes = layout.shards_of(delta.concept[rows], delta.feature[rows]).tolist()
    for home, digest in zip(homes, row_digests(delta), strict=True):
        if home in hashes:
            hashes[home].update(digest.to_bytes(DIGEST_BYTES, "little"))
    return {shard: found.digest() for shard, found in hashes.items()}


class Tree:
    """The digests that follow from those of some shards and of the branches beside them."""

    def __init__(self, leaves: Mapping[int, bytes], shards: int, beside: bytes = b"") -> None:
        """DamagedError unless there is just what is needed to come to a root."""
        check(len(beside) % LEAF_BYTES == 0, "a seal with half a digest")
        left = [beside[at : at + LEAF_BYTES] for at in range(0, len(beside), LEAF_BYTES)]
        left.reverse()
        level = dict(leaves)
        self._levels = [level]
        for _ in range(shards.bit_length() - 1):
            for at in sorted(level):
                if at ^ 1 not in level:
                    check(bool(left), "a seal that lacks a branch")
                    level[at ^ 1] = left.pop()
            level = {at >> 1: _joined(level[at], level[at + 1]) for at in level if not at & 1}
            self._levels.append(level)
        check(not left and len(level) == 1, "a seal with a branch too many")

    def __repr__(self) -> str:
        return f"<Tree of {len(self._levels[0])} leaves: {self.root.hex()}>"

    @property
    def root(self) -> bytes:
        """What stands for the whole delta."""
        return self._levels[-1][0]

    def beside(self, shards: Iterable[int]) -> bytes:
        """Return the digests of the branches that have none of some of its shards."""
        found: list[bytes] = []
        covered = set(shards)
        for level in self._levels[:-1]:
            found += [level[at ^ 1] for at in sorted(covered) if at ^ 1 not in covered]
            covered = {at >> 1 for at in covered}
        return b"".join(found)


def tree_of(delta: Delta, shards: Shards, layout: Layout, seal: Seal = UNSEALED) -> Tree:
    """Return the tree of a delta's rows for the shards that it is sealed for."""
    return Tree(leaves_of(delta, shards, layout), layout.shards, seal.beside)


def narrowed(seal: Seal, delta: Delta, told: Shards, some: Shards, layout: Layout) -> Seal:
    """Return the seal for some of the shards that a delta is sealed for."""
    if not seal.words or len(some) == len(told):
        return seal
    return Seal(seal.words, tree_of(delta, told, layout, seal).beside(some.tolist()))


def _joined(left: bytes, right: bytes) -> bytes:
    return hashlib.blake2b(left + right, digest_size=LEAF_BYTES, person=_BRANCH).digest()


def to_bytes(leaves: Mapping[int, bytes]) -> bytes:
    """Return the leaves of all shards, one behind the other."""
    return b"".join(leaves[shard] for shard in sorted(leaves))


def from_bytes(data: bytes) -> dict[int, bytes]:
    """Read what `to_bytes` wrote."""
    each = np.frombuffer(data, f"V{LEAF_BYTES}")
    return {at: leaf.tobytes() for at, leaf in enumerate(each)}
