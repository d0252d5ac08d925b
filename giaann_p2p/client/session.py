"""A client's session with a swarm: it reads the directory and rows, but is not a peer itself.

A session announces nothing and serves nothing. Its key is made for it, and deleted afterwards.
Transient errors are retried silently; permanent errors are raised.
"""

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module

from giaann_p2p.client.launch import Launch, launched
from giaann_p2p.client.lies import Lie, lie_of
from giaann_p2p.client.roll_call import silent
from giaann_p2p.errors import NotAdmitted, RecordError, TokenError, UsageError
from giaann_p2p.model.rows import Answer, Neuron
from giaann_p2p.net.board import Board
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.calls import Calls
from giaann_p2p.node.members.asked_board import AskedBoard
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.joined_host import JoinedHost, placed
from giaann_p2p.node.members.joining import joined
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.node.members.member import Member
from giaann_p2p.node.members.membership import Membership, needs, usual_folder_in
from giaann_p2p.node.reading.reader import RowReader
from giaann_p2p.swarm.members.commands import GENERAL
from giaann_p2p.swarm.members.losses import Losses, losses
from giaann_p2p.swarm.members.overview import Overview, overview
from giaann_p2p.swarm.reading.disputes import Lied
from giaann_p2p.swarm.reading.row_vote import SALT_BYTES, USUAL, Verify, checked
from giaann_p2p.swarm.wire.identity import Peer, to_text
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest, Versions
from giaann_p2p.swarm.wire.record import read
from giaann_p2p.swarm.wire.token import Rights

_LOG = logging.getLogger("giaann.client")
_FIRST_LOOK = 10.0
"""Seconds within which the directory has to be read when a session starts."""
_LOOKS, _LOOK_AGAIN = 4, 0.5
"""Number of attempts to read the directory after joining the DHT, and seconds between two."""
_MOST_LIES = 1024
"""Maximum number of lies remembered; the newest are kept."""
Shows = Callable[[Peer], bytes]
"""A function that takes the peer id of a session's key, and returns the token for it."""
_ASK_THE_DOCTOR = "`giaann doctor --join LINK` finds out why"
for _name in ("giaann", "giaann_p2p"):  # without a handler, Python prints to the terminal
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Session:
    """A client's session with a swarm; `visit` starts one."""

    def __init__(self, member: Member, place: JoinedHost, verify: float = USUAL) -> None:
        """Use a `member` at a `place`; `verify` is the share of reads to compare between peers."""
        context = member.context
        self._board = context.board
        self.manifest, self.gate, self.clock = context.manifest, context.gate, context.clock
        self.place, self.lookout, self.around = place, member.lookout, member.lookout.view
        self.commands = GENERAL
        """The commands that messages recommend to users; they differ for a local swarm."""
        self.verify = Verify(verify, secrets.token_bytes(SALT_BYTES))
        self._lies: deque[Lie] = deque(maxlen=_MOST_LIES)
        self.reading = RowReader(
            context.transport,
            self.manifest,
            self.around,
            self.clock,
            verify=self.verify,
            on_lie=self._found_out,
            heard=self.gate.hear,
        )

    def __repr__(self) -> str:
        return f"<Session to {self.manifest.name!r}>"

    @property
    def lies(self) -> list[Lie]:
        """The wrong rows that storage peers returned, as found so far, oldest finding first."""
        return list(self._lies)

    @property
    def now(self) -> float:
        """The current time in seconds since 1970; peers' records expire by it."""
        return self.lookout.time()

    def overview(self, silent: Collection[Peer] = ()) -> Overview:
        """Return the state of the swarm, by its peers' records; `silent` peers do not answer."""
        now = self.now
        return overview(
            self.around.directory,
            self.around.placement(now),
            self.around.rules,
            now,
            silent,
        )

    def losses(self) -> Losses:
        """Return the shards that the swarm has lost, by its peers' records."""
        return losses(self.around.directory, self.now)

    def full(self) -> list[Peer]:
        """Return the full storage peers; none while every shard still accepts updates."""
        found = self.overview()
        return found.full if found.closed else []

    async def join_dht(self) -> None:
        """Read the directory in the DHT from now on; Unreachable if that fails.

        Before that, one of the peers that were asked for the directory may have left out records.
        """
        board = self._board
        if not isinstance(board, AskedBoard) or board.in_dht:
            return
        await board.join_dht()
        for _ in range(_LOOKS):
            if await self.lookout.look():
                return
            await asyncio.sleep(_LOOK_AGAIN)
        raise Unreachable(f"the directory could not be read in the DHT; {_ASK_THE_DOCTOR}")

    async def silent_peers(self) -> frozenset[Peer]:
        """Call all peers that have a live record; return those that do not answer."""
        live = self.around.directory.live(self.now)
        return await silent(self.place.transport, list({said.peer: None for said in live}))

    def storage_peers(self) -> list[Peer]:
        """Return the storage peers with a live record."""
        live = self.around.directory.live(self.now)
        return [said.peer for said in live if said.role == "storage"]

    def calls(self, failed: Callable[[BaseException], None]) -> Calls:
        """Return new calls to peers; `failed` receives any error in the callback of one."""
        return Calls(self.place.transport, self.gate.rules, failed, self.gate.weigh_edition)

    async def rows(self, neurons: Sequence[Neuron]) -> Answer:
        """Return the rows of neurons, in the same order; None for a neuron that has no row.

        Raises Unreachable if the rows cannot be read within the reader's patience.
        """
        return await self.reading.rows(neurons)

    def _found_out(self, lied: Lied) -> None:
        self._lies.append(lie_of(lied))


@asynccontextmanager
async def visit(
    link: Link,
    launch: Launch | None = None,
    shows: Shows | None = None,
    verify: float = USUAL,
) -> AsyncIterator[Session]:
    """Start a session with the swarm of a link; Unreachable if no peer answers.

    `launch` is a p2pd that the caller has started; by default one is started here. `shows` returns
    the token for the session's key; by default the token is derived from that in the user's client
    folder. `verify` is the share of the rows read that are also read from a second peer and
    compared; with 1, the owners vote on every row before it is used.
    """
    checked(Verify(verify, bytes(SALT_BYTES)))  # fail before anything is started
    shows = shows or Membership(usual_folder_in(link.swarm_id, "client")).shown
    async with AsyncExitStack() as stack:
        if launch is None:
            launch = await stack.enter_async_context(launched())
        token = shows(launch.me)
        host = await launch.host()
        place = await stack.enter_async_context(placed(host, link.addresses, token))
        manifest = await _met(place, link)
        yield await stack.enter_async_context(visited(manifest, place, verify))


@asynccontextmanager
async def visited(
    manifest: Manifest,
    place: JoinedHost,
    verify: float = USUAL,
) -> AsyncIterator[Session]:
    """Start a session with a swarm of known manifest; Unreachable if its directory is not read.

    Other peers are asked for the directory, unless `verify` is 1: a peer that left out owners could
    then win their votes, so the client joins the DHT.
    """
    gate = Gate(manifest, place.transport, place.token)
    _check(gate, place, Membership(usual_folder_in(manifest.swarm_id, "client")))
    async with _directory(place, manifest, gate, asks=verify < 1) as board:
        member = Member(place.context(manifest, gate, _LOG, board))
        lookout = member.lookout
        board.known = lambda: lookout.view.directory.alive(lookout.time())
        async with _looking(member):
            visiting = Session(member, place, verify)
            try:
                yield visiting
            finally:
                await visiting.reading.close()


@asynccontextmanager
async def _directory(
    place: JoinedHost, manifest: Manifest, gate: Gate, *, asks: bool
) -> AsyncIterator[AskedBoard]:
    """Give access to the peer directory: if `asks`, through other peers, otherwise in the DHT."""

    @asynccontextmanager
    async def joins() -> AsyncIterator[Board]:
        await asyncio.to_thread(import_module, "giaann_p2p.node.members.dht_board")  # slow
        from giaann_p2p.node.members.dht_board import dht_board

        async with dht_board(place, manifest, gate) as board:
            yield board

    def is_valid(record: bytes) -> bool:
        try:
            read(record, gate.clock(), manifest.swarm_id, gate.rules())
        except RecordError:
            return False
        return True

    board = AskedBoard(place.transport, place.book.peers, is_valid, joins)
    try:
        await (board.begin() if asks else board.join_dht())
        yield board
    finally:
        await board.close()


async def _met(place: JoinedHost, link: Link) -> Manifest:
    """Return the swarm's manifest, from the first peer of a link that answers."""
    if not place.book.peers:
        raise UsageError(f"the join link has no usable address: {'; '.join(place.book.strange)}")
    try:
        return await joined(place.transport, place.book.peers, link.swarm_id, Versions())
    except Unreachable as error:
        raise Unreachable(f"{' '.join(str(error).split())}; {_ASK_THE_DOCTOR}") from None


@asynccontextmanager
async def _looking(member: Member) -> AsyncIterator[None]:
    """Read the directory once, then keep reading it in the background during the block."""
    tasks = [asyncio.create_task(member.lookout.run())]
    try:
        await _seen_first(member.lookout)
        for news in member.news:
            await news.catch_up()  # so that no revoked peer is asked, and all owners are known
            tasks.append(asyncio.create_task(news.run()))
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _check(gate: Gate, place: JoinedHost, membership: Membership) -> None:
    """Raise NotAdmitted, with advice, if the swarm does not admit this client."""
    try:
        needs(gate.admission, place.host.me, place.token, Rights.CLIENT, time.time())
    except TokenError as error:
        why = str(error).partition(". The name of this peer is ")[0]  # this name is the session's
        name = to_text(membership.identity.peer)
        raise NotAdmitted(
            f"{why}. Send the name of this machine's clients, {name}, to the founder; when you have"
            " the token, run `giaann token accept TOKEN`"
        ) from None


async def _seen_first(lookout: Lookout) -> None:
    """Wait for the first look at the directory; Unreachable if it takes too long."""
    try:
        async with asyncio.timeout(_FIRST_LOOK):
            await lookout.judged.wait()
            if lookout.clock_fault:
                raise UsageError(lookout.clock_fault)
            await lookout.whole.wait()
    except TimeoutError:
        raise Unreachable(
            "peers of the swarm answer, but their directory could not be read in "
            f"{_FIRST_LOOK:g} s; {_ASK_THE_DOCTOR}"
        ) from None
