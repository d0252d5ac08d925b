"""A real storage node that is checked against the swarm's promises as it acts."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any

from giaann_p2p.errors import GiaannError
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.replication.storage import StorageNode
from giaann_p2p.node.replication.store_writer import Deed, StoreWriter, Wanted
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.wire.actions import Drop, Forget, Release
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.record import Announcement

if TYPE_CHECKING:
    from giaann_p2p.sim.storage_node import StorageMachine


class CheckedNode(StorageNode):
    """The storage node of a machine."""

    def __init__(self, machine: "StorageMachine", context: Context) -> None:
        self._machine = machine
        settings, capacity = machine.swarm.settings, machine.capacity
        super().__init__(context, machine.store, capacity=capacity, settings=settings)

    @property
    def disk(self) -> Executor:
        """The executor of all that is written to the disk."""
        return self._writer

    @property
    def orphans(self) -> Orphans:
        """The chunks that only disowned peers taught, as far as they were searched for."""
        return self._orphans

    def _new_checks(self) -> DeltaChecks:
        return self._machine.swarm.delta_checks

    def _new_store_writer(self, make: Callable[..., StoreWriter] = StoreWriter) -> StoreWriter:
        return super()._new_store_writer(partial(CheckedWriter, self._machine))

    def _record(self, draft: Announcement) -> Announcement:
        said = super()._record(draft)
        for naming in said.wrong:
            self._machine.promises.named(self._machine, naming.peer)
        return said


class CheckedWriter(StoreWriter):
    """A store writer that is checked when it drops, forgets and releases."""

    def __init__(
        self,
        machine: "StorageMachine",
        *arguments: Any,  # noqa: ANN401
        **named: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **named)
        self._machine, self._promises = machine, machine.promises
        self._known: dict[int, Mapping[int, set[Peer]]] = {}
        """By release that waits: the peers known to hold the deltas when it was decided."""

    def do(self, deed: Deed, wanted: Wanted | None = None) -> None:
        """Queue a change."""
        if isinstance(deed, Release):
            self._known[id(deed)] = self._promises.known(self._machine, deed)
        super().do(deed, wanted)

    def _carry_out(self, deeds: Sequence[Deed]) -> list[GiaannError | None] | None:
        first, machine, promises = deeds[0], self._machine, self._promises
        held = self._store.sets(first.shards.tolist()) if isinstance(first, Drop) else {}
        errors = super()._carry_out(deeds)
        if isinstance(first, Drop) and errors is not None:
            promises.let_go(machine, held)
        elif isinstance(first, Forget) and errors == [None]:
            promises.forgot(machine)
        elif isinstance(first, Release):
            promises.released(machine, first, self._known.pop(id(first)))
        return errors
