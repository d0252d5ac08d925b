"""What bounds a figure, in one line, from what was measured beside it."""

import os

from tests.benchmarks.swarm.usage import Usage

_SMALL = 0.02
"""A part of the whole below which a kind of process is not named."""
CORES = len(os.sched_getaffinity(0))


def processor(usage: Usage, count: int, seconds: float, what: str, cores: int = CORES) -> str:
    """Say what some things took of the processors, and how many a second that allows."""
    whole = sum(usage.values())
    kinds = sorted(usage.items(), key=lambda one: -one[1])
    parts = ", ".join(
        f"{kind} {_ms(taken / count)}" for kind, taken in kinds if taken >= _SMALL * whole
    )
    return (
        f"processor time {_ms(whole / count)} a {what} ({parts}): {cores} cores allow"
        f" {cores * count / whole:,.0f} {what}s/s, of which {count / seconds:,.0f} came;"
        f" busy for {whole / (cores * seconds):.0%} of the time"
    )


def waiting(micros: float, waited: float, trips: float, round_trip: float) -> str:
    """Say how a token's time is made up, at the peer that found it; all by token, on average."""
    return (
        f"a token takes {_ms(micros / 1e6)} at its peer: {_ms(waited / 1e6)} waiting for rows"
        f" ({trips:.2f} round trips of {_ms(round_trip)} make {_ms(trips * round_trip)}),"
        f" {_ms((micros - waited) / 1e6)} the rest"
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
