"""`giaann reshard`: the founder raises numbers of a running swarm's rules, by a new edition."""

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.cli.link_option import Join, Json
from giaann_p2p.cli.token import GiversFolder
from giaann_p2p.errors import UsageError
from giaann_p2p.exit_codes import FAILED
from giaann_p2p.store.undisturbed import undisturbed
from giaann_p2p.swarm.wire.identity import name_of
from giaann_p2p.terminal import complain, progress_bar, say, say_json
from giaann_p2p.units import readable_bytes

if TYPE_CHECKING:
    from giaann_p2p.client.session import Session
    from giaann_p2p.node.members.membership import TokenIssuer
    from giaann_p2p.store.cuts import Cut
    from giaann_p2p.swarm.members.reshard_plan import ReshardPlan
    from giaann_p2p.swarm.wire.edition import Edition
    from giaann_p2p.swarm.wire.identity import Peer
    from giaann_p2p.swarm.wire.manifest import Rules

_SESSION = 3600
"""Seconds for which the token of the founder's session is valid."""
_MOST_NAMED = 4


Replicas = Annotated[
    int,
    typer.Option(
        "--replicas",
        metavar="N",
        min=0,
        help="Number of peers to own each shard.",
        show_default="as now",
    ),
]
Chunk = Annotated[
    int,
    typer.Option(
        "--chunk",
        metavar="SENTENCES",
        min=0,
        help="Sentences in a chunk of a text that is new to the swarm.",
        show_default="as now",
    ),
]
Shards = Annotated[
    int,
    typer.Option(
        "--shards",
        metavar="N",
        min=0,
        help="Number of shards: that of now, doubled once or twice.",
        show_default="as now",
    ),
]
CutNamed = Annotated[
    str,
    typer.Option(
        "--cut",
        metavar="WORD=PARTS,...",
        help="Columns to divide by the words they lead to, in chunks of the new size.",
        show_default="as now",
    ),
]
CutLike = Annotated[
    Path | None,
    typer.Option(
        "--cut-like",
        metavar="FILE",
        help="Choose these columns by a text like those that will be learned.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show what would change, and what would move.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def reshard(
    join: Join,
    data_dir: GiversFolder,
    replicas: Replicas = 0,
    chunk: Chunk = 0,
    shards: Shards = 0,
    cut: CutNamed = "",
    cut_like: CutLike = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Raise the number of replicas or shards, or the size of chunks, while the swarm runs.

    Only the founder can do this, and nobody can take it back. Further replicas are
    fetched by the peers that are to own them; each peer divides its shards by itself.
    Columns that are cut stay as they are, and only what is learned in chunks of the
    new size goes to their parts. A peer that is away learns of it when it returns. If
    nothing is new, the newest edition is sent to all peers again.
    """
    from giaann_p2p.node.members.membership import TokenIssuer

    if (cut or cut_like) and not chunk:
        raise UsageError("columns are cut only in chunks of a new size: give a larger --chunk, too")
    giver = TokenIssuer(data_dir)
    cuts = _cuts(giver, shards, cut, cut_like)
    run = _Reshard(giver, replicas, chunk, shards, cuts, as_json=as_json)
    try:
        asyncio.run(run.carry_out(join, dry_run=dry_run, asks=not yes))
    except KeyboardInterrupt:
        complain(run.progress)
        raise


class _Reshard:
    """One run of `giaann reshard`: its plan, and its report."""

    def __init__(
        self,
        giver: "TokenIssuer",
        replicas: int,
        chunk: int,
        shards: int,
        cuts: "tuple[Cut, ...]",
        *,
        as_json: bool,
    ) -> None:
        self._giver, self._as_json = giver, as_json
        self._wanted = replicas, chunk, shards, cuts
        self._is_signed = False  # whether the newest edition, new or not, is signed and saved

    @property
    def progress(self) -> str:
        """A sentence for an interrupted run: whether it has signed an edition."""
        if not self._is_signed:
            return "nothing was signed, and the swarm's rules are as before"
        return (
            f"edition {self._giver.editions.number} is signed, but some peers may not have been "
            "told; the same command sends it again"
        )

    async def carry_out(self, join: str, *, dry_run: bool, asks: bool) -> None:
        """Show the plan, ask, sign and send the edition; typer.Exit if no peer was reached."""
        from giaann_p2p.client.session import visit
        from giaann_p2p.swarm.wire.edition import rules_of
        from giaann_p2p.swarm.wire.link import Link

        async with visit(Link.read(join), shows=self._shows) as session:
            await session.join_dht()  # so that all peers hear of the edition
            self._giver.catch_up(session.gate)
            before = after = self._giver.editions.rules
            edition = self._giver.next_edition(*self._wanted)
            if edition is not None:
                after = rules_of(self._giver.manifest, edition)
            self._check(session, before, after)
            plan = _planned(session, after)
            for line in _shown(before, after, plan):
                self._say(line)
            heard = peers = 0
            if not dry_run:
                if edition is not None and asks:
                    await _ask()
                self._sign(edition)
                heard, peers = await self._send(session)
        if self._as_json:
            say_json(self._told(before, after, plan) | {"peers": peers, "told": heard})
        if not dry_run and not heard:
            raise typer.Exit(FAILED)

    def _sign(self, edition: "Edition | None") -> None:
        """Save the edition if it is new; from then on, it is one that the founder has signed."""
        with undisturbed():  # so that it is known after Ctrl-C whether this was done
            if edition is not None:
                self._giver.keep_next(edition)
            self._is_signed = True

    def _shows(self, session: "Peer") -> bytes:
        return self._giver.shown(session, int(time.time()) + _SESSION)

    def _check(self, session: "Session", before: "Rules", after: "Rules") -> None:
        there = session.overview().storing
        if after.replicas > max(there, before.replicas):
            raise UsageError(
                f"{after.replicas} replicas of a shard need as many storage peers, but "
                f"{there} are there: start {after.replicas - there} more first"
            )

    async def _send(self, session: "Session") -> tuple[int, int]:
        """Send the newest edition to all peers; return how many got it, and how many there are."""
        from giaann_p2p.client.revoking import spread
        from giaann_p2p.swarm.wire.member_messages import EditionIs

        edition = self._giver.editions.to_bytes()
        if not edition:
            raise UsageError(
                "nothing would change, and there is no edition yet that could be sent again; "
                "--replicas, --chunk, --shards and --cut say what to raise"
            )
        heard, peers = await spread(session, EditionIs(edition))
        number = self._giver.editions.number
        self._say(f"edition {number}: {heard} of {peers} peers were told")
        return heard, peers

    def _say(self, line: str) -> None:
        if not self._as_json:
            say(line)

    def _told(self, before: "Rules", after: "Rules", plan: "ReshardPlan") -> dict[str, object]:
        return {
            "edition": self._giver.editions.number,
            "replicas": {"before": before.replicas, "after": after.replicas},
            "quorum": {"before": before.quorum, "after": after.quorum},
            "chunk": {"before": before.chunk, "after": after.chunk},
            "shards": {"before": before.shards, "after": after.shards},
            "cut": {"before": _parts(before), "after": _parts(after)},
            "mean_shard": {"before": plan.before.mean, "after": plan.after.mean},
            "largest_shard": {"before": plan.before.largest, "after": plan.after.largest},
            "copied": plan.gained,
            "bytes": plan.nbytes,
            "full": {name_of(one.peer): round(one.share, 3) for one in plan.filled if one.stays},
            "full_meanwhile": {
                name_of(one.peer): round(one.peak, 3) for one in plan.filled if not one.stays
            },
        }


def _cuts(giver: "TokenIssuer", shards: int, named: str, text: Path | None) -> "tuple[Cut, ...]":
    """Return the columns to cut: those that are named, or that a text shows."""
    from giaann_p2p.store.cut_choice import named_cuts, of_nouns

    if text is None:
        return of_nouns(named_cuts(named), giver.manifest.spec)
    if named:
        raise UsageError("give --cut to name the columns, or --cut-like for a text, not both")
    return _chosen(giver, shards, text)


def _chosen(giver: "TokenIssuer", shards: int, text: Path) -> "tuple[Cut, ...]":
    """Return the columns to cut by a text; UsageError if there are none."""
    from giaann_p2p.solo.sample import MOST_CHUNKS, sampled
    from giaann_p2p.store.cut_choice import cuts_for

    rules = giver.editions.rules
    layout = rules.layout.with_shards(max(shards, rules.shards))
    with progress_bar(f"learning a part of {text}") as bar:
        sample = sampled(text, giver.manifest.spec, lambda done: bar.update(done / MOST_CHUNKS, ""))
    cuts = cuts_for(sample, layout, rules.columns.cuts)
    if not cuts:
        raise UsageError(f"by {text}, no column is large enough to be cut further")
    return cuts


def _parts(rules: "Rules") -> dict[str, int]:
    return {cut.word: cut.parts for cut in rules.columns.cuts}


def _planned(session: "Session", after: "Rules") -> "ReshardPlan":
    from giaann_p2p.swarm.members.exclusion import placed_by
    from giaann_p2p.swarm.members.reshard_plan import plan_of

    around, now = session.around, session.now
    members, named = around.members(now), around.named(now)
    then = placed_by(after, members, named)
    return plan_of(around.placement(now), then, session.overview())


def _shown(before: "Rules", after: "Rules", plan: "ReshardPlan") -> Iterator[str]:
    """Yield lines that say what would change and move."""
    if before.chunk != after.chunk:
        yield f"sentences in a chunk of a new text: {before.chunk:,} now, {after.chunk:,} then"
    if before.shards != after.shards:
        yield f"shards: {before.shards:,} now, {after.shards:,} then; peers divide those they hold"
        mean, largest = zip(plan.before, plan.after, strict=True)
        yield f"bytes of a shard, about: {_now_and_then(mean)}"
        yield f"bytes of a shard where they are largest, about: {_now_and_then(largest)}"
    if before.columns != after.columns:
        now, then = (_parts(rules) for rules in (before, after))
        yield f"columns that are cut by target: {len(now):,} now, {len(then):,} then"
        yield f"their parts: {sum(now.values()):,} now, {sum(then.values()):,} then"
    if before.replicas != after.replicas:
        yield f"replicas of each shard: {before.replicas} now, {after.replicas} then"
    if before.quorum != after.quorum:
        yield f"replicas that make an update count: {before.quorum} now, {after.quorum} then"
    if plan.gained:
        yield (
            f"peers would fetch {plan.gained:,} replicas of shards, about "
            f"{readable_bytes(plan.nbytes)} in memory; less on the wire"
        )
    if full := [f"{name_of(one.peer)} at {one.share:.0%}" for one in plan.filled if one.stays]:
        yield f"little room is left then: {_some(full)}"
    brief = [
        f"{name_of(one.peer)} at {one.peak:.0%}, {one.share:.0%} then"
        for one in plan.filled
        if not one.stays
    ]
    if brief:
        yield f"little room is left until other peers have what these hand over: {_some(brief)}"


def _some(peers: Sequence[str]) -> str:
    more = len(peers) - _MOST_NAMED
    return "; ".join(peers[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _now_and_then(sizes: tuple[int, int]) -> str:
    now, then = sizes
    return f"{readable_bytes(now)} now, {readable_bytes(then)} then"


async def _ask() -> None:
    """Ask whether to go on; typer.Abort if not, UsageError if there is nobody to ask.

    No thread reads the answer, because after Ctrl-C it would still wait for input, and the command
    would wait for the thread.
    """
    if not sys.stdin.isatty():
        raise UsageError("this cannot be taken back: give --yes to go on, or --dry-run to look")
    typer.echo("This cannot be taken back. Go on? [y/N]: ", nl=False, err=True)
    loop, is_typed = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin, is_typed.set)
    try:
        await is_typed.wait()
    finally:
        loop.remove_reader(sys.stdin)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise typer.Abort
