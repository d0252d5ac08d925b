"""Checks of the deltas and whole shards that other peers send."""

from collections.abc import Callable
from typing import NamedTuple

from giaann_p2p.errors import MessageError
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import Seal
from giaann_p2p.store.update import Packed, Update, most_in_all, most_units, strongest, total_of
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.limits import of_push
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.messages import Piece, Push
from giaann_p2p.swarm.wire.voucher import Members, authors_of, is_disowned


class DeltaChecks(NamedTuple):
    """One swarm's checks of the deltas and whole shards that other peers send."""

    spec: ModelSpec
    rules: Callable[[], Rules]
    """A function that returns the swarm's rules now, with the layout and the size of a chunk."""
    check: Callable[[Update], None]
    """A function that raises GiaannError if too few peers vouch for a delta (see `Notary`)."""
    members: Members | None = None
    """The disowned members and the withdrawn chunks; if None, neither is checked."""

    @property
    def layout(self) -> Layout:
        """The swarm's layout now."""
        return self.rules().layout

    @property
    def limits(self) -> Limits:
        """The size limits of a delta."""
        rules = self.rules()
        return of_push(self.spec, rules.chunk, rules.columns.most)

    def check_pushed(self, update: Update) -> None:
        """Check a delta that an author pushes; raise MessageError if all its authors are disowned.

        The same delta is accepted when it is fetched from another owner, because otherwise owners
        would never converge. It is removed once the founder's list withdraws it.
        """
        self.check_fetched(update)
        if self.members is None:
            return
        if is_disowned(authors := authors_of(update.seal), self.members):
            names = ", ".join(sorted(map(name_of, authors)))
            raise MessageError(f"seal: all authors of this delta are disowned: {names}")

    def check_fetched(self, update: Update) -> None:
        """Check a delta that another owner sends: its vouchers, and that it is not too strong.

        Raise a GiaannError if it is invalid.
        """
        self.check(update)
        delta, sentences = update.delta, self.rules().chunk
        is_strong = strongest(delta) > most_units(self.spec, sentences)
        if is_strong or total_of(delta) > most_in_all(self.spec, sentences):
            raise MessageError(f"parcel: a chunk of {sentences} sentences cannot add so much")

    def check_sender(self, sender: Peer, seal: Seal) -> None:
        """Raise MessageError unless `sender`, which pushes a delta, is one of the delta's authors.

        Otherwise one peer could push under any number of names, each with a push budget of its own.
        """
        if self.members is not None and sender not in authors_of(seal):
            raise MessageError(
                f"seal: {name_of(sender)} has not signed the delta that it pushes; only an author"
                " of a delta may push it"
            )

    def heeds(self, came: Piece) -> bool:
        """Return whether to apply a received chunk, or a withdrawal that is on the founder's list.

        A withdrawal that this peer's list lacks is skipped without blaming the sender, because the
        sender's list may be newer.
        """
        if self.members is None or came.chunk < WITHDRAWN:
            return True
        return bool(self.members.withdrawn.root_of(came.job, came.chunk - WITHDRAWN))

    def heeds_all(self, chunks: Applied) -> bool:
        """Return whether the founder's list has all withdrawals in a received set of chunks.

        If a withdrawal is not on the list, a sender could leave chunks out of a shard by calling
        them withdrawn. It is not blamed, because its list may be newer than this peer's.
        """
        back = chunks.withdrawn
        return self.members is None or not back or back <= self.members.withdrawn.chunks

    def packed(self, came: Push | Piece, told: Shards, here: Shards) -> Packed:
        """Return a received delta as an update that is not unpacked yet, with the check to run.

        The sender cut the delta for the shards `told`; the update is for `here`, those of them that
        this peer holds.
        """
        return Packed(
            came.job,
            came.chunk,
            here,
            came.parcel,
            self.limits,
            self.layout,
            told,
            came.seal,
            self.check_pushed if isinstance(came, Push) else self.check_fetched,
        )
