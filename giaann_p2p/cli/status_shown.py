"""Renders a swarm's health: tables and lines for people."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from giaann_p2p.cli.phrases import counted, names, some
from giaann_p2p.swarm.members.causes import cause_of
from giaann_p2p.swarm.members.commands import GENERAL, Commands
from giaann_p2p.swarm.members.figures import cut_said
from giaann_p2p.swarm.wire.identity import name_of
from giaann_p2p.terminal import harmless
from giaann_p2p.units import readable_bytes, span

if TYPE_CHECKING:
    from giaann_p2p.swarm.members.capacity import Filling
    from giaann_p2p.swarm.members.figures import Seen
    from giaann_p2p.swarm.members.overview import Overview

_STYLES = {
    "healthy": "green",
    "starting": "yellow",
    "degraded": "yellow",
    "full": "red",
    "lost": "red",
}


def overview_shown(swarm: str, found: "Overview", commands: Commands = GENERAL) -> RenderableType:
    """Return a table of the peers, and the verdict with advice that names these `commands`."""
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for column, justify in _COLUMNS:
        table.add_column(column, justify=justify, no_wrap=True)
    for one in found.peers:
        state = "silent" if one.peer in found.silent else one.state
        table.add_row(*map(harmless, _row(one, state)))
    style = "yellow" if found.filling and found.verdict == "healthy" else _STYLES[found.verdict]
    return Group(table, Text(), Text(_verdict(swarm, found, commands), style=style))


_COLUMNS: tuple[tuple[str, JustifyMethod], ...] = (
    ("peer", "left"),
    ("role", "left"),
    ("state", "left"),
    ("ready", "right"),
    ("syncing", "right"),
    ("owns", "right"),
    ("used", "right"),
    ("of", "right"),
    ("reads/s", "right"),
    ("writes/s", "right"),
)


def _row(one: "Seen", state: str) -> Iterator[str]:
    yield from (name_of(one.peer), one.role, state)
    if one.role == "compute":
        yield from (f"{one.slots} slots", one.device, "", "", "", "", "")
        return
    yield from map(str, (one.ready, one.syncing, one.owns))
    yield from map(readable_bytes, (one.used, one.capacity))
    yield from map(str, (one.load.reads, one.load.writes))


def _verdict(swarm: str, found: "Overview", commands: Commands) -> str:
    cause = cause_of(found)
    words = cause.words(found) if cause else ""
    advice = cause.advice(found, commands) if cause else ""
    said = f"{swarm}: {found.verdict}{': ' if words else ''}{words}. "
    said += "; ".join(_figures(found))
    return f"{said}. {advice}" if advice else said


def _figures(found: "Overview") -> Iterator[str]:
    health = found.health
    yield counted(found.storing, "storage peer")
    by = f" by edition {found.edition}" if found.edition else ""
    yield f"{found.shards} shards, {counted(found.replicas, 'replica')} of each wanted{by}, " + (
        f"{health.least} or more ready"
    )
    if cut := cut_said(found.cut):
        yield cut
    if found.verdict != "starting":
        if health.lost:
            yield f"served by nobody: {counted(health.lost, 'shard')}"
        if health.under:
            yield f"lacking replicas: {counted(health.under, 'shard')}"
        if health.unsettled:
            yield f"being copied: {counted(health.unsettled, 'replica')}"
    computing = [one.load for one in found.peers if one.role == "compute"]
    if sentences := sum(load.writes for load in computing):
        yield f"compute peers learn {sentences:,} sentences/s at work"
    if tokens := sum(load.growth for load in computing):
        yield f"they answer with {tokens:,} tokens/s at work"
    if found.silent:
        yield f"no answer from {names(found.silent)}"
    for peer, shards in sorted(found.excluded.items()):
        many, which = counted(len(shards), "shard"), some(map(str, shards), len(shards))
        yield f"{name_of(peer)} differs from the other owners in {many}: {which}"
    if found.gone:
        yield f"vanished and may come back: {names(found.gone)}"
    if found.full and found.verdict != "full":
        yield f"full: {names(found.full)}"
    if found.filling:
        yield _nearly_full(found.filling)


def _nearly_full(filling: "Sequence[Filling]") -> str:
    shares = (f"{name_of(one.peer)} at {one.share:.0%}" for one in filling)
    said = f"nearly full: {some(shares, len(filling))}"
    soonest = min((one.seconds for one in filling if one.seconds is not None), default=None)
    return said if soonest is None else f"{said}, full in {span(soonest)} at the present rate"
