"""Diagnosis: what may be wrong with a swarm, with words and advice for its users.

`CAUSES` lists all causes, the gravest first; a new cause is a new entry. Announcements of live
peers cannot prove that a swarm ever held more than now. So `starting` and `lost` are distinguished
by whether any peer, silent or gone, is known to have served a shard.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from giaann_p2p.swarm.members.commands import Commands
from giaann_p2p.swarm.wire.identity import name_of

if TYPE_CHECKING:
    from giaann_p2p.swarm.members.overview import Overview

Verdict = Literal["starting", "lost", "full", "degraded", "healthy"]
_MOST_NAMED = 8


class Cause(NamedTuple):
    """One possible problem; words and advice are empty where the figures say enough."""

    verdict: Verdict
    holds: Callable[["Overview"], bool]
    words: Callable[["Overview"], str]
    advice: Callable[["Overview", Commands], str]


def verdict(found: "Overview") -> Verdict:
    """Return the state of a swarm, in one word."""
    cause = cause_of(found)
    return "healthy" if cause is None else cause.verdict


def cause_of(found: "Overview") -> Cause | None:
    """Return the gravest cause that applies; None if the swarm is healthy."""
    return next((cause for cause in CAUSES if cause.holds(found)), None)


def _is_starting(found: "Overview") -> bool:
    """Return whether no shard is served, and no peer is known to have ever served one."""
    has_served = found.gone or found.losses or found.cold or any(one.ready for one in found.peers)
    return found.health.lost == found.shards and not has_served


def _starting(found: "Overview") -> str:
    if not found.storing:
        return "no storage peer yet"
    return f"{_many(found.storing, 'storage peer')} getting ready, which may take half a minute"


def _lost(found: "Overview") -> str:
    """Return what was lost; the figures already show how many shards no peer serves."""
    return found.losses.words(found.now)


def _come_back(found: "Overview", commands: Commands) -> str:
    if found.cold:
        return (
            f"Cold copies of {_many(found.cold, 'shard')} are on the disks of peers that are there;"
            " they come back by themselves within a minute or two"
        )
    if found.losses:
        return (
            f"Start the peers again that had them, {commands.again}; giaann fsck tells which"
            " shards these are"
        )
    return _more_peers(found, commands)


def _full(found: "Overview") -> str:
    names = ", ".join(map(name_of, found.full[:_MOST_NAMED]))
    more = ", ..." if len(found.full) > _MOST_NAMED else ""
    return f"no room for anything new in {_many(found.closed, 'shard')}; full: {names}{more}"


def _more_peers(found: "Overview", commands: Commands) -> str:
    lacking = found.replicas - found.storing
    if lacking <= 0:
        return ""
    more = _many(lacking, "more storage peer")
    return f"Start {more}: {commands.add('storage', lacking)}"


def _more_room(_: "Overview", commands: Commands) -> str:
    return f"Start more storage peers: {commands.add('storage')}; or {commands.larger}"


def _nothing(_: "Overview") -> str:
    return ""


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


CAUSES = (
    Cause("starting", _is_starting, _starting, _more_peers),
    Cause("lost", lambda found: found.health.lost > 0 or bool(found.losses), _lost, _come_back),
    Cause("full", lambda found: found.closed > 0, _full, _more_room),
    Cause(
        "degraded",
        lambda found: bool(found.health.under or found.health.unsettled or found.full),
        _nothing,
        _more_peers,
    ),
)
