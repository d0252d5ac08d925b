"""Messages that explain why training is stalled, and what to do about it."""

from collections.abc import Sequence

from giaann_p2p.client.trained import TrainReport
from giaann_p2p.swarm.members.commands import Commands
from giaann_p2p.swarm.wire.identity import Peer, name_of

_MOST_NAMED = 8


def sent_away(report: TrainReport) -> str:
    """Return a sentence that names the distrusted compute peers; empty if there are none.

    The sentence explains why live peers get no more chunks.
    """
    if not (names := sorted(report.liars | report.unbrought.keys())):
        return ""
    return f"{', '.join(names)} did not do as they said, and learn nothing more; of others, "


def no_workers(redundancy: int, commands: Commands) -> str:
    """Return the advice for too few compute peers."""
    add, where = commands.add("compute"), commands.where
    if redundancy > 1:
        return (
            f"{redundancy} compute peers have to come to the same, and there are fewer; start"
            f" more of them{where} with `{add}`"
        )
    return f"no compute peer is in the swarm; start one{where} with `{add}`"


def no_room(full: Sequence[Peer], commands: Commands) -> str:
    """Return the advice for full storage peers."""
    return (
        f"the swarm is full: there is no room left at {_named(full)}; start more storage peers with"
        f" `{commands.add('storage')}`, or {commands.larger}"
    )


def no_keepers(awaited: Sequence[Peer], commands: Commands) -> str:
    """Return the advice for updates that cannot be committed without keepers that have gone."""
    return (
        "an update counts once a storage peer of long standing has it, and of some shards only"
        f" newcomers are there; start these peers again, {commands.again}: {_named(awaited)}. If"
        " they cannot come back, the founder can vouch for those that are there: `giaann token"
        " issue NAME --standing`"
    )


def _named(peers: Sequence[Peer]) -> str:
    return ", ".join(map(name_of, peers[:_MOST_NAMED])) + (", ..." if peers[_MOST_NAMED:] else "")
