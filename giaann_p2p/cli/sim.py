"""`giaann sim`: runs a simulated swarm through random faults, and checks what it promises."""

import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.cli import present
from giaann_p2p.cli.manner import Profile
from giaann_p2p.exit_codes import FAILED, INTERRUPTED
from giaann_p2p.terminal import complain, progress_bar, readable, say, say_json
from giaann_p2p.units import whole_number

if TYPE_CHECKING:
    from giaann_p2p.sim.seeds import Played, Size

_MOST_SEED = (1 << 63) - 1
_MOST_SEEDS = 1_000_000
_NEWCOMERS_MINUTES = 2
"""Minimum duration of faults for --newcomers, in minutes."""

Seeds = Annotated[
    str | None,
    typer.Option(metavar="A-B", help="Histories to simulate: 0-299 or 3,7,10-19. \\[default: 0-9]"),
]
Seed = Annotated[int | None, typer.Option(min=0, max=_MOST_SEED, help="Simulate a single history.")]
Script = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Play a script instead; see docs/simulator.md.")
]
Computes = Annotated[
    int,
    typer.Option(min=1, max=100, help="Compute peers; an additional client leases chunks to them."),
]
Hostile = Annotated[
    int, typer.Option(min=0, max=90, help="Additional peers, which lie, forge and flood.")
]
Newcomers = Annotated[
    bool,
    typer.Option(
        "--newcomers", help="Large storage peers join at once, take all shards, and vanish."
    ),
]
Reshard = Annotated[
    bool, typer.Option("--reshard", help="The founder adds replicas and doubles shards, twice.")
]
Cut = Annotated[
    int,
    typer.Option(
        "--cut", metavar="PARTS", min=0, max=64, help="Parts of the largest columns; 0: whole."
    ),
]


def _seeds(text: str) -> list[int]:
    """Parse the value of --seeds: 7, 0-99, or several of these separated by commas."""
    found: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        ends = [low.strip(), high.strip() if "-" in part else low.strip()]
        if not all(end.isascii() and end.isdecimal() for end in ends):
            raise typer.BadParameter(
                f"{part!r} is neither a seed nor a range of them, such as 0-99"
            )
        first, last = (whole_number(end, _MOST_SEED) for end in ends)
        if first is not None and last is not None and first > last:
            raise typer.BadParameter(f"{part!r} ends before it begins; write {last}-{first}")
        if first is None or last is None or len(found) + last - first >= _MOST_SEEDS:
            raise typer.BadParameter(
                f"{part[:80]!r} is out of range: seeds are below 2^63, at most a million per run"
            )
        found += range(first, last + 1)
    return found


def sim(
    seeds: Seeds = None,
    seed: Seed = None,
    script: Script = None,
    storages: Annotated[
        int, typer.Option(min=3, max=200, help="Storage peers at the beginning.")
    ] = 8,
    clients: Annotated[int, typer.Option(min=1, max=100, help="Clients that push and read.")] = 1,
    computes: Computes = 2,
    minutes: Annotated[
        float, typer.Option(min=0, max=10_000, help="Number of minutes for which faults occur.")
    ] = 7.0,
    chunks: Annotated[
        int, typer.Option(min=1, max=1000, help="How many chunks each client pushes.")
    ] = 25,
    hostile: Hostile = 0,
    newcomers: Newcomers = False,
    reshard: Reshard = False,
    cut: Cut = 0,
    profile: Annotated[Profile, typer.Option(help="What the swarm learns.")] = Profile.WORDS,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0: one per core.")] = 0,
    trace: Annotated[bool, typer.Option("--trace", help="Print every event, a line each.")] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Continue after a history that failed.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")] = False,
) -> None:
    """Simulate a swarm with many faults in memory, and check that it keeps its promises.

    A seed determines one history of crashes, torn disks, cut links, lost messages
    and peers that come and go. Then all faults end, and everything must be there.
    With --newcomers peers join, take over, and vanish with their disks: nothing may be lost.
    With --hostile some peers lie: no false statement of theirs may be believed.
    With --reshard all shards divide twice, and must have as many replicas as the edition says.
    """
    from giaann_p2p.sim.seeds import Size

    if script is not None:
        _script(script, seeds, seed)
        return
    wanted = _wanted(seeds, seed)
    if newcomers and hostile:
        raise typer.BadParameter(
            "--newcomers and --hostile are different histories: give one of them"
        )
    if newcomers and minutes < _NEWCOMERS_MINUTES:
        raise typer.BadParameter("newcomers join in the second minute: give --minutes 2 or more")
    if cut & (cut - 1) or cut == 1:
        raise typer.BadParameter("--cut must be a power of two, such as 4")
    if math.isnan(minutes):
        raise typer.BadParameter("--minutes must be a number")
    if trace and len(wanted) > 1:
        raise typer.BadParameter("--trace is for a single history: name it with --seed")
    size = Size(
        storages, clients, computes, minutes, chunks, hostile, newcomers, profile, reshard, cut
    )
    _run(wanted, size, workers or os.cpu_count() or 1, trace, keep_going, json_output)


def _run(
    wanted: list[int], size: "Size", workers: int, trace: bool, keep_going: bool, json_output: bool
) -> None:
    """Simulate histories and print the results; typer.Exit if one fails."""
    from giaann_p2p.sim.seeds import Played, play, summary

    begun, played, failed, interrupted = time.perf_counter(), list[Played](), 0, False
    with progress_bar("simulating") as bar:
        try:
            for one in play(wanted, size, workers, everything=trace):
                played.append(one)
                failed += bool(one.outcome.problems)
                passed = len(played) - failed
                bar.update(len(played) / len(wanted), f"{passed:,} passed, {failed:,} failed")
                if failed and not keep_going:
                    break
        except KeyboardInterrupt:  # still report the histories that ended before Ctrl-C
            interrupted = True
    total = summary(played, size, time.perf_counter() - begun)
    if json_output:
        say_json(present.summary_json(total, played, trace))
    else:
        _show(played, size, trace)
        say(present.summary_lines(total))
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if failed:
        if left := len(wanted) - len(played):
            complain(f"{left:,} more were not run; --keep-going continues after a failed seed")
        raise typer.Exit(FAILED)


def _show(played: "list[Played]", size: "Size", trace: bool) -> None:
    for one in played:
        if trace:
            say("\n".join(one.outcome.trace))
        if one.outcome.problems:
            replay = present.replay_command(one.outcome.seed, size)
            say(present.failed_lines(one.outcome, replay))


def _wanted(seeds: str | None, seed: int | None) -> list[int]:
    if seeds is not None and seed is not None:
        raise typer.BadParameter("give --seed or --seeds, not both")
    if seed is not None:
        return [seed]
    return _seeds("0-9" if seeds is None else seeds)


def _script(file: Path, seeds: str | None, seed: int | None) -> None:
    """Play a script and print its outcome; typer.Exit if the script expects a different one."""
    from giaann_p2p import TextError
    from giaann_p2p.sim.scenario import expects, play

    if seeds is not None:
        raise typer.BadParameter("a script is played once: give it a --seed, not --seeds")
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise TextError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TextError(f"{file} is not a UTF-8 text") from None
    found = play(text, seed or 0, str(file))
    say(found, end="")
    if expects(text) and found.splitlines() != text.splitlines():
        complain(f"the outcome is not what {readable(str(file))} expects")
        raise typer.Exit(FAILED)
