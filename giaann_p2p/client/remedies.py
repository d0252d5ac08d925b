"""Messages to users that explain why training is stalled, and what to do about it."""

from collections.abc import Sequence

from giaann_p2p.client.trained import TrainReport
from giaann_p2p.swarm.members.commands import Commands
from giaann_p2p.swarm.wire.identity import Peer, name_of

_MOST_NAMED = 8
"""Maximum number of peers named in a message."""


def sent_away(report: TrainReport) -> str:
    """Return the beginning of a message that names distrusted compute peers; empty without any.

    Users see these peers alive, so the message has to explain why they get no more chunks.
    """
    if not (names := sorted(report.liars | report.unbrought.keys())):
        return ""
    return f"{', '.join(names)} gave false results or reports, and get no more work; besides them, "


def no_workers(redundancy: int, commands: Commands) -> str:
    """Return the message that there are too few compute peers, with advice."""
    add, where = commands.add("compute"), commands.where
    if redundancy > 1:
        return (
            f"fewer than {redundancy} compute peers are in the swarm, but {redundancy} have to"
            f" agree on each chunk; start more{where} with `{add}`"
        )
    return f"no compute peer is in the swarm; start one{where} with `{add}`"


def no_room(full: Sequence[Peer], commands: Commands) -> str:
    """Return the message that storage peers are full, with advice."""
    return (
        f"the swarm is full: there is no room left at {_named(full)}; start more storage peers with"
        f" `{commands.add('storage')}`, or {commands.larger}"
    )


def no_keepers(awaited: Sequence[Peer], commands: Commands) -> str:
    """Return the message that updates wait for keepers that have gone, with advice."""
    return (
        "an update counts only when a storage peer of long standing has it, but some shards are"
        " held by newcomers only; start these peers again,"
        f" {commands.again}: {_named(awaited)}. If they cannot come back,"
        " the founder can give standing to newcomers: `giaann token issue"
        " --data-dir FOLDER --standing NAME`"
    )


def _named(peers: Sequence[Peer]) -> str:
    return ", ".join(map(name_of, peers[:_MOST_NAMED])) + (", ..." if peers[_MOST_NAMED:] else "")
