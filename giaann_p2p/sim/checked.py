"""A real storage node that is checked against the swarm's promises as it acts."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

from giaann_p2p.errors import GiaannError
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.replication.storage import StorageNode
from giaann_p2p.node.replication.store_writer import Change, Double, StoreWriter, Wanted
from giaann_p2p.sim.holder import Holder
from giaann_p2p.sim.promises import Promises
from giaann_p2p.sim.world import World
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.wire.actions import Drop, Forget, Release
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.record import Announcement


class CheckedNode(StorageNode):
    """The storage node of a simulated machine: each of its writes and announcements is checked.

    The writes of `holder` are checked against `promises`. `told` checks each announcement that the
    node drafts, and returns the one to be published.
    """

    def __init__(
        self,
        context: Context,
        capacity: int,
        world: World,
        holder: Holder,
        promises: Promises,
        told: Callable[[Announcement], Announcement],
    ) -> None:
        self._world, self._announced = world, told
        self._make_writer = partial(CheckedWriter, holder, promises)
        super().__init__(context, holder.store, capacity=capacity, settings=world.settings)

    @property
    def disk(self) -> Executor:
        """The executor that runs all writes to the disk."""
        return self._writer

    @property
    def orphans(self) -> Orphans:
        """The chunks found so far that only disowned peers signed."""
        return self._orphans

    def _new_checks(self) -> DeltaChecks:
        gate = self.gate
        return self._world.delta_checks(gate.admission, gate.rules)

    def _new_store_writer(self, make: Callable[..., StoreWriter] = StoreWriter) -> StoreWriter:
        return super()._new_store_writer(self._make_writer)

    def _record(self, draft: Announcement) -> Announcement:
        return self._announced(super()._record(draft))


class CheckedWriter(StoreWriter):
    """A store writer whose drops, removals of cold copies, and releases are checked."""

    def __init__(
        self,
        holder: Holder,
        promises: Promises,
        *arguments: Any,  # noqa: ANN401
        **named: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **named)
        self._holder, self._promises = holder, promises
        self._known: dict[int, Mapping[int, set[Peer]]] = {}
        """For each release in the queue, the peers known to hold its deltas when it was decided."""

    def do(self, change: Change, wanted: Wanted | None = None) -> None:
        """Queue a change of the store."""
        if isinstance(change, Release):
            self._known[id(change)] = self._promises.known(self._holder, change)
        super().do(change, wanted)

    def _next(self) -> Sequence[Change]:
        changes = super()._next()
        if isinstance(changes[0], Double):
            self._holder.divides()
        return changes

    def _carry_out(self, changes: Sequence[Change]) -> list[GiaannError | None] | None:
        first, holder, promises = changes[0], self._holder, self._promises
        held = self._store.sets(first.shards.tolist()) if isinstance(first, Drop) else {}
        errors = super()._carry_out(changes)
        if isinstance(first, Drop) and errors is not None:
            promises.let_go(holder, held)
        elif isinstance(first, Forget) and errors == [None]:
            promises.forgot(holder)
        elif isinstance(first, Double) and errors is not None:
            holder.divided()
        elif isinstance(first, Release):
            promises.released(holder, first, self._known.pop(id(first)))
        return errors
