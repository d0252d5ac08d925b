"""Newcomers join a swarm with boundless room, take its shards, and are killed.

    python -m tests.e2e.newcomers --newcomers 3 5 10 --kept memory disk --rounds 5

Each round is a swarm of its own: five small storage peers learn a text, N more join that claim all
the room there is, and are killed at one of these moments (without --vanish-after, the named ones in
turns):

    soon      two seconds after their start, when most have not joined yet
    moving    as soon as they serve a shard, while the others are still on their way
    taken     when they have taken most: newcomers serve shards beside the five at first, and alone
              when they have standing. As soon as they alone serve three shards of four, and no
              more of them for ten seconds; at the latest after three minutes
    apart     one by one, some seconds between two of them, the first when it is "taken"
    random    after a time that chance decides, two minutes at most
    SECONDS   after so many seconds

Then the five have to serve again what they had learned. All the while rows are read, `giaann
status` and `giaann fsck` are run, and what they say is held against what the living storage peers
really serve.

A table is printed at the end. The exit code is 1 if a round has lost anything, or could not be
played to its end, or if status said "healthy" or "starting", or fsck ended with 0, while something
was missing. That status said "lost" while nothing was missing is counted, too, as an alarm: a peer
that was killed counts as gone only when it has been silent for a while, so it may be a matter of
time.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from math import inf
from typing import NamedTuple

import typer

from giaann_p2p.cli.main import app
from giaann_p2p.client.checkup import checked
from giaann_p2p.client.session import Session, visit
from giaann_p2p.errors import GiaannError, PeerError
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
_SOON, _MOVING, _TAKEN, _APART, _RANDOM = "soon", "moving", "taken", "apart", "random"
_IN_TURNS = [_TAKEN, _MOVING, _SOON, _APART, _RANDOM]
_ANY = "any"
_MEMORY, _DISK = "memory", "disk"
_MOST, _NO_MORE_FOR = 3 * _SHARDS // 4, 10.0
_APART_BY = 4.0
"""Seconds between two newcomers that vanish one by one."""
_LONGEST, _TAKEN_WITHIN = 120.0, 180.0
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
    """The fewest that were missing before, between and after the commands."""
    most: int
    """The most that were."""

    @property
    def lies(self) -> bool:
        """Whether a command said that all is well while something was missing."""
        verdict = self.status.json.get("verdict")
        well = self.status.code == 0 or verdict in ("healthy", "starting")
        return self.missing > 0 and (well or self.fsck.code == 0)

    @property
    def alarms(self) -> bool:
        """Whether status said that something was lost while nothing was missing."""
        return self.most == 0 and self.status.json.get("verdict") == "lost"

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
    """Shards that newcomers served when the first of them was killed."""
    alone: int = 0
    """Shards that only newcomers served then."""
    served: float = inf
    """Seconds from the kill until the five held one content, and all of it was as it should be."""
    reads: int = 0
    refused: list[tuple[float, float]] = field(default_factory=list)
    """When reads were refused, or told too little, and for how long."""
    moments: list[Moment] = field(default_factory=list)
    failed: str = ""
    """Why it was not played to its end."""

    @property
    def lies(self) -> list[Moment]:
        """Return when the commands did not tell the truth."""
        return [moment for moment in self.moments if moment.lies]

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, and nothing untrue was said."""
        return self.is_same and not self.lies and not self.failed

    @property
    def is_same(self) -> bool:
        """Whether the five serve again what they had learned."""
        return self.before == self.after != ""

    def line(self) -> str:
        """Return the row of the table."""
        kept = _MEMORY if self.memory_only else _DISK
        total = sum(seconds for _, seconds in self.refused)
        longest = max((seconds for _, seconds in self.refused), default=0.0)
        result = "same" if self.is_same else "LOST"
        alarms = sum(moment.alarms for moment in self.moments)
        return (
            f"{self.newcomers:9} {kept:6} {self.wanted:>6} {self.vanished:7.0f} s"
            f" {self.owned:6} {self.alone:5}"
            f" {self.before[:8] or '-':8} {self.after[:8] or '-':8} {result} {self.rows:6,}"
            f" {self.served:8.0f} s {longest:7.1f} s {total:6.1f} s"
            f" {len(self.lies):3} of {len(self.moments):3} {alarms:6}"
            f"{f'  FAILED: {self.failed}' if self.failed else ''}"
        )


_HEAD = (
    "newcomers kept   vanish   after served alone before   after    data   rows   served in"
    "  refused  in all     untrue alarms"
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
        self._alone, self._alone_since = 0, self._began

    async def run(self, vanish_after: float) -> None:
        """Teach, let them join, kill them when they were to vanish, or after so many seconds."""
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

    async def _until(self, vanish_after: float) -> None:
        end = time.monotonic() + vanish_after
        while time.monotonic() < end:
            if self._has_come():
                return
            await asyncio.sleep(0.2)

    def _has_come(self) -> bool:
        """Whether the moment to vanish is there, if it is no matter of seconds."""
        wanted = self.told.wanted
        if wanted == _MOVING:
            return bool(self._served_by_newcomers())
        now, alone = time.monotonic(), len(self._only_newcomers())
        if alone != self._alone:
            self._alone, self._alone_since = alone, now
        is_most = alone >= _MOST and (alone == _SHARDS or now - self._alone_since > _NO_MORE_FOR)
        return wanted in (_TAKEN, _APART) and is_most

    async def _vanish(self, names: list[str]) -> None:
        self.told.owned = len(self._served_by_newcomers())
        self.told.alone = len(self._only_newcomers())
        peers = [peer for peer in self._swarm.peers() if peer.name in names]
        assert all(peer.state != ProcessState.ENDED for peer in peers), f"a newcomer ended: {peers}"
        for number, peer in enumerate(peers):
            if number and self.told.wanted == _APART:
                await asyncio.sleep(_APART_BY)
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
                self._visiting.place.transport,
                self._visiting.around.rules,
                self._five,
                _CALL_WITHIN,
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
            counts = [await self._missing()]
            status = await self._commands.run("status", "--json", "--join", link)
            counts.append(await self._missing())
            fsck = await self._commands.run("fsck", "--json", "--wait", "0", "--join", link)
            counts.append(await self._missing())
            moment = Moment(self._now(), status, fsck, min(counts), max(counts))
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

    def _served_by_newcomers(self) -> list[int]:
        """Return the shards that a newcomer serves, by what they say."""
        return [shard for shard, peers in self._serving() if peers - set(self._five)]

    def _only_newcomers(self) -> list[int]:
        """Return those of them that none of the five serves, by what they say."""
        five = set(self._five)
        return [shard for shard, peers in self._serving() if peers and not peers & five]

    def _serving(self) -> Iterator[tuple[int, set[Peer]]]:
        around, now = self._visiting.around, self._visiting.lookout.time()
        for shard in range(_SHARDS):
            yield shard, set(around.directory.ready(shard, now))

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
    after = _seconds(vanish, chance)

    async def played(swarm: LocalSwarm, commands: Commands) -> None:
        async with visit(Link.read(swarm.link)) as visiting:
            await Attack(swarm, visiting, commands, told).run(after)

    try:
        _play(arguments, played)
    except (AssertionError, GiaannError, OSError) as error:
        told.failed = f"{type(error).__name__}: {error}".splitlines()[0]
    return told


def _play(
    arguments: dict[str, list[str]],
    played: Callable[[LocalSwarm, Commands], Coroutine[None, None, None]],
) -> None:
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


def _seconds(vanish: str, chance: random.Random) -> float:
    if vanish == _RANDOM:
        return chance.uniform(1, _LONGEST)
    return {_SOON: 2.0}.get(vanish, _TAKEN_WITHIN) if vanish in _IN_TURNS else float(vanish)


def _way(number: int, wanted: str) -> str:
    return wanted if wanted != _ANY else _IN_TURNS[number % len(_IN_TURNS)]


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--newcomers", type=int, nargs="+", default=[3], metavar="N")
    parser.add_argument("--rounds", type=int, default=1, help="of each number and kind")
    parser.add_argument("--kept", nargs="+", choices=(_MEMORY, _DISK), default=[_DISK])
    parser.add_argument("--memory-only", action="store_true", help=f"the same as --kept {_MEMORY}")
    parser.add_argument(
        "--vanish-after",
        default=_ANY,
        metavar="SECONDS",
        help=f"or one of {', '.join(_IN_TURNS)}, or {_ANY}: these in turns, the default",
    )
    parser.add_argument(
        "--minutes", type=float, default=inf, help="no round begins that might end after them"
    )
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    kept = [_MEMORY] if wanted.memory_only else wanted.kept
    chance, rounds = random.Random(wanted.seed), list[Round]()
    end, longest = time.monotonic() + 60 * wanted.minutes, 0.0
    every = [
        (number, count, how)
        for number in range(wanted.rounds)
        for count in wanted.newcomers
        for how in kept
    ]
    for place, (number, count, how) in enumerate(every):
        began = time.monotonic()
        if began + longest > end:
            break
        # Not by the round alone: so the first rounds of each number have different moments, too.
        way = _way(number + place, wanted.vanish_after)
        _say(f"--- {count} newcomers, {how}, round {number + 1} of {wanted.rounds}, vanish: {way}")
        rounds.append(attacked(count, how == _MEMORY, way, chance))
        longest = max(longest, time.monotonic() - began)
        _say("\n".join([_HEAD, rounds[-1].line()]))
    for told in rounds:
        print("\n".join([_HEAD, told.line(), *timeline(told)]))
    print("\n".join([_HEAD, *(told.line() for told in rounds)]))
    good = sum(told.is_good for told in rounds)
    print(f"{good} of {len(rounds)} rounds lost nothing and were told the truth")
    if len(rounds) < len(every):
        print(
            f"{len(every) - len(rounds)} of {len(every)} rounds were not played: no time was left"
        )
    return 0 if good == len(rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
