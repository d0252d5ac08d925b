"""Addresses of peers that were there lately, in a small file: how to come back without a bootstrap.

They are only where to knock: whoever opens is proved by the transport, and the manifest by its
hash. The file is written whole or not at all, and holds so many peers. Who knows few writes down
each as soon as it is seen, for it may be killed in the next second, and come back when those of its
link are gone; who knows enough looks once a minute.

Strangers come in any number, under names that they choose. So who is known and still there keeps
its place, and half of the places are for good those of who came first, there or not. Newcomers, in
no order that they could choose, take what is left, and the places of others who are gone.

It also says how far the sequence of the own records has come. Others remember that for a day, the
board for seconds: a peer whose clock was set back while it was down would be ignored until then.
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

from giaann_p2p.node.lookout import Lookout
from giaann_p2p.swarm.identity import to_text
from giaann_p2p.swarm.link import fault_of
from giaann_p2p.swarm.record import MOST_RECORD_ADDRESSES, Announcement

MOST_PEERS = 64
MOST_FIRST = MOST_PEERS // 2
"""Of these, those that stay for good."""
_MOST_BYTES = 1 << 18
_ENOUGH = 16
_EVERY = 60.0
_FORMAT = 1
_SLACK = 3_600_000
"""By how much a sequence, in milliseconds, may have gone on since it was noted down."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    peers: list[list[str]]
    """Those first that are known longest; of each its addresses."""
    names: list[str] = []
    """Of each; none in files of earlier releases."""
    sequence: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)] = 0


class Acquaintances:
    """The file, and what it said when this began."""

    def __init__(self, path: Path, log: logging.Logger | None = None) -> None:
        self._path = path
        self._log = log or logging.getLogger("giaann.node")
        self._peers, self._sequence = self._read()
        self._noted = self._sequence

    def __repr__(self) -> str:
        return f"<Acquaintances in {self._path}: {len(self._peers)} peers>"

    @property
    def addresses(self) -> list[str]:
        """Where peers answered, those known longest first; to be tried beside a link's."""
        return [address for peer in self._peers.values() for address in peer]

    @property
    def sequence(self) -> int:
        """No less than the sequence of any record of the own; 0 if none is known."""
        return self._sequence + _SLACK if self._sequence else 0

    async def run(self, lookout: Lookout, executor: Executor | None = None) -> None:
        """Note down again and again who is there."""
        await lookout.whole.wait()
        while True:
            lookout.news.clear()
            around = lookout.others.around
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
        """Take in who is there, and the own sequence; tell whether that is to be noted down."""
        by_chance = list(there)
        random.shuffle(by_chance)
        now: dict[str, list[str]] = {}
        for said in sorted(by_chance, key=lambda said: said.role != "storage"):
            if said.addresses:
                now.setdefault(to_text(said.peer), list(said.addresses))
        told = {address for peer in now.values() for address in peer}
        order = [name for name in self._peers if name not in told]  # see `_read`
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
        """Put all into the file; that it cannot be written is told, and does no further harm."""
        new = self._path.with_name(self._path.name + ".new")
        try:
            addresses, names = list(self._peers.values()), list(self._peers)
            new.write_bytes(
                msgspec.json.encode(_File(_FORMAT, addresses, names, sequence=self._sequence))
            )
            new.replace(self._path)
            self._noted = self._sequence
        except OSError as error:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            self._log.warning("known peers are not noted down: %s: %s", new, error.strerror)

    def _read(self) -> tuple[dict[str, list[str]], int]:
        try:
            with self._path.open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
            found = msgspec.json.decode(data, type=_File)
        except FileNotFoundError:
            return {}, 0
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            self._log.warning("the list of known peers cannot be read: %s: %s", self._path, error)
            return {}, 0
        if found.format != _FORMAT or len(data) > _MOST_BYTES:
            self._log.warning("the list of known peers is of another release: %s", self._path)
            return {}, 0
        peers = {}
        for number, listed in enumerate(found.peers[:MOST_PEERS]):
            addresses = [one for one in listed if not fault_of(one)][:MOST_RECORD_ADDRESSES]
            if addresses:
                is_named = len(found.names) == len(found.peers)
                name = found.names[number] if is_named else addresses[0]  # until it is met
                peers[name] = addresses
        return peers, found.sequence
