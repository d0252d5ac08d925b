"""A small file with addresses of recently seen peers, for rejoining without a bootstrap peer.

The addresses are hints only: the transport authenticates the peer at an address, and the hash in
the join link authenticates the manifest. The file is written atomically and holds at most
`MOST_PEERS` peers. A peer that knows fewer than 16 peers writes down each new one at once, because
it may be killed the next second and restart when the peers of its link are gone. A peer that knows
more peers updates the file once a minute.

Strangers can appear in any number, under names that they choose. So a known peer that is still live
keeps its place, and the first `MOST_FIRST` places belong permanently to the peers known longest,
live or not. Newcomers, in random order, take free places and the places of later peers that are
gone.

The file also holds the sequence number of this peer's own last record. Other peers remember that
number for a day and ignore records with a smaller one, while the DHT board remembers it only for
seconds. Without the file, a peer whose clock was set back while it was down would be ignored for
that day.
"""

import asyncio
import logging
import random
from collections.abc import Iterable
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.store.disk.small_file import read_json, write_json
from giaann_p2p.swarm.wire.identity import to_text
from giaann_p2p.swarm.wire.link import fault_of
from giaann_p2p.swarm.wire.record import MOST_RECORD_ADDRESSES, Announcement

MOST_PEERS = 64
"""Maximum number of peers in the file."""
MOST_FIRST = MOST_PEERS // 2
"""Number of places in the file that belong permanently to the peers known longest."""
_ENOUGH = 16
"""Number of known peers below which each new one is written down at once."""
_EVERY = 60.0
"""Seconds between two updates of the file."""
_FORMAT = 1
_SLACK = 3_600_000
"""Assumed maximum growth of the sequence number since it was saved: an hour, in milliseconds."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    peers: list[list[str]]
    """Addresses of each peer, the peer known longest first."""
    names: list[str] = []
    """Names of the peers, in the order of `peers`; empty in files of earlier releases."""
    sequence: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)] = 0


class Acquaintances:
    """The file of known peers; its content is read once, at construction."""

    def __init__(self, path: Path, log: logging.Logger | None = None) -> None:
        self._path = path
        self._log = log or logging.getLogger("giaann.node")
        self._peers, self._sequence = self._read()
        self._noted = self._sequence

    def __repr__(self) -> str:
        return f"<Acquaintances in {self._path}: {len(self._peers)} peers>"

    @property
    def addresses(self) -> list[str]:
        """Addresses of known peers, those known longest first; tried beside the join link's."""
        return [address for peer in self._peers.values() for address in peer]

    @property
    def sequence(self) -> int:
        """Upper bound of the sequence numbers of this peer's own records; 0 if none is known."""
        return self._sequence + _SLACK if self._sequence else 0

    async def run(self, lookout: Lookout, executor: Executor | None = None) -> None:
        """Write newly found peers to the file, until cancelled."""
        await lookout.whole.wait()
        while True:
            lookout.news.clear()
            around = lookout.view
            live = around.directory.live(lookout.time())
            mine = [said.sequence for said in live if said.peer == around.me]
            others = [said for said in live if said.peer != around.me]
            if self.note(others, max(mine, default=0)):
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(executor, self.write)
            await self._due(lookout)

    async def _due(self, lookout: Lookout) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_EVERY):
                if len(self._peers) < _ENOUGH:
                    await lookout.news.wait()
                else:
                    await asyncio.sleep(_EVERY)

    def note(self, there: Iterable[Announcement], sequence: int = 0) -> bool:
        """Merge live peers and this peer's sequence number; return whether to write the file."""
        by_chance = list(there)
        random.shuffle(by_chance)
        now: dict[str, list[str]] = {}
        for said in sorted(by_chance, key=lambda said: said.role != "storage"):
            if said.addresses:
                now.setdefault(to_text(said.peer), list(said.addresses))
        told = {address for peer in now.values() for address in peer}
        # Skip a peer that `_read` named by its address, if it is in `now` under its own name.
        order = [name for name in self._peers if name not in told]
        first, others = order[:MOST_FIRST], order[MOST_FIRST:]
        staying = [name for name in others if name in now]
        new = [name for name in now if name not in self._peers]
        gone = [name for name in others if name not in now]
        known = self._peers | now
        peers = {name: known[name] for name in [*first, *staying, *new, *gone][:MOST_PEERS]}
        is_new = peers != self._peers
        self._peers, self._sequence = peers, max(self._sequence, sequence)
        return is_new or self._sequence - self._noted > _SLACK // 2

    def write(self) -> None:
        """Write the known peers to the file; a failure is only logged."""
        addresses, names = list(self._peers.values()), list(self._peers)
        try:
            write_json(self._path, _File(_FORMAT, addresses, names, sequence=self._sequence))
            self._noted = self._sequence
        except DiskError as error:
            self._log.warning("the list of known peers could not be saved: %s", error)

    def _read(self) -> tuple[dict[str, list[str]], int]:
        try:
            if (found := read_json(self._path, _File)) is None:
                return {}, 0
        except (DiskError, DamagedError) as error:
            self._log.warning("the list of known peers cannot be read, and is ignored: %s", error)
            return {}, 0
        if found.format != _FORMAT:
            self._log.warning(
                "the list of known peers was written by another release, and is ignored: %s",
                self._path,
            )
            return {}, 0
        peers = {}
        for number, listed in enumerate(found.peers[:MOST_PEERS]):
            addresses = [one for one in listed if not fault_of(one)][:MOST_RECORD_ADDRESSES]
            if addresses:
                is_named = len(found.names) == len(found.peers)
                # Without a name in the file, an address is the peer's name until it is seen.
                name = found.names[number] if is_named else addresses[0]
                peers[name] = addresses
        return peers, found.sequence
