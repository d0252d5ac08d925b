"""When a replica is ready, when it may be let go, which deltas need not be kept: on evidence."""

from collections.abc import Iterable, Mapping, Sequence

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.evidence import Word
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.replica import State

Words = Mapping[Peer, Word]
"""What peers said of a shard a moment ago."""


def caught_up(mine: Applied, words: Words) -> bool:
    """Tell whether a replica has all that a ready one had a moment ago."""
    return any(word.state.serves and word.chunks <= mine for word in words.values())


def may_begin(mine: Applied, words: Words, others: Iterable[Peer], quorum: int) -> bool:
    """Tell whether a shard that nobody has ready can be ready with what is here.

    `others` are its owners but this one. Enough of them must be there, and all of these must have
    told nothing that is not here.
    """
    if any(word.state.serves for word in words.values()):
        return False
    there = [words[peer] for peer in others if peer in words]
    if any(not word.chunks <= mine for word in words.values()):
        return False
    return 1 + sum(word.state is State.SYNCING for word in there) >= quorum


def covered(mine: Applied, words: Words, owners: Sequence[Peer], quorum: int) -> bool:
    """Tell whether all owners of a shard say that they are ready and have every chunk from here.

    That they say so is not enough to let go of it: see `Proving`.
    """
    told = [words[peer] for peer in owners if peer in words]
    return all_ready(words, owners, quorum) and all(mine <= word.chunks for word in told)


def all_ready(words: Words, owners: Sequence[Peer], quorum: int) -> bool:
    """Tell whether all owners of a shard say that they are ready.

    There must be a quorum of them: where hardly anybody is left, what is here is not to spare.
    """
    told = [words.get(peer) for peer in owners]
    return len(told) >= quorum and all(word and word.state is State.READY for word in told)


def everywhere(mine: Applied, told: Iterable[Word | None], since: float) -> Applied:
    """Return the chunks that all who hold a shard, or may come back with it, have taken in.

    Who said at this time or later that it has nothing of it yet does not count. If somebody has
    what is not here, there are none: see `Releasing`.
    """
    found = mine
    for word in told:
        if word is None or not word.chunks <= mine:
            return Applied()
        if word.asked < since or not _is_passing(word):
            found &= word.chunks
    return found


def _is_passing(word: Word) -> bool:
    return word.state is not State.READY and not word.chunks
