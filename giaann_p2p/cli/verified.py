"""`--verify`, and who was found to lie: for every command that reads rows itself."""

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from giaann_p2p.terminal import complain

if TYPE_CHECKING:
    from giaann_p2p.client.lies import Lie, Told
    from giaann_p2p.client.visit import Visit

Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Have a majority of its owners tell each row before it is used, instead of comparing "
        "2 of 100 beside; what is to be computed is computed here.",
    ),
]
_SOON, _SURE = 1.0, 20.0
"""Seconds in which honest peers agree, and in which it is known who lies: see `swarm.disputes`."""


def share_of(verify: bool) -> float:
    """Return the share of the rows that are compared."""
    from giaann_p2p.swarm.verifying import USUAL

    return 1.0 if verify else USUAL


async def settled(visiting: "Visit") -> None:
    """Wait until it is known who of those that were read from lies, if they differ."""
    if not await visiting.reading.settled(_SOON):
        complain(
            "storage peers differ about rows that were read; it takes a quarter of a minute to "
            "find out who is wrong, Ctrl-C does without"
        )
        await visiting.reading.settled(_SURE)


def complain_of(visiting: "Visit", known: int = 0, at_last: bool = True) -> int:
    """Tell who was found to lie, but for the first so many lies; return how many there are.

    `at_last`: and what could not be settled.
    """
    lies = visiting.lies
    lines = list(lie_lines(lies[known:]))
    if at_last:
        lines += undecided_lines(visiting.reading.in_dispute)
    for line in lines:
        complain(line)
    if lines:
        complain(
            "what was used was told by a majority of its owners"
            if visiting.verify.all
            else "what is shown may rest on wrong rows; --verify uses none that a majority of "
            "its owners does not tell"
        )
    return len(lies)


def lies_json(visiting: "Visit") -> dict[str, Any]:
    """Return who was found to lie, and how much could not be settled."""
    import msgspec

    return {"lies": msgspec.to_builtins(visiting.lies), "undecided": visiting.reading.in_dispute}


def lie_lines(lies: "list[Lie]") -> Iterator[str]:
    """Tell of each peer once."""
    for peer, found in groupby(sorted(lies, key=lambda lie: lie.peer), lambda lie: lie.peer):
        first, *more = found
        what = "less than most other owners know" if first.behind else "wrong rows"
        word = first.concept if first.feature is None else f"{first.concept}/{first.feature}"
        others = f", and {len(more)} more" if more else ""
        yield (
            f"peer {peer} told {what}: of {word} in shard {first.shard} {_said(first.told)}, where "
            f"the others say {_said(first.true)}{others}; it is asked no more"
        )


def _said(told: "Told | None") -> str:
    if told is None:
        return "nothing"
    times = "once" if told.occurrences == 1 else f"{told.occurrences:,} times"
    many = "1 connection" if told.connections == 1 else f"{told.connections:,} connections"
    return f"that it occurred {times} and has {many}"


def undecided_lines(count: int) -> list[str]:
    """Tell of what could not be settled."""
    if not count:
        return []
    times = "once" if count == 1 else f"{count} times"
    return [
        f"storage peers told rows differently {times}, and it is not known who is wrong; "
        "`giaann fsck` compares all replicas"
    ]
