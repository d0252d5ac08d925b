"""What bounds a figure, in one line, from what was measured beside it."""

import os

from tests.benchmarks.swarm.said import Said
from tests.benchmarks.swarm.usage import Usage

_MICRO = 1e-6
_SMALL = 0.02
"""A part of the whole below which a kind of process is not named."""
CORES = len(os.sched_getaffinity(0))


def processor(usage: Usage, count: int, seconds: float, what: str, cores: int = CORES) -> str:
    """Say what some things took of the processors, and how many a second that allows."""
    whole = usage.whole
    kinds = sorted(usage.seconds.items(), key=lambda one: -one[1])
    parts = ", ".join(
        f"{kind} {_ms(taken / count)}" for kind, taken in kinds if taken >= _SMALL * whole
    )
    return (
        f"processor time {_ms(whole / count)} a {what} ({parts}): {cores} cores allow"
        f" {cores * count / whole:,.0f} {what}s/s, of which {count / seconds:,.0f} came;"
        f" busy for {whole / (cores * seconds):.0%} of the time; waiting for a core"
        f" {_ms(usage.queued / count)}"
    )


def answer(said: Said, round_trip: float) -> str:
    """Say how an answer's time is made up, on average; a round trip in seconds."""
    count = len(said.answers)
    whole = sum(said.answers) / count
    taking_in = sum(one.micros for one in said.begun) * _MICRO / count
    finding = sum(one.micros for one in said.costs) * _MICRO / count
    waited = sum(one.waited for one in said.costs) * _MICRO / count
    return (
        f"an answer of {said.tokens / count:.0f} tokens takes {_ms(whole)}: {_ms(taking_in)} to"
        f" take the prompt in, {_ms(finding)} to find its tokens, of these {_ms(waited)} waiting"
        f" for rows ({said.trips:.2f} round trips a token, of {_ms(round_trip)} each),"
        f" {_ms(max(0.0, whole - taking_in - finding))} between who asks and who answers"
    )


def _ms(seconds: float) -> str:
    number = seconds * 1e3
    return f"{number:,.0f} ms" if number >= 100 else f"{number:.3g} ms"
