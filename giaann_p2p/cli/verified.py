"""The option `--verify` and the report on liars, for all commands that read rows themselves."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from giaann_p2p.terminal import complain

if TYPE_CHECKING:
    from giaann_p2p.client.lies import Lie, ToldRow
    from giaann_p2p.client.session import Session

Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Use only rows that a majority of their owners confirm, instead of comparing 2 of 100 "
        "afterwards; answers are computed on this machine.",
    ),
]
_SOON, _SURE = 1.0, 20.0
"""Seconds within which honest peers usually agree, and within which liars are found (see
`swarm.reading.disputes`)."""


def share_of(verify: bool) -> float:
    """Return the share of the rows to compare between peers: all for --verify, else the default."""
    from giaann_p2p.swarm.reading.row_vote import USUAL

    return 1.0 if verify else USUAL


async def settled(visiting: "Session") -> None:
    """If owners returned different rows, wait until it is decided which rows are wrong."""
    if not await visiting.reading.settled(_SOON):
        complain(
            "storage peers returned different rows; it takes up to 20 seconds to find out which "
            "are wrong; Ctrl-C skips that"
        )
        await visiting.reading.settled(_SURE)


def complain_of(visiting: "Session", known: int = 0, at_last: bool = True) -> int:
    """Print the lies found, except the first `known`, which were printed before; return the total.

    With `at_last`, also report the disputes that could not be decided.
    """
    lies = visiting.lies
    lines = list(lie_lines(lies[known:]))
    if at_last:
        lines += undecided_lines(visiting.reading.in_dispute)
    complain_lines(lines, voted=bool(lines) and visiting.verify.all)
    return len(lies)


def complain_lines(lines: Iterable[str], *, voted: bool) -> None:
    """Print lines about lies and disputes, and what they mean for the result, if there are any."""
    found = list(lines)
    for line in found:
        complain(line)
    if found:
        complain(
            "every row that was used was confirmed by a majority of its owners"
            if voted
            else "what is shown may rest on wrong rows; --verify uses only rows that a majority of "
            "their owners confirm"
        )


def lies_json(visiting: "Session") -> dict[str, Any]:
    """Return the lies found and the number of undecided disputes as plain values, for JSON."""
    import msgspec

    return {"lies": msgspec.to_builtins(visiting.lies), "undecided": visiting.reading.in_dispute}


def lie_lines(lies: "list[Lie]") -> Iterator[str]:
    """Yield a line for each peer that returned wrong rows."""
    for peer, found in groupby(sorted(lies, key=lambda lie: lie.peer), lambda lie: lie.peer):
        first, *more = found
        what = "less than most other owners know" if first.behind else "wrong rows"
        word = first.concept if first.feature is None else f"{first.concept}/{first.feature}"
        others = f" (and {len(more)} more)" if more else ""
        yield (
            f"peer {peer} returned {what}: {_said(first.told)} for {word} in shard {first.shard}, "
            f"where the other owners returned {_said(first.true)}{others}; it is not asked any more"
        )


def _said(told: "ToldRow | None") -> str:
    if told is None:
        return "no row"
    times = "1 occurrence" if told.occurrences == 1 else f"{told.occurrences:,} occurrences"
    many = "1 connection" if told.connections == 1 else f"{told.connections:,} connections"
    return f"{times} and {many}"


def undecided_lines(count: int) -> list[str]:
    """Return a line about the disputes that could not be decided; none if there are none."""
    if not count:
        return []
    times = "once" if count == 1 else f"{count} times"
    return [
        f"storage peers returned different rows {times}, and it is not known which are wrong; "
        "`giaann fsck` compares all replicas"
    ]
