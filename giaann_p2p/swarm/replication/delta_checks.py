"""Checks of deltas and shards that come from other peers."""

from collections.abc import Callable
from typing import NamedTuple, Self

from giaann_p2p.errors import MessageError
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import Seal
from giaann_p2p.store.update import Packed, Update
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.limits import of_chunk
from giaann_p2p.swarm.wire.messages import Piece, Push
from giaann_p2p.swarm.wire.voucher import Members, authors_of, is_disowned


class DeltaChecks(NamedTuple):
    """The checks of one swarm."""

    limits: Limits
    """The size limits of a delta."""
    layout: Layout
    check: Callable[[Update], None]
    """Raises a GiaannError for a delta that too few peers vouch for; see `voucher.Notary`."""
    members: Members | None = None
    """The disowned members and withdrawn chunks; None: neither is checked."""

    @classmethod
    def of(
        cls,
        spec: ModelSpec,
        layout: Layout,
        check: Callable[[Update], None],
        members: Members | None = None,
    ) -> Self:
        """Return the checks of a swarm with this model."""
        return cls(of_chunk(spec), layout, check, members)

    def _check_pushed(self, update: Update) -> None:
        """Check a delta that its authors push: it is rejected if they are disowned.

        The same delta is accepted from another owner, or owners could never converge; it is removed
        when the founder's list withdraws it.
        """
        self.check(update)
        if self.members is None:
            return
        if is_disowned(authors := authors_of(update.seal), self.members):
            raise MessageError(f"seal: {', '.join(sorted(map(name_of, authors)))} is disowned")

    def check_sender(self, sender: Peer, seal: Seal) -> None:
        """Raise MessageError unless the peer that pushes a delta is one of its authors.

        Otherwise one connection could push under any number of names, each with its own budget.
        """
        if self.members is not None and sender not in authors_of(seal):
            raise MessageError(
                f"seal: {name_of(sender)} pushes a delta for which it does not stand"
            )

    def heeds(self, came: Piece) -> bool:
        """Return whether a piece may be applied: a withdrawal must be on the founder's list here.

        Any other withdrawal is skipped without blame, because the sender's list may be newer.
        """
        if self.members is None or came.chunk < WITHDRAWN:
            return True
        return bool(self.members.withdrawn.root_of(came.job, came.chunk - WITHDRAWN))

    def check_set(self, chunks: Applied) -> None:
        """Raise MessageError for a set that claims withdrawals which the founder's list lacks.

        A shard from another peer may lack nothing that was learned, except what is withdrawn.
        """
        back = chunks.withdrawn
        if self.members is not None and back and not back <= self.members.withdrawn.chunks:
            raise MessageError("a shard without chunks that the founder's list does not withdraw")

    def packed(self, came: Push | Piece, told: Shards, here: Shards) -> Packed:
        """Return a delta for the shards `told` as an update of those held here, with its check."""
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
