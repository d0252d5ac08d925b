"""What a delta has to be that comes from another peer."""

from collections.abc import Callable
from typing import NamedTuple, Self

from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.update import Packed, Update
from giaann_p2p.swarm.limits import of_chunk
from giaann_p2p.swarm.messages import Piece, Push


class Terms(NamedTuple):
    """Of one swarm."""

    limits: Limits
    """What it may hold."""
    layout: Layout
    check: Callable[[Update], None]
    """Raises a GiaannError for one that not enough peers stand for; see `voucher.Notary`."""

    @classmethod
    def of(cls, spec: ModelSpec, layout: Layout, check: Callable[[Update], None]) -> Self:
        """Return the terms of a swarm with this model."""
        return cls(of_chunk(spec), layout, check)

    def packed(self, came: Push | Piece, told: Shards, here: Shards) -> Packed:
        """Return what came for some shards, of which some are here."""
        return Packed(
            came.job,
            came.chunk,
            here,
            came.parcel,
            self.limits,
            self.layout,
            told,
            came.seal,
            self.check,
        )
