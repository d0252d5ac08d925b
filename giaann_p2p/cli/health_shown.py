"""A swarm's health, as people and programs read it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from giaann_p2p.swarm.identity import Peer, name_of, to_text
from giaann_p2p.terminal import harmless
from giaann_p2p.units import readable_bytes

if TYPE_CHECKING:
    from giaann_p2p.swarm.checkup import Report
    from giaann_p2p.swarm.overview import Overview, Seen

_STYLES = {"healthy": "green", "degraded": "yellow", "lost": "red"}
_MOST_NAMED = 8


def overview_shown(swarm: str, found: "Overview") -> RenderableType:
    """Return a table of the peers, and a verdict below it."""
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for column, justify in _COLUMNS:
        table.add_column(column, justify=justify, no_wrap=True)
    for one in found.peers:
        state = "silent" if one.peer in found.silent else one.state
        table.add_row(*map(harmless, _row(one, state)))
    return Group(table, Text(), Text(_verdict(swarm, found), style=_STYLES[found.verdict]))


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


def _verdict(swarm: str, found: "Overview") -> str:
    health = found.health
    there = [one for one in found.peers if one.peer not in found.silent]
    storing = sum(one.role == "storage" for one in there)
    said = f"{swarm}: {found.verdict}. {_many(storing, 'storage peer')}; {found.shards} shards, "
    said += f"{_many(found.replicas, 'replica')} of each wanted, {health.least} or more ready"
    if health.lost:
        said += f"; served by nobody: {_many(health.lost, 'shard')}"
    if health.under:
        said += f"; lacking replicas: {_many(health.under, 'shard')}"
    if health.unsettled:
        said += f"; on their way: {_many(health.unsettled, 'replica')}"
    if found.silent:
        said += f"; no answer from {_names(found.silent)}"
    for peer, shards in sorted(found.barred.items()):
        many, which = _many(len(shards), "shard"), _some(map(str, shards), len(shards))
        said += f"; {name_of(peer)} holds something else than others of {many}: {which}"
    if found.gone:
        said += f"; went without leave and may come back: {_names(found.gone)}"
    if storing < found.replicas:
        more = found.replicas - storing
        said += f". Start {_many(more, 'more storage peer')}: giaann storage --join LINK"
    return said


def overview_json(found: "Overview") -> dict[str, Any]:
    """Return the same for programs."""
    return {"verdict": found.verdict, **_plain(found)}


def report_lines(report: "Report", expected: str) -> Iterator[str]:
    """Return what replicas come to, what is wrong with them, and whether that is as expected."""
    yield f"{report.shards} shards, {report.rows:,} rows, {report.connections:,} connections"
    for shards, what in (
        (report.lost, "served by nobody"),
        (report.apart, "with replicas that have learned different chunks, or not all yet"),
        (report.under, "with too few replicas"),
    ):
        if shards:
            yield f"{_many(len(shards), 'shard')} {what}: {_some(map(str, shards), len(shards))}"
    for one in report.damaged:
        yield f"shard {one.shard} differs, though it learned the same, at {_names(one.peers)}"
    if report.silent:
        yield f"no answer from {_names(report.silent)}"
    if report.digest:
        yield f"digest {report.digest}"
    if expected:
        yield f"solo   {expected}"
        yield "the swarm holds the same" if report.digest == expected else "that is not the same"
    if report.agrees:
        yield "every shard is served, and all that serve one hold the same"


def report_json(report: "Report") -> dict[str, Any]:
    """Return the same for programs."""
    return {"agrees": report.agrees, **_plain(report)}


def _plain(value: msgspec.Struct) -> dict[str, Any]:
    """Return a struct as what JSON knows, with peers by their full names."""
    return {name: _named(one) for name, one in msgspec.structs.asdict(value).items()}


def _named(value: object) -> object:
    if isinstance(value, bytes):
        return to_text(value)
    if isinstance(value, msgspec.Struct):
        return _plain(value)
    if isinstance(value, dict):
        return {to_text(peer): shards for peer, shards in value.items()}
    if isinstance(value, list | tuple):
        return [_named(one) for one in value]
    return value


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _names(peers: Sequence[Peer]) -> str:
    return _some(map(name_of, peers), len(peers))


def _some(names: Iterable[str], count: int) -> str:
    shown = [name for name, _ in zip(names, range(_MOST_NAMED), strict=False)]
    return ", ".join(shown) + (", ..." if count > _MOST_NAMED else "")
