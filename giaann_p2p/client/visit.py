"""A visit to a swarm: its directory, its rows, and a way to bring chunks to their owners.

A visitor has a key of its own that is forgotten afterwards, announces nothing and serves nothing.
What goes wrong only for a while is tried again in silence; what is wrong for good is raised.
"""

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from giaann_p2p.client.roll_call import silent
from giaann_p2p.errors import UsageError
from giaann_p2p.model.rows import Answer, Neuron
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.lookout import Lookout
from giaann_p2p.node.member import joined
from giaann_p2p.node.place import Place, placed
from giaann_p2p.node.pushing import Pushing
from giaann_p2p.node.reading import Reading
from giaann_p2p.node.rules import Rules
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.link import Link
from giaann_p2p.swarm.manifest import Manifest, Versions
from giaann_p2p.swarm.overview import Overview, overview
from giaann_p2p.swarm.surroundings import Surroundings
from giaann_p2p.swarm.writer import Cut

ANYWHERE = HostConfig(listen=("/ip4/127.0.0.1/tcp/0",))
"""A visitor is not dialled; but p2pd listens somewhere."""
_FIRST_LOOK = 10.0
_ASK_THE_DOCTOR = "`giaann doctor --join LINK` looks into it"
for _name in ("giaann", "giaann_p2p"):  # no handler: Python itself would print to the terminal
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Visit:
    """See the module; `visit` begins one."""

    def __init__(self, manifest: Manifest, place: Place, lookout: Lookout, clock: Clock) -> None:
        self.manifest, self.place, self.lookout, self.clock = manifest, place, lookout, clock
        self.around = lookout.others.around
        transport, others = place.transport, lookout.others
        self.pushing = Pushing(transport, Rules.of(manifest), others, clock)
        self.reading = Reading(transport, manifest, others, clock)

    def __repr__(self) -> str:
        return f"<Visit to {self.manifest.name!r}>"

    def overview(self, silent: Collection[Peer] = ()) -> Overview:
        """Return what the peers say of themselves now; of some it is known that they are silent."""
        now, manifest = self.lookout.time(), self.manifest
        placement, replicas = self.around.placement(now), manifest.replicas
        return overview(self.around.directory, manifest.layout, placement, replicas, now, silent)

    async def silent_peers(self) -> frozenset[Peer]:
        """Ask all peers that are said to be there; return those that do not answer."""
        live = self.around.directory.live(self.lookout.time())
        return await silent(self.place.transport, list({said.peer: None for said in live}))

    def storage_peers(self) -> list[Peer]:
        """Return the storage peers that are there."""
        live = self.around.directory.live(self.lookout.time())
        return [said.peer for said in live if said.role == "storage"]

    async def rows(self, neurons: Sequence[Neuron]) -> Answer:
        """Return rows in the order asked for, None where there is none; Unreachable in vain."""
        return await self.reading.rows(neurons)

    async def push(self, job: bytes, chunk: int, cut: Cut) -> None:
        """Return when a chunk is committed: enough owners of every shard have it on their disks."""
        await self.pushing.push(job, chunk, cut)


@asynccontextmanager
async def visit(link: Link, config: HostConfig = ANYWHERE) -> AsyncIterator[Visit]:
    """Visit the swarm of a link; Unreachable if nobody there answers."""
    with tempfile.TemporaryDirectory(prefix="giaann-visit-") as folder:
        async with (
            placed(Path(folder) / "key", config, link.addresses) as place,
            visited(await _met(place, link), place) as visiting,
        ):
            yield visiting


@asynccontextmanager
async def visited(manifest: Manifest, place: Place) -> AsyncIterator[Visit]:
    """Visit a swarm whose manifest is known; Unreachable if its directory cannot be read."""
    clock = Clock()
    board = await HiveBoard.start(
        place.host, manifest.swarm_id, manifest.layout, place.book.seeds, clock
    )
    try:
        async with _looking(manifest, place, board, clock) as visiting:
            yield visiting
    finally:
        await board.close()


async def _met(place: Place, link: Link) -> Manifest:
    """Return the manifest, from the first peer of the link that answers."""
    if not place.book.peers:
        raise UsageError(f"the join link leads to nobody: {'; '.join(place.book.strange)}")
    try:
        return await joined(place.transport, place.book.peers, link.swarm_id, Versions())
    except Unreachable as error:
        raise Unreachable(f"{' '.join(str(error).split())}; {_ASK_THE_DOCTOR}") from None


@asynccontextmanager
async def _looking(
    manifest: Manifest, place: Place, board: HiveBoard, clock: Clock
) -> AsyncIterator[Visit]:
    around = Surroundings(place.host.me, manifest.swarm_id, manifest.layout, manifest.replicas)
    lookout = Lookout(
        board, around, manifest.layout, manifest.swarm_id, clock, roles=("storage", "compute")
    )
    place.book.directory = around.directory
    looking = asyncio.create_task(lookout.run())
    visiting = Visit(manifest, place, lookout, clock)
    try:
        await _seen_first(lookout)
        yield visiting
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await visiting.pushing.close()
        await visiting.reading.close()


async def _seen_first(lookout: Lookout) -> None:
    try:
        async with asyncio.timeout(_FIRST_LOOK):
            await lookout.whole.wait()
    except TimeoutError:
        raise Unreachable(
            "peers of the swarm answer, but their directory could not be read in "
            f"{_FIRST_LOOK:g} s; {_ASK_THE_DOCTOR}"
        ) from None
