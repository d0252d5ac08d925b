"""Diagnosis of a swarm: its possible problems, each with an explanation and advice for users.

`CAUSES` lists all problems, the gravest first. To add a problem, add an entry.

If a shard is served by nobody, the swarm is either starting or has lost data, and the records of
live peers alone do not show which. It counts as starting unless there is a sign that some peer,
which may be silent or gone by now, has served a shard. If no storage peer is left at all, that sign
is in the records of compute peers, which remember when one last served a shard (`LastServed`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from giaann_p2p.swarm.members.commands import Commands
from giaann_p2p.swarm.wire.identity import name_of

if TYPE_CHECKING:  # so that the command line does not load torch
    from giaann_p2p.swarm.members.figures import Figures

Verdict = Literal["starting", "lost", "full", "degraded", "healthy"]
_MOST_NAMED = 8


class Cause(NamedTuple):
    """A possible problem of a swarm.

    `holds` detects the problem, `words` explains it, and `advice` says what to do. Either text is
    empty where the figures say enough.
    """

    verdict: Verdict
    holds: Callable[["Figures"], bool]
    words: Callable[["Figures"], str]
    advice: Callable[["Figures", Commands], str]


def verdict(found: "Figures") -> Verdict:
    """Return the state of a swarm in one word, for example `healthy`."""
    cause = cause_of(found)
    return "healthy" if cause is None else cause.verdict


def cause_of(found: "Figures") -> Cause | None:
    """Return the gravest problem that a swarm has; None if it is healthy."""
    return next((cause for cause in CAUSES if cause.holds(found)), None)


def _is_starting(found: "Figures") -> bool:
    """Return whether some shards are unserved, and nothing shows that any of them was ever served.

    Either no storage peer serves anything yet, or all these shards are being fetched: their owners
    serve them a few seconds after their start, but not all at the same time.
    """
    was_served = any(one.ready for one in found.peers if one.peer in found.silent)
    if not found.health.lost or found.gone or found.losses or found.cold or was_served:
        return False
    return found.health.lost in (found.shards, found.fetched)


def _starting(found: "Figures") -> str:
    if not found.storing:
        return "no storage peer yet"
    return f"{_many(found.storing, 'storage peer')} getting ready, which may take half a minute"


def _lost(found: "Figures") -> str:
    """Return a phrase about lost content; the number of unserved shards is shown elsewhere."""
    return found.losses.words(found.now)


def _come_back(found: "Figures", commands: Commands) -> str:
    if found.cold:
        return (
            f"Cold copies of {_many(found.cold, 'shard')} are on the disks of live peers, which"
            " load them within a minute or two; there is nothing to do"
        )
    if found.losses:
        return (
            f"Restart the peers that had these shards, {commands.again}; giaann fsck lists the"
            " shards"
        )
    if found.gone or any(one.role == "storage" for one in found.peers if one.peer in found.silent):
        return f"Restart the peers that served these shards, {commands.again}"
    return _more_peers(found, commands)


def _full(found: "Figures") -> str:
    names = ", ".join(map(name_of, found.full[:_MOST_NAMED]))
    more = ", ..." if len(found.full) > _MOST_NAMED else ""
    return f"no room for updates of {_many(found.closed, 'shard')}; full peers: {names}{more}"


def _more_peers(found: "Figures", commands: Commands) -> str:
    lacking = found.replicas - found.storing
    if lacking <= 0:
        return ""
    more = _many(lacking, "more storage peer")
    return f"Start {more}: {commands.add('storage', lacking)}"


def _more_room(_: "Figures", commands: Commands) -> str:
    return f"Start more storage peers: {commands.add('storage')}; or {commands.larger}"


def _nothing(_: "Figures") -> str:
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
