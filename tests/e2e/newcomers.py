"""Newcomers join a swarm with boundless room, take its shards, and are killed all at once.

    python -m tests.e2e.newcomers --newcomers 3 5 10 --rounds 5 --memory-only

Each round is a swarm of its own: five small storage peers learn a text, N more join that claim all
the room there is, and are killed: after so many seconds, after a time that chance decides, or as
soon as the five hold nothing any more ("taken"; at the latest after two minutes). Then the five
have to serve again what they had learned. All the while rows are read, `giaann status` and `giaann
fsck` are run, and what they say is held against what the living storage peers really serve.

The exit code is 1 if a round has lost anything, or if status said "healthy", or fsck ended with 0,
while something was missing.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from math import inf
from typing import NamedTuple

import typer

from giaann_p2p.cli.main import app
from giaann_p2p.client.checkup import checked
from giaann_p2p.client.session import Session, visit
from giaann_p2p.errors import PeerError
from giaann_p2p.local.peer import ProcessState
from giaann_p2p.local.roles import COMPUTE, ENTRIES, STORAGE
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.rows import Neuron, Row
from giaann_p2p.node.reading.reader import RowReader
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.messages import AskDigests, Digest, Digests, decode, encode
from giaann_p2p.swarm.wire.replica import SERVING
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.e2e.commands import Commands, Said
from tests.e2e.material import Wiki
from tests.e2e.writer import Writer, settled

_FIVE, _REPLICAS, _SHARDS = 5, 3, 16
_SMALL, _HUGE = "64MiB", "127TiB"
_TAKEN, _RANDOM, _ANY = "taken", "random", "any"
_LONGEST = 120.0
_SERVED_WITHIN = 420.0
_STAYS = 5.0
"""Seconds for which the five have to show the same before it counts."""
_LOOK_EVERY, _READ_EVERY, _READ_WITHIN, _CALL_WITHIN = 2.0, 0.25, 2.0, 5.0
_AT_ONCE = 8
_NEWCOMER = COMPUTE
"""The role under which the supervisor starts newcomers: theirs are other arguments."""


class Moment(NamedTuple):
    """What the commands said at a time, and how many shards nobody served as they should be."""

    at: float
    status: Said
    fsck: Said
    missing: int

    @property
    def lies(self) -> bool:
        """Whether a command said that all is well while something was missing."""
        healthy = self.status.code == 0 or self.status.json.get("verdict") == "healthy"
        return self.missing > 0 and (healthy or self.fsck.code == 0)

    @property
    def words(self) -> str:
        """Return both verdicts, with exit codes."""
        verdict = self.status.json.get("verdict", "no answer")
        found = self.fsck.json
        agrees = {True: "agrees", False: "does not agree"}.get(found.get("agrees"), "no answer")
        rows = found.get("rows", 0)
        return (
            f"status: {verdict} ({self.status.code}), fsck: {agrees}, {rows:,} rows"
            f" ({self.fsck.code}), {self.missing} of {_SHARDS} shards missing"
        )


@dataclass
class Round:
    """What came of one round."""

    newcomers: int
    memory_only: bool
    wanted: str
    """When they were to vanish."""
    before: str = ""
    after: str = ""
    rows: int = 0
    vanished: float = 0.0
    """Seconds from their start."""
    owned: int = 0
    """Shards that newcomers alone served then."""
    served: float = inf
    """Seconds from the kill until the five held one content, and all of it was as it should be."""
    reads: int = 0
    refused: list[tuple[float, float]] = field(default_factory=list)
    """When reads were refused, or told too little, and for how long."""
    moments: list[Moment] = field(default_factory=list)

    @property
    def lies(self) -> list[Moment]:
        """Return when the commands did not tell the truth."""
        return [moment for moment in self.moments if moment.lies]

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, and nothing untrue was said."""
        return self.before == self.after and not self.lies

    def line(self) -> str:
        """Return the row of the table."""
        kept = "memory" if self.memory_only else "disk"
        total = sum(seconds for _, seconds in self.refused)
        longest = max((seconds for _, seconds in self.refused), default=0.0)
        result = "same" if self.before == self.after else "LOST"
        return (
            f"{self.newcomers:9} {kept:6} {self.wanted:>6} {self.vanished:7.0f} s"
            f" {self.owned:5} {self.before[:8]} {self.after[:8] or '-':8} {result} {self.rows:6,}"
            f" {self.served:8.0f} s {longest:7.1f} s {total:6.1f} s"
            f" {len(self.lies):3} of {len(self.moments)}"
        )


_HEAD = (
    "newcomers kept   vanish   after alone before   after    data   rows   served in"
    "  refused  in all untrue"
)


class Attack:
    """One round; see the module."""

    def __init__(
        self, swarm: LocalSwarm, visiting: Session, commands: Commands, told: Round
    ) -> None:
        self.told = told
        self._swarm, self._visiting, self._commands = swarm, visiting, commands
        self._wiki = Wiki(visiting.manifest.spec, visiting.manifest.layout)
        self._five = list[Peer]()
        self._began = time.monotonic()
        self._vanished = asyncio.Event()

    async def run(self, vanish_after: float | None) -> None:
        """Teach, let them join, kill them, and wait; None: as soon as all is taken."""
        await Writer(self._visiting, self._wiki).learn()
        report = await settled(self._visiting, self._wiki, _FIVE)
        self.told.before, self._five = report.digest, self._visiting.storage_peers()
        self._began = time.monotonic()
        watching = [asyncio.create_task(self._look()), asyncio.create_task(self._read())]
        try:
            names = await asyncio.to_thread(self._swarm.add, _NEWCOMER, self.told.newcomers)
            await self._until(vanish_after)
            await self._vanish(names)
            await self._served_again()
            await self._one_more_look()
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def _until(self, vanish_after: float | None) -> None:
        end = time.monotonic() + (_LONGEST if vanish_after is None else vanish_after)
        while time.monotonic() < end:
            if vanish_after is None and self._only_newcomers() == _SHARDS:
                return
            await asyncio.sleep(0.2)

    async def _vanish(self, names: list[str]) -> None:
        self.told.owned = self._only_newcomers()
        peers = [peer for peer in self._swarm.peers() if peer.name in names]
        assert all(peer.state != ProcessState.ENDED for peer in peers), f"a newcomer ended: {peers}"
        for peer in peers:
            if peer.pid:
                os.killpg(peer.pid, signal.SIGKILL)
        self.told.vanished = self._now()
        self._vanished.set()

    async def _served_again(self) -> None:
        """Return when the five hold one content for a while, whichever it is."""
        began = self._now()
        since, last = began, ""
        while self._now() - began < _SERVED_WITHIN:
            report = await checked(
                self._visiting.place.transport, self._visiting.manifest, self._five, _CALL_WITHIN
            )
            found = report.digest if not (report.silent or report.under) else ""
            if found != last:
                since, last = self._now(), found
            self.told.after, self.told.rows = report.digest, report.rows
            if found and self._now() - since >= _STAYS and self._is_healthy():
                self.told.served = since - began
                break
            await asyncio.sleep(1.0)

    async def _one_more_look(self) -> None:
        """Return when the commands were run once more."""
        count = len(self.told.moments)
        while len(self.told.moments) < count + 2:  # noqa: ASYNC110  (the first began before)
            await asyncio.sleep(0.2)

    async def _look(self) -> None:
        link = self._swarm.link
        while True:
            before = await self._missing()
            status = await self._commands.run("status", "--json", "--join", link)
            after = await self._missing()
            fsck = await self._commands.run("fsck", "--json", "--wait", "0", "--join", link)
            missing = min(before, after, await self._missing())
            moment = Moment(self._now(), status, fsck, missing)
            self.told.moments.append(moment)
            _say(f"{moment.at:6.1f} s: {moment.words}{'  UNTRUE' if moment.lies else ''}")
            await asyncio.sleep(_LOOK_EVERY)

    async def _read(self) -> None:
        """Read what was learned, and note when it is refused or told without all of it."""
        visiting = self._visiting
        reading = RowReader(
            visiting.place.transport,
            visiting.manifest,
            visiting.lookout.view,
            visiting.clock,
            patience=_READ_WITHIN,
        )
        chance, known, since = random.Random(1), self._wiki.telling(), None
        try:
            while True:
                neurons, began = chance.sample(known, _AT_ONCE), self._now()
                try:
                    rows = await reading.rows(neurons)
                    pairs = zip(neurons, rows, strict=True)
                    whole = all(self._is_whole(neuron, row) for neuron, row in pairs)
                except PeerError:
                    whole = False
                self.told.reads += 1
                since, was = (None, since) if whole else (since or began, None)
                if was is not None:
                    self.told.refused.append((was, self._now() - was))
                await asyncio.sleep(_READ_EVERY)
        finally:
            if since is not None:
                self.told.refused.append((since, self._now() - since))
            await reading.close()

    def _is_whole(self, neuron: Neuron, row: Row | None) -> bool:
        times, held = self._wiki.times(neuron, row), self._wiki.holds(neuron)
        return times is not None and all(times[chunk] == 1 for chunk in held)

    async def _missing(self) -> int:
        """Return how many shards no living storage peer serves with all that was learned."""
        asked = [self._told_by(peer) for peer in self._visiting.storage_peers()]
        answers = await asyncio.gather(*asked)
        sets = self._wiki.twin.sets(range(_SHARDS))
        return sum(
            not any(
                shard in told
                and told[shard].state in SERVING
                and told[shard].chunks == sets[shard].digest
                for told in answers
            )
            for shard in range(_SHARDS)
        )

    async def _told_by(self, peer: Peer) -> dict[int, Digest]:
        left, found = self._wiki.twin.shards, dict[int, Digest]()
        try:
            while len(left):
                question = encode(AskDigests(packed(left, _SHARDS)))
                transport = self._visiting.place.transport
                answer = decode(await transport.call(peer, question, timeout=_CALL_WITHIN))
                if not isinstance(answer, Digests) or not answer.found:
                    break
                shards = unpacked(answer.shards, _SHARDS).tolist()
                found.update(zip(shards, answer.found, strict=True))
                left = left[len(answer.found) :]
        except PeerError:
            return {}
        return found

    def _only_newcomers(self) -> int:
        """Return how many shards the five do not serve, by what they say."""
        around, now = self._visiting.around, self._visiting.lookout.time()
        five = set(self._five)
        ready = (set(around.directory.ready(shard, now)) for shard in range(_SHARDS))
        return sum(bool(peers) and not peers & five for peers in ready)

    def _is_healthy(self) -> bool:
        found = self._visiting.overview()
        names = {name_of(one.peer) for one in found.peers if one.role == "storage"}
        return found.verdict == "healthy" and names == {name_of(peer) for peer in self._five}

    def _now(self) -> float:
        return time.monotonic() - self._began


def timeline(told: Round) -> Iterator[str]:
    """Return what the commands said, and until when they did."""
    for words, moments in groupby(told.moments, lambda moment: moment.words):
        *_, last = moments
        when = "before" if last.at < told.vanished else "after"
        mark = "  UNTRUE" if last.lies else ""
        yield f"  until {last.at:5.1f} s, {when} the kill: {words}{mark}"


def _forced() -> list[str]:
    """Return what allows a peer to claim more room than its machine has."""
    command = typer.main.get_command(app)
    storage = command.commands["storage"]
    known = {name for option in storage.params for name in option.opts}
    return ["--force"] if "--force" in known else []


def attacked(newcomers: int, memory_only: bool, vanish: str, chance: random.Random) -> Round:
    """Play one round in a swarm of its own."""
    told = Round(newcomers, memory_only, vanish)
    kept = ["--memory-only"] if memory_only else []
    arguments = {
        STORAGE: ["--capacity", _SMALL],
        _NEWCOMER: ["--capacity", _HUGE, *kept, *_forced()],
    }
    after = None if vanish == _TAKEN else _seconds(vanish, chance)

    async def played(swarm: LocalSwarm, commands: Commands) -> None:
        async with visit(Link.read(swarm.link)) as visiting:
            await Attack(swarm, visiting, commands, told).run(after)

    with (
        Commands() as commands,
        LocalSwarm(
            profile="words",
            storages=_FIVE,
            replicas=_REPLICAS,
            shards=_SHARDS,
            entries={**ENTRIES, _NEWCOMER: ENTRIES[STORAGE]},
            arguments=arguments,
        ) as swarm,
    ):
        asyncio.run(played(swarm, commands))
    return told


def _seconds(vanish: str, chance: random.Random) -> float:
    return chance.uniform(1, _LONGEST) if vanish == _RANDOM else float(vanish)


def _way(number: int, wanted: str) -> str:
    return wanted if wanted != _ANY else (_TAKEN, _RANDOM)[number % 2]


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--newcomers", type=int, nargs="+", default=[3], metavar="N")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--memory-only", action="store_true")
    parser.add_argument(
        "--vanish-after",
        default=_ANY,
        metavar="SECONDS",
        help=f"or {_RANDOM!r}, {_TAKEN!r}, or {_ANY!r}: these two in turns, the default",
    )
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    chance, rounds = random.Random(wanted.seed), list[Round]()
    for count in wanted.newcomers:
        for number in range(wanted.rounds):
            way = _way(number, wanted.vanish_after)
            _say(f"--- {count} newcomers, round {number + 1} of {wanted.rounds}, vanish: {way}")
            rounds.append(attacked(count, wanted.memory_only, way, chance))
            _say("\n".join([_HEAD, rounds[-1].line()]))
    print(_HEAD)
    for told in rounds:
        print(told.line())
        print("\n".join(timeline(told)))
    good = sum(told.is_good for told in rounds)
    print(f"{good} of {len(rounds)} rounds lost nothing and were told the truth")
    return 0 if good == len(rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
