"""What a delta has to be that comes from another peer."""

from collections.abc import Callable
from typing import NamedTuple, Self

from giaann_p2p.errors import MessageError
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.update import Packed, Update
from giaann_p2p.swarm.identity import name_of
from giaann_p2p.swarm.limits import of_chunk
from giaann_p2p.swarm.messages import Piece, Push
from giaann_p2p.swarm.voucher import Members, authors_of, is_disowned


class Terms(NamedTuple):
    """Of one swarm."""

    limits: Limits
    """What it may hold."""
    layout: Layout
    check: Callable[[Update], None]
    """Raises a GiaannError for one that not enough peers stand for; see `voucher.Notary`."""
    members: Members | None = None
    """Who is disowned, and what is withdrawn; nobody and nothing if it is not said."""

    @classmethod
    def of(
        cls,
        spec: ModelSpec,
        layout: Layout,
        check: Callable[[Update], None],
        members: Members | None = None,
    ) -> Self:
        """Return the terms of a swarm with this model."""
        return cls(of_chunk(spec), layout, check, members)

    def _check_pushed(self, update: Update) -> None:
        """Check what its authors bring: nothing of disowned ones.

        Of another owner that is taken, or owners could never come to the same: it is withdrawn when
        the founder's list says so.
        """
        self.check(update)
        if self.members is None:
            return
        if is_disowned(authors := authors_of(update.seal), self.members):
            raise MessageError(f"seal: {', '.join(sorted(map(name_of, authors)))} is disowned")

    def heeds(self, came: Piece) -> bool:
        """Tell whether what another owner has is anything for this one, by the list that is here.

        It is not its fault if not, for its list may be newer: all else that it gives is as good as
        ever.
        """
        if self.members is None or came.chunk < WITHDRAWN:
            return True
        return bool(self.members.withdrawn.root_of(came.job, came.chunk - WITHDRAWN))

    def check_set(self, chunks: Applied) -> None:
        """Raise MessageError for a shard of which more is said to be withdrawn than is.

        Of what was learned nothing may be missing in a shard that comes, but for that.
        """
        back = chunks.withdrawn
        if self.members is not None and back and not back <= self.members.withdrawn.chunks:
            raise MessageError("a shard without chunks that the founder's list does not withdraw")

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
            self._check_pushed if isinstance(came, Push) else self.check,
        )
