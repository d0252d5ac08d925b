"""Tokens a second through a swarm, beside one machine that answers the same prompts in process.

A prompt is cold when none like it was asked before, and warm when the same one was just answered by
the same peer. Rows count for a second: so even of a warm prompt some may have to be read anew.
"""

import asyncio
from collections.abc import Iterator
from itertools import cycle
from statistics import fmean, median, quantiles
from typing import NamedTuple

from giaann_p2p.client.session import Session
from giaann_p2p.local.swarm import LocalSwarm
from tests.benchmarks.network.bare import Bare
from tests.benchmarks.network.figures import Figure
from tests.benchmarks.swarm.asked import Only, at_once, computing, everybody, in_turn
from tests.benchmarks.swarm.bound import answer, processor
from tests.benchmarks.swarm.group import Group
from tests.benchmarks.swarm.said import Said
from tests.benchmarks.swarm.solo import Solo
from tests.benchmarks.swarm.swarms import round_trip
from tests.benchmarks.swarm.texts import prompts
from tests.benchmarks.swarm.usage import Usage, between, taken, together
from tests.benchmarks.targets import Target

SINGLE, AT_ONCE = 4, 16
MOST = 40
"""Tokens of an answer."""
_LEAST = 10
_TIMES = 300
_IDLE = 3.0
_ONE_TRIP = Target(most=1)
_NONE_DIFFERS = Target(most=0)


class Asked(NamedTuple):
    """What came of prompts in all rounds."""

    said: Said
    rates: list[float]
    """Tokens a second in each round."""
    alone: Said
    ratios: list[float]
    """Of one machine's rate, in each round."""
    usage: Usage

    @property
    def differing(self) -> int:
        """Answers that are other than those of one machine."""
        return sum(ours != its for ours, its in zip(self.said.texts, self.alone.texts, strict=True))


class Round(NamedTuple):
    """What came of the same prompts, through the swarm and on one machine."""

    said: Said
    alone: Said
    usage: Usage


def drawn_from(solo: Solo) -> Iterator[str]:
    """Return prompts that have long answers, again from the start when there is none left."""
    return cycle(solo.answerable(prompts(), _LEAST, MOST))


async def prompted(
    visiting: Session,
    swarm: LocalSwarm,
    solo: Solo,
    drawn: Iterator[str],
    bare: Bare | None,
    rounds: int,
    where: str = "",
) -> list[Group]:
    """Ask prompts of the bundled text, which swarm and brain have learned.

    `drawn`: see `drawn_from`. `bare`: a stream to compare with, where there is one as far away.
    """
    trip, idle = await round_trip(visiting), await _idle(swarm)
    await at_once(visiting, everybody(visiting), [next(drawn) for _ in range(SINGLE)], MOST)
    found: dict[str, list[Round]] = {}
    for _ in range(rounds):
        for name, one in (await _round(visiting, swarm, solo, drawn)).items():
            found.setdefault(name, []).append(one)
    groups = []
    for name, of in found.items():
        asked = _together(of)
        figures = _figures(asked)
        if bare is not None and asked.said.trips:
            figures += await _beside(bare, asked.said)
        bound = f"{answer(asked.said, trip)}; {_processor(asked)}; {idle}"
        groups.append(Group(f"prompts{where}: {name}", figures, bound))
    return groups


async def many_cold(
    visiting: Session, swarm: LocalSwarm, drawn: Iterator[str], rounds: int
) -> tuple[Said, Usage]:
    """Ask many at once, as often, others each time; return all that came of it."""
    said, usages = Said(), list[Usage]()
    await at_once(visiting, everybody(visiting), [next(drawn) for _ in range(SINGLE)], MOST)
    for _ in range(rounds):
        some, before = [next(drawn) for _ in range(AT_ONCE)], taken(swarm)
        said.add(await at_once(visiting, everybody(visiting), some, MOST))
        usages.append(between(before, taken(swarm)))
    return said, together(usages)


def _figures(asked: Asked) -> list[Figure]:
    """Return what a user sees."""
    said, alone = asked.said, asked.alone
    return [
        Figure("through the swarm", median(asked.rates), "tokens/s"),
        Figure("one machine alone, in one process", alone.rate, "tokens/s"),
        Figure("the swarm, of one machine alone", median(asked.ratios), "x"),
        Figure("until the first token: p50", median(said.first) * 1e3, "ms"),
        Figure("the same, one machine alone", median(alone.first) * 1e3, "ms"),
        Figure("a token: p50", median(said.token_seconds) * 1e6, "µs"),
        Figure("a token: p99", _p99(said.token_seconds) * 1e6, "µs"),
        Figure("a token, one machine alone: p50", median(alone.token_seconds) * 1e6, "µs"),
        Figure("a token, one machine alone: p99", _p99(alone.token_seconds) * 1e6, "µs"),
        Figure("round trips, a token", said.trips, "reads", _ONE_TRIP),
        Figure("round trips, the most of any token", float(said.most_trips), "reads"),
        Figure("round trips, before the first token", fmean(_begun(said)), "reads"),
        Figure("rows at hand, of those wanted", said.at_hand * 100, "%"),
        Figure("answers unlike one machine's", float(asked.differing), "", _NONE_DIFFERS),
    ]


async def _idle(swarm: LocalSwarm) -> str:
    """Say what all processes take while nothing is asked: it is a part of what a token takes."""
    before = taken(swarm)
    await asyncio.sleep(_IDLE)
    took = between(before, taken(swarm)).whole / _IDLE
    return f"idle, all of them take {took * 1e3:.0f} ms of it a second"


async def _round(
    visiting: Session, swarm: LocalSwarm, solo: Solo, drawn: Iterator[str]
) -> dict[str, Round]:
    one, many = [next(drawn) for _ in range(SINGLE)], [next(drawn) for _ in range(AT_ONCE)]
    only, everyone = Only(computing(visiting)[0]), everybody(visiting)
    alone_one, alone_many = solo.ask(one, MOST), solo.ask(many, MOST, at_once=True)
    found: dict[str, Round] = {}
    cold, warm = Said(), Said()
    usages: dict[bool, list[Usage]] = {False: [], True: []}
    for prompt in one:
        for is_warm, into in ((False, cold), (True, warm)):
            before = taken(swarm)
            into.add(await in_turn(visiting, only, [prompt], MOST))
            usages[is_warm].append(between(before, taken(swarm)))
    found["one at a time, cold"] = Round(cold, alone_one, together(usages[False]))
    found["one at a time, warm"] = Round(warm, alone_one, together(usages[True]))
    for name in (f"{AT_ONCE} at once, cold", f"{AT_ONCE} at once, warm"):
        before = taken(swarm)
        said = await at_once(visiting, everyone, many, MOST)
        found[name] = Round(said, alone_many, between(before, taken(swarm)))
    return found


def _together(rounds: list[Round]) -> Asked:
    said, alone = Said(), Said()
    for one in rounds:
        said.add(one.said)
        alone.add(one.alone)
    return Asked(
        said,
        [one.said.rate for one in rounds],
        alone,
        [one.said.rate / one.alone.rate for one in rounds],
        together([one.usage for one in rounds]),
    )


async def _beside(bare: Bare, said: Said) -> list[Figure]:
    """Return the round trip of as many bytes as a read brings, over a bare stream."""
    trips = sum(one.trips for one in said.costs)
    size = max(1, sum(one.nbytes for one in said.costs) // max(1, trips))
    theirs = await bare.round_trips(bytes(size), _TIMES)
    ratio = median(said.token_seconds) / median(theirs)
    return [
        Figure(f"the bare round trip of {size:,} bytes: p50", median(theirs) * 1e6, "µs"),
        Figure("the bare round trip: p99", _p99(theirs) * 1e6, "µs"),
        Figure("a token: p50, of the bare round trip", ratio, "x"),
    ]


def _begun(said: Said) -> list[int]:
    return [one.trips for one in said.begun] or [0]


def _processor(asked: Asked) -> str:
    return processor(asked.usage, asked.said.tokens, asked.said.seconds, "token")


def _p99(seconds: list[float]) -> float:
    return quantiles(seconds, n=100)[98]
