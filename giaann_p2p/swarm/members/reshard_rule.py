"""Decides when the founder's bootstrap peer raises the swarm's rules by itself (`--reshard auto`).

1. Shards double if storage peers have fewer than `FEWEST` shards each on average: then peers are
   filled unevenly, and in the end some stay empty. They also double if a shard takes more than
   `LARGEST` bytes: then it takes long to copy one.
2. A chunk becomes the power of two with at least `_SENTENCES` sentences for each storage peer,
   because a chunk takes a message to each, whatever its size. So a sentence takes half a message;
   by docs/scale.md the writer's work is then a seventh of parsing with 1,000 peers. Few peers keep
   small chunks, which spread a short text over more compute peers.
3. More replicas would take the volunteers' memory, so they are the founder's decision.
4. Nothing changes while the swarm is restless: while there are fewer storage peers than replicas,
   or more than a quarter of them fetch shards or have not divided theirs by the newest edition.
5. A change must be needed at `LOOKS` looks in a row, `PAUSE` seconds or more after the last change.

Announcements may be false, and an edition cannot be taken back. So only peers with standing
count, each once. The size of a shard is the median of the peers' own mean sizes, so that no
minority can make it larger than the largest true one; and a quarter of the peers cannot stop a
change. If shards double because there are many peers, each peer then has fewer than twice `FEWEST`.
"""

from collections import deque
from collections.abc import Sequence
from math import inf
from statistics import median
from typing import NamedTuple

from giaann_p2p.model.spec import MOST_CHUNK
from giaann_p2p.store.layout import MOST_SHARDS
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.edition import MOST_SIZES
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.units import readable_bytes

FEWEST = 50
"""Average number of shards per storage peer below which shards double."""
LARGEST = 256 << 20
"""Size of a shard, in bytes of memory, above which shards double: copying it takes 5 s at 50 MB/s.
Its share of a peer's capacity needs no limit: with `FEWEST` shards it is a fiftieth at most."""
LOOKS = 10
"""Number of looks in a row at which a change must be needed."""
PAUSE = 3600.0
"""Seconds from one edition to the next."""
_SENTENCES = 2
"""Minimum number of sentences in a chunk per storage peer."""


class Storing(NamedTuple):
    """What a storage peer with standing announces."""

    edition: int
    """Number of the newest edition of the rules that the peer has."""
    is_settled: bool
    """Whether the peer takes part in the swarm, and fetches no shard."""
    size: float | None
    """Mean memory of the peer's shards, in bytes; None if it owns none."""


class Wish(NamedTuple):
    """The new values of numbers to be raised; 0 for one that stays as it is."""

    shards: int
    chunk: int


NOTHING = Wish(0, 0)


class ReshardRule:
    """Remembers the wishes of the last looks, and returns what all of them have in common."""

    def __init__(self) -> None:
        self._last = deque[Wish](maxlen=LOOKS)
        self._edition: int | None = None
        self._changed = -inf  # time at which the newest edition was first seen

    def look(self, rules: Rules, peers: Sequence[Storing], now: float) -> Wish:
        """Record a look at the rules and the peers, and return what is to be raised now."""
        if rules.edition != self._edition:
            if self._edition is not None:
                self._changed = now
            self._edition = rules.edition
            self._last.clear()
        self._last.append(wanted(rules, peers))
        if len(self._last) < LOOKS or now < self._changed + PAUSE:
            return NOTHING
        shards, chunks = zip(*self._last, strict=True)
        return Wish(min(shards), min(chunks))


def wanted(rules: Rules, peers: Sequence[Storing]) -> Wish:
    """Return what should be raised for these peers; nothing while the swarm is restless."""
    settled = sum(one.is_settled and one.edition == rules.edition for one in peers)
    if len(peers) < rules.replicas or 4 * settled < 3 * len(peers):
        return NOTHING
    chunk = min(MOST_CHUNK, 1 << (_SENTENCES * len(peers) - 1).bit_length())
    has_size_left = len(rules.sizes) <= MOST_SIZES
    more = _is_coarse(rules, peers) or _size(peers) > LARGEST
    return Wish(
        2 * rules.shards if more and 2 * rules.shards <= MOST_SHARDS else 0,
        chunk if chunk > rules.chunk and has_size_left else 0,
    )


def reason(rules: Rules, wish: Wish, peers: Sequence[Storing]) -> str:
    """Return a phrase that says what is raised, and why."""
    count, said = len(peers), list[str]()
    if wish.shards and _is_coarse(rules, peers):
        each = rules.replicas * rules.shards // count
        said.append(f"{wish.shards:,} shards, because {count:,} storage peers had {each} each")
    elif wish.shards:
        size = readable_bytes(_size(peers))
        said.append(f"{wish.shards:,} shards, because one took {size} of memory")
    if wish.chunk:
        said.append(
            f"{wish.chunk:,} sentences in a chunk of a new text, because each chunk takes a "
            f"message to {count:,} storage peers"
        )
    return "; ".join(said)


def storing(around: PeersView, now: float) -> list[Storing]:
    """Return what the storage peers with standing announce."""
    placement, found = around.placement(now), list[Storing]()
    for peer in around.standing_members(now):
        if (said := around.directory.announcement(peer)) is not None:
            owned = len(placement.shards_of(peer))  # decoding the record's sets takes far longer
            size = said.used / owned if owned else None
            found.append(Storing(said.edition, said.is_settled, size))
    return found


def _is_coarse(rules: Rules, peers: Sequence[Storing]) -> bool:
    return rules.replicas * rules.shards < FEWEST * len(peers)


def _size(peers: Sequence[Storing]) -> float:
    """Return the median of the peers' mean shard sizes, in bytes; 0 if no peer owns a shard."""
    return median([one.size for one in peers if one.size is not None] or [0.0])
