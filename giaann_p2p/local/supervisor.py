"""Supervises the peers of a swarm on this machine, and serves the requests of clients.

1. The first bootstrap peer starts alone, because the others need its link. Then the others start in
   waves.
2. A peer that has ended is restarted on request or, if the spec says so, automatically.
3. Signals that stop, continue or kill a peer reach all processes that it has started, as if its
   machine hung or failed. Other signals reach the peer alone, which has to end its own processes.
4. To shut a peer down, it gets SIGTERM, SIGTERM again after a second, and SIGKILL after the grace
   period. The second SIGTERM skips the handover: either the peer comes back, or nobody is left to
   hand over to. A peer is shut down before a restart, and all peers together at the end. No process
   is left, however a peer ends.
"""

import asyncio
import logging
import os
import signal
import time
from contextlib import suppress

from giaann_p2p.errors import GiaannError, UsageError
from giaann_p2p.local import linux
from giaann_p2p.local.control import Add, Answer, Counter, Down, Kill, Look, Question, Restart
from giaann_p2p.local.errors import LocalSwarmError
from giaann_p2p.local.folder import Folder, Known, Record
from giaann_p2p.local.logs import how_it_ended
from giaann_p2p.local.nursery import Nursery
from giaann_p2p.local.orders import Ended, News, OrderRefused, Paused, Signal, Spawn, Spawned
from giaann_p2p.local.peer import Peer, ProcessState, View, how_ended
from giaann_p2p.local.roles import BOOTSTRAP, Spec, arguments_of, role_named
from giaann_p2p.local.status_file import StatusFile
from giaann_p2p.local.suggest import nearest
from giaann_p2p.local.waves import next_wave

_LOG = logging.getLogger(__name__)
_LOOK_EVERY = 0.2
"""Seconds between two looks at the peers' status files."""
_ASK_AGAIN = 1.0
"""Seconds from the first SIGTERM to the second."""
_KILLED_WITHIN = 5.0
"""Seconds to wait for the end of peers that were killed."""
_MOST_ADDED = 100
"""Maximum number of peers that one request may add."""
_REACH_ALL = (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT)
_REFUSED = 127
"""Exit code of a peer that could not be forked."""
_FIRST = f"{BOOTSTRAP}-1"
"""Name of the peer that founds the swarm; a restart passes it the same arguments as its start."""


class Supervisor:
    """The supervisor of one swarm: it starts, watches and ends its peers."""

    def __init__(self, folder: Folder, spec: Spec, record: Record | None = None) -> None:
        self._folder = folder
        self._spec = spec
        self._link = ""
        self._peers = {known.name: Peer(known) for known in (record.peers if record else [])}
        self._nursery = Nursery(folder, self._hear)
        self._counter = Counter(self._answer)
        self._changed = asyncio.Event()
        self._ending, self._hurry = asyncio.Event(), asyncio.Event()
        self._restarting: set[str] = set()
        self._waiting: list[Peer] = []

    async def open(self) -> None:
        """Start to serve the requests of clients."""
        await self._counter.open(self._folder.socket)

    async def run(self) -> None:
        """Run the swarm until a client or a signal ends it; LocalSwarmError if a failure does."""
        work = asyncio.create_task(self._work())
        ending = asyncio.create_task(self._ending.wait())
        try:
            await asyncio.wait([work, ending], return_when=asyncio.FIRST_COMPLETED)
            if work.done() and not self._ending.is_set():
                work.result()
        except GiaannError:
            await self._counter.close()  # before the peers end: clients get the error
            raise
        finally:
            await _cancelled(work, ending)
            await self._down()

    def down(self, now: bool = False) -> None:
        """Begin to end the swarm; the second time, or with `now`, kill instead of waiting."""
        if now or self._ending.is_set():
            self._hurry.set()
        self._ending.set()
        self._changed.set()

    async def _work(self) -> None:
        await self._nursery.start(self._spec.modules, self._spec.start_within)
        begin = asyncio.create_task(self._begin())
        gone = asyncio.create_task(self._nursery.ended.wait())
        pending = {begin, gone, asyncio.create_task(self._watch())}
        try:
            while not gone.done():
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()  # raise the task's error, if it failed
        finally:
            await _cancelled(*pending)
        raise LocalSwarmError(
            f"process {self._nursery.pid}, from which all peers were forked, was killed; all peers"
            " have ended with it"
        )

    async def _begin(self) -> None:
        """Start the peers of the swarm's record, and as many more as the spec asks for."""
        for role, count in self._spec.counts.items():
            there = sum(peer.known.role == role for peer in self._peers.values())
            for _ in range(count - there):
                self._new(role)
        first, *others = sorted(self._peers.values(), key=lambda peer: peer.known.role != BOOTSTRAP)
        self._start(first)
        self._link = await self._link_of(first)
        self._keep()
        self._waiting += others

    async def _link_of(self, first: Peer) -> str:
        """Return the link that the first peer reports; LocalSwarmError if it ends, or is late."""
        within = self._spec.link_within
        until = time.monotonic() + within
        while first.status is None or not first.status.link:
            if first.code is not None:
                raise LocalSwarmError(how_it_ended(first.name, first.code, self._folder))
            if time.monotonic() > until:
                raise LocalSwarmError(
                    f"{first.name} has not reported its link in {within:g} s;"
                    f" see {self._folder.log(first.name)}"
                )
            await self._change()
        return first.status.link

    # Peers.

    def _new(self, role: str) -> Peer:
        taken = [int(name.rpartition("-")[2]) for name in self._peers if name.startswith(role)]
        known = Known(name=f"{role}-{max(taken, default=0) + 1}", role=role)
        self._folder.data(known.name).mkdir(parents=True, exist_ok=True)
        peer = self._peers[known.name] = Peer(known)
        return peer

    def _start_next(self, now: float) -> None:
        """Start the next wave of waiting peers, except peers that a user has started already."""
        self._waiting = [peer for peer in self._waiting if peer.state == ProcessState.WAITING]
        for peer in next_wave(self._waiting, list(self._peers.values()), now):
            self._start(peer)

    def _start(self, peer: Peer) -> None:
        name, role = peer.name, peer.known.role
        folder, spec = self._folder, self._spec
        folder.data(name).mkdir(parents=True, exist_ok=True)  # a user may have removed it
        StatusFile(folder.status(name)).remove()
        peer.begin(time.time())
        self._nursery.tell(
            Spawn(
                name=name,
                entry=spec.entry(role),
                arguments=arguments_of(
                    role,
                    spec,
                    link="" if name == _FIRST else self._link,
                    data=folder.data(name),
                    status_file=folder.status(name),
                    listen=peer.listen,
                    metrics_port=peer.known.metrics_port,
                ),
                log=str(folder.log(name)),
                folder=str(folder.data(name)),
                environment=spec.environment,
            )
        )

    def _hear(self, news: News) -> None:
        if isinstance(news, Spawned | Ended | Paused | OrderRefused):
            peer = self._peers[news.name]
            match news:
                case Spawned():
                    peer.pid = news.pid
                    _LOG.info("%s started as process %d", news.name, news.pid)
                case Paused():
                    peer.paused = news.paused
                    _LOG.info("%s %s", news.name, "is stopped" if news.paused else "continues")
                case OrderRefused():
                    _LOG.error("%s cannot be started: %s", news.name, news.why)
                    self._end(peer, _REFUSED)
                case Ended():
                    _LOG.info("%s %s", news.name, how_ended(news.code))
                    self._end(peer, news.code)
        self._changed.set()

    def _end(self, peer: Peer, code: int) -> None:
        now = time.time()
        self._look_at(peer)
        peer.end(code, now)
        if self._spec.restarts and peer.wanted:
            peer.again_at = peer.backoff.until

    async def _watch(self) -> None:
        """Read the peers' status files, and start the peers that are due; run until cancelled."""
        while True:
            if [peer for peer in self._peers.values() if self._look_at(peer)]:
                self._keep()
                self._changed.set()
            now = time.time()
            for peer in list(self._peers.values()):
                if peer.again_at <= now:
                    peer.restarts += 1
                    self._start(peer)
            self._start_next(now)
            await asyncio.sleep(_LOOK_EVERY)

    def _look_at(self, peer: Peer) -> bool:
        """Read a peer's status file; return whether it has news."""
        if not peer.pid:
            return False
        try:
            return peer.hear(StatusFile(self._folder.status(peer.name)).read())
        except GiaannError as error:
            _LOG.warning("the status file of %s cannot be read: %s", peer.name, error)
            return False

    def _keep(self) -> None:
        known = [peer.known for peer in self._peers.values()]
        self._folder.keep(Record(spec=self._spec, link=self._link, peers=known))

    async def _change(self) -> None:
        """Wait until some peer's state changes, but at most _LOOK_EVERY seconds."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_EVERY):
                await self._changed.wait()

    # Requests.

    async def _answer(self, question: Question) -> Answer:
        started: list[str] = []
        memory = False
        match question:
            case Look():
                memory = question.memory
            case Add():
                started = self._add(question.role, question.count)
            case Kill():
                self._kill(self._peer(question.name), question.number)
            case Restart():
                await self._restart(self._peer(question.name))
            case Down():
                self.down(question.now)
        peers = await self._views(memory)
        return Answer(link=self._link, pid=os.getpid(), peers=peers, started=started)

    async def _views(self, memory: bool) -> list[View]:
        sizes: dict[int, int] = {}
        if memory:
            running = [peer.pid for peer in self._peers.values() if peer.pid]
            sizes = await asyncio.to_thread(_memory, running)
        now = time.time()
        return [peer.view(now, sizes.get(peer.pid, 0)) for peer in self._peers.values()]

    def _add(self, role: str, count: int) -> list[str]:
        role_named(role)
        if not 1 <= count <= _MOST_ADDED:
            raise UsageError(f"{count} peers cannot be added: give 1 to {_MOST_ADDED}")
        self._not_ending()
        self._has_link()
        added = [self._new(role) for _ in range(count)]
        self._waiting += added
        self._start_next(time.time())
        self._keep()
        return [peer.name for peer in added]

    def _kill(self, peer: Peer, number: int) -> None:
        if number not in signal.valid_signals():
            raise UsageError(f"there is no signal {number}")
        if not peer.alive:
            raise UsageError(
                f"{peer.name} is not running; `giaann swarm restart {peer.name}` starts it"
            )
        if number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            peer.wanted = False
        self._send(peer, number)

    async def _restart(self, peer: Peer) -> None:
        self._not_ending()
        if peer.name != _FIRST:
            self._has_link()
        if peer.name in self._restarting:
            raise UsageError(f"{peer.name} is already being restarted")
        self._restarting.add(peer.name)
        try:
            if peer.alive:
                peer.wanted = False
                await self._leave([peer])
            self._not_ending()
            self._start(peer)
            peer.restarts += 1
        finally:
            self._restarting.discard(peer.name)

    def _has_link(self) -> None:
        """Raise LocalSwarmError until the link is known: a peer without it would found a swarm."""
        if not self._link:
            raise LocalSwarmError("the first peer has not started yet; try again when it is ready")

    def _not_ending(self) -> None:
        if self._ending.is_set():
            raise LocalSwarmError("the swarm is ending")

    def _peer(self, name: str) -> Peer:
        if name not in self._peers:
            raise UsageError(f"there is no peer {name!r}{nearest(name, self._peers)}")
        return self._peers[name]

    def _send(self, peer: Peer, number: int) -> None:
        self._nursery.tell(Signal(peer.name, number, number in _REACH_ALL))

    # Shutdown.

    async def _leave(self, peers: list[Peer]) -> None:
        """Shut peers down: SIGTERM twice, and SIGKILL after the grace period."""
        until = time.monotonic() + self._spec.grace
        ask_again = time.monotonic() + _ASK_AGAIN
        self._ask_to_leave(peers)
        while _any_alive(peers) and time.monotonic() < until and not self._hurry.is_set():
            if time.monotonic() > ask_again:
                self._ask_to_leave(peers)
                ask_again = float("inf")
            await self._change()
        until = time.monotonic() + _KILLED_WITHIN
        for peer in peers:
            if peer.alive:
                _LOG.warning("%s did not end in time, and is killed", peer.name)
                self._send(peer, signal.SIGKILL)
        while _any_alive(peers) and time.monotonic() < until and not self._gone():
            await self._change()

    def _ask_to_leave(self, peers: list[Peer]) -> None:
        """Send SIGTERM, and SIGCONT, because a stopped process does not react to SIGTERM."""
        for peer in peers:
            if peer.alive:
                self._send(peer, signal.SIGTERM)
                self._send(peer, signal.SIGCONT)

    def _gone(self) -> bool:
        return self._nursery.ended.is_set()

    async def _down(self) -> None:
        self._ending.set()
        for peer in self._peers.values():
            peer.wanted, peer.again_at = False, float("inf")
        if not self._gone():
            await self._leave(list(self._peers.values()))
        await self._nursery.close()
        await self._counter.close()
        _LOG.info("the swarm has ended")


def _any_alive(peers: list[Peer]) -> bool:
    return any(peer.alive for peer in peers)


def _memory(processes: list[int]) -> dict[int, int]:
    """Return the memory of each process, in bytes, including all processes that it has started."""
    found = {}
    for process in processes:
        sizes = [linux.memory(one) for one in (process, *linux.descendants(process))]
        found[process] = sum(size.shared + size.private for size in sizes if size is not None)
    return found


async def _cancelled(*tasks: "asyncio.Task[object]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
