"""A visit to a swarm: its directory, its rows, and a way to bring chunks to their owners.

A visitor has a key of its own that is forgotten afterwards, announces nothing and serves nothing.
What goes wrong only for a while is tried again in silence; what is wrong for good is raised.
"""

import asyncio
import logging
import secrets
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from giaann_p2p.client.lies import Lie, lie_of
from giaann_p2p.client.roll_call import silent
from giaann_p2p.errors import TokenError, UsageError
from giaann_p2p.model.rows import Answer, Neuron
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.gate import Gate
from giaann_p2p.node.lookout import Lookout
from giaann_p2p.node.member import joined
from giaann_p2p.node.membership import Membership, needs, usual_folder_in
from giaann_p2p.node.place import Place, placed
from giaann_p2p.node.pushing import Pushing
from giaann_p2p.node.reading import Reading
from giaann_p2p.node.revoking import Revoking
from giaann_p2p.node.rules import Rules
from giaann_p2p.store.seal import Tree
from giaann_p2p.swarm.disputes import Lied
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.link import Link
from giaann_p2p.swarm.manifest import Manifest, Versions
from giaann_p2p.swarm.overview import Overview, overview
from giaann_p2p.swarm.surroundings import Surroundings
from giaann_p2p.swarm.token import Rights
from giaann_p2p.swarm.verifying import SALT_BYTES, USUAL, Verify, checked
from giaann_p2p.swarm.voucher import Voucher, vouched
from giaann_p2p.swarm.writer import Cut

ANYWHERE = HostConfig(listen=("/ip4/127.0.0.1/tcp/0",))
"""A visitor is not dialled; but p2pd listens somewhere."""
_LOG = logging.getLogger("giaann.client")
_FIRST_LOOK = 10.0
_MOST_LIES = 1024
Shows = Callable[[Peer], bytes]
_ASK_THE_DOCTOR = "`giaann doctor --join LINK` looks into it"
for _name in ("giaann", "giaann_p2p"):  # no handler: Python itself would print to the terminal
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Visit:
    """See the module; `visit` begins one."""

    def __init__(
        self,
        manifest: Manifest,
        place: Place,
        lookout: Lookout,
        gate: Gate,
        clock: Clock,
        verify: float = USUAL,
    ) -> None:
        """`verify`: the share of what is read that is compared between peers; see `verifying`."""
        self.manifest, self.place, self.lookout, self.clock = manifest, place, lookout, clock
        self.gate = gate
        self.around = lookout.others.around
        transport, others = place.transport, lookout.others
        self.pushing = Pushing(transport, Rules.of(manifest), others, clock, self.vouched)
        self.verify = Verify(verify, secrets.token_bytes(SALT_BYTES))
        self._lies: deque[Lie] = deque(maxlen=_MOST_LIES)
        self.reading = Reading(
            transport, manifest, others, clock, verify=self.verify, on_lie=self._found_out
        )

    def __repr__(self) -> str:
        return f"<Visit to {self.manifest.name!r}>"

    @property
    def lies(self) -> list[Lie]:
        """What storage peers were found to tell wrong so far, the latest last."""
        return list(self._lies)

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

    async def push(self, job: bytes, chunk: int, cut: Cut, tree: Tree) -> None:
        """Return when a chunk is committed: enough owners of every shard have it on their disks."""
        await self.pushing.push(job, chunk, cut, tree)

    def vouched(self, job: bytes, chunk: int, root: bytes) -> Voucher:
        """Stand for a chunk's delta, which has this root."""
        author = self.place.host.identity
        return vouched(author, self.manifest.swarm_id, job, chunk, root, self.gate.token)

    def _found_out(self, lied: Lied) -> None:
        self._lies.append(lie_of(lied))


@asynccontextmanager
async def visit(
    link: Link,
    config: HostConfig = ANYWHERE,
    shows: Shows | None = None,
    verify: float = USUAL,
) -> AsyncIterator[Visit]:
    """Visit the swarm of a link; Unreachable if nobody there answers.

    `shows` is what a visitor's key has to show: by default, what its member's folder has for it.
    `verify` is the share of the rows read that a second peer is asked for, too; 1: all are put to
    the vote before they are used.
    """
    checked(Verify(verify, bytes(SALT_BYTES)))  # before anything is begun
    shows = shows or Membership(usual_folder_in(link.swarm_id, "client")).shown
    with tempfile.TemporaryDirectory(prefix="giaann-visit-") as folder:
        key = Path(folder) / "key"
        token = shows(open_key_file(key).peer)
        async with (
            placed(key, config, link.addresses, token) as place,
            visited(await _met(place, link), place, verify) as visiting,
        ):
            yield visiting


@asynccontextmanager
async def visited(manifest: Manifest, place: Place, verify: float = USUAL) -> AsyncIterator[Visit]:
    """Visit a swarm whose manifest is known; Unreachable if its directory cannot be read."""
    clock = Clock()
    gate = Gate(manifest, place.transport, place.token, clock)
    _check(gate, place)
    board = await HiveBoard.start(
        place.host,
        manifest.swarm_id,
        manifest.layout,
        place.book.seeds,
        clock,
        gate.admission,
        gate.token,
    )
    try:
        async with _looking(manifest, place, board, gate, clock, verify) as visiting:
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
    manifest: Manifest, place: Place, board: HiveBoard, gate: Gate, clock: Clock, verify: float
) -> AsyncIterator[Visit]:
    around = Surroundings.of(place.host.me, manifest, gate.admission)
    lookout = Lookout(
        board, around, manifest.layout, manifest.swarm_id, clock, roles=("storage", "compute")
    )
    place.book.directory = around.directory
    visiting = Visit(manifest, place, lookout, gate, clock, verify)
    gate.on_change(lambda: around.directory.look_again(lookout.time()))
    revoking = Revoking(gate, lookout, place.transport, _LOG)
    tasks = [asyncio.create_task(lookout.run())]
    try:
        await _seen_first(lookout)
        await revoking.look()  # or the first thing asked might go to somebody who is a stranger now
        tasks.append(asyncio.create_task(revoking.run()))
        yield visiting
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await visiting.pushing.close()
        await visiting.reading.close()


def _check(gate: Gate, place: Place) -> None:
    """Raise TokenError, which says what to do, unless this client may visit the swarm."""
    try:
        needs(gate.admission, place.host.me, place.token, Rights.CLIENT, time.time())
    except TokenError as error:
        why = str(error).partition(". The name of this peer is ")[0]
        raise TokenError(f"{why}; `giaann token accept TOKEN` keeps it for clients here") from None


async def _seen_first(lookout: Lookout) -> None:
    try:
        async with asyncio.timeout(_FIRST_LOOK):
            await lookout.whole.wait()
    except TimeoutError:
        raise Unreachable(
            "peers of the swarm answer, but their directory could not be read in "
            f"{_FIRST_LOOK:g} s; {_ASK_THE_DOCTOR}"
        ) from None
