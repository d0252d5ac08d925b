"""How a model is cut into shards, and a text into chunks.

A row belongs to a shard by its column, or by its block if columns are cut into blocks. The largest
columns may also be cut by target, so that no single row is larger than a shard (see `cut_columns`).
Every peer computes this mapping for itself, and numbers the chunks of a text, so a layout is part
of the swarm's manifest. Only the number of shards may grow, by doubling: then one more bit of the
same hash divides each shard s of N into the shards s and s + N. So the layouts of a swarm are
nested, and each peer can divide the shards that it holds by itself.

Each chunk is sent to the owners of all shards. Apart from the chunk's rows, this costs more with
every peer, but not with every sentence, so large swarms use large chunks.
"""

from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from giaann_p2p.errors import SpecError
from giaann_p2p.model.sequence import Ids
from giaann_p2p.model.spec import CHUNK, MOST_CHUNK
from giaann_p2p.store.codec.damage import check
from giaann_p2p.store.cut_columns import CutColumns, cut_columns
from giaann_p2p.store.cuts import Cut, checked
from giaann_p2p.store.splitmix import GOLDEN, WORD, mixed, mixed_one

Shards = npt.NDArray[np.uint16]
"""An array of shard numbers."""

MOST_SHARDS = 1 << 16


class Layout(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, cache_hash=True
):
    """The number of shards, and the number of blocks per column; both are powers of two."""

    shards: int = 256
    blocks: int = 1
    sentences: int | msgspec.UnsetType = msgspec.UNSET
    """The number of sentences in a chunk. Unset for the default number, so that the encoding is the
    same as in releases that knew no other number."""
    founded: int | msgspec.UnsetType = msgspec.UNSET
    """The number of shards in the swarm's manifest; unset until it is doubled."""
    cuts: tuple[Cut, ...] | msgspec.UnsetType = msgspec.UNSET
    """The columns that are cut by target, in the order of their words. Unset if there are none, so
    that the encoding is the same as in releases without cut columns."""

    def __post_init__(self) -> None:
        if not CHUNK <= self.chunk <= MOST_CHUNK:
            raise SpecError(f"sentences must be {CHUNK} to {MOST_CHUNK}; it is {self.chunk}")
        if self.sentences == CHUNK:
            msgspec.structs.force_setattr(self, "sentences", msgspec.UNSET)
        for name, value in (
            ("shards", self.shards),
            ("blocks", self.blocks),
            ("founded", self.founding),
        ):
            if not 1 <= value <= MOST_SHARDS or value & (value - 1):
                raise SpecError(f"{name} must be a power of two up to {MOST_SHARDS}; it is {value}")
        if self.founding > self.shards:
            raise SpecError(f"shards must be at least {self.founding}; it is {self.shards}")
        if self.founded == self.shards:
            msgspec.structs.force_setattr(self, "founded", msgspec.UNSET)
        if not isinstance(self.cuts, msgspec.UnsetType):
            ordered = checked(self.cuts)
            msgspec.structs.force_setattr(self, "cuts", ordered or msgspec.UNSET)

    def __str__(self) -> str:
        cut = f", {len(self.columns)} cut columns" if self.columns else ""
        return f"shards={self.shards}, blocks={self.blocks}, chunk={self.chunk}{cut}"

    @property
    def chunk(self) -> int:
        """The number of sentences in a chunk; the last chunk of a text may have fewer."""
        return CHUNK if isinstance(self.sentences, msgspec.UnsetType) else self.sentences

    @property
    def founding(self) -> int:
        """The number of shards in the swarm's manifest."""
        return self.shards if isinstance(self.founded, msgspec.UnsetType) else self.founded

    @property
    def doublings(self) -> int:
        """How often the number of shards was doubled since the manifest was signed."""
        return (self.shards // self.founding).bit_length() - 1

    @property
    def columns(self) -> CutColumns:
        """The columns that are cut by target."""
        return cut_columns(self.cuts or ())

    def with_shards(self, shards: int) -> "Layout":
        """Return the layout of the same swarm with another number of shards."""
        return _with_shards(self, shards)

    def doubled(self, doublings: int) -> "Layout":
        """Return the layout of the same swarm after this many doublings since the manifest.

        DamagedError if that would be too many shards.
        """
        if doublings == self.doublings:
            return self
        check(
            doublings < MOST_SHARDS.bit_length() and self.founding << doublings <= MOST_SHARDS,
            f"{self.founding} shards cannot have been doubled {doublings} times",
        )
        return self.with_shards(self.founding << doublings)

    def cover(self, shards: Shards, other: "Layout") -> Shards:
        """Return the shards of another layout that share rows with some shards of this one.

        The given shards must ascend, and so do the returned ones. They are the same shards if both
        layouts have the same number of shards.
        """
        if other.shards == self.shards:
            return shards
        if other.shards < self.shards:
            return np.unique(shards & np.uint16(other.shards - 1))
        return divided(shards, self.shards, other.shards)

    def block_of(self, feature: Ids) -> Ids:
        """Return, for the row of each feature, the block of its column that holds it."""
        return mixed(feature) & np.uint64(self.blocks - 1)

    def shards_of(self, concept: Ids, feature: Ids) -> Shards:
        """Return the shard of each neuron's row."""
        block = self.block_of(feature)
        number = mixed(concept + block * np.uint64(GOLDEN)) & np.uint64(self.shards - 1)
        return number.astype(np.uint16)

    def shard_of(self, concept: int, feature: int) -> int:
        """Return the shard of one neuron's row; twenty times as fast as `shards_of` for one row."""
        block = mixed_one(feature) & (self.blocks - 1) if self.blocks > 1 else 0
        return mixed_one(concept + block * GOLDEN & WORD) & (self.shards - 1)


@lru_cache(maxsize=64)
def _with_shards(layout: Layout, shards: int) -> Layout:
    return msgspec.structs.replace(layout, shards=shards, founded=layout.founding)


def divided(shards: Shards, before: int, after: int) -> Shards:
    """Return the shards into which some shards were divided when their number was doubled.

    `before` and `after` are the total numbers of shards. Ascending shards stay ascending.
    """
    first = np.arange(0, after, before, dtype=np.uint16)  # [after / before]
    return (first[:, np.newaxis] + shards).ravel()


def among(some: npt.NDArray[Any], others: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return for each value of `some` whether it is in `others`, which must ascend.

    This is ten times as fast as `np.isin` if both arrays ascend.
    """
    if not len(others):
        return np.zeros(len(some), np.bool_)
    found: npt.NDArray[np.bool_] = others.take(others.searchsorted(some), mode="clip") == some
    return found
