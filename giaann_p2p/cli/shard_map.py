"""Which storage peers hold which shards: as a table for people, and as plain values for JSON."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
from rich.table import Table

from giaann_p2p.gateway.views import PeersNow
from giaann_p2p.terminal import harmless

HELD = ("ready", "syncing", "cold")
"""The states of a replica, the best first."""
Holders = list[tuple[str, str]]
"""The peers that hold a shard, each with the state of its replica."""


class StoragePeer(msgspec.Struct, frozen=True):
    """A storage peer of a map."""

    name: str
    state: str
    """The state in its record; `silent` if it does not answer, and then its shards are left out."""

    @property
    def label(self) -> str:
        """The peer's name, followed by its state unless that is `active`."""
        return self.name if self.state == "active" else f"{self.name} {self.state}"


class ShardMap(msgspec.Struct, frozen=True, kw_only=True):
    """The shards of a swarm, and who holds each of them."""

    name: str
    """The swarm's name."""
    replicas: int
    """Replicas wanted of each shard."""
    peers: list[StoragePeer]
    shards: list[Holders]
    """The holders of each shard; peers that serve the shard come first."""

    @property
    def ready(self) -> list[int]:
        """The number of peers that serve each shard."""
        return [sum(state == "ready" for _, state in holders) for holders in self.shards]

    @property
    def summary(self) -> str:
        """A line that says how many shards there are, and how many lack replicas."""
        ready = self.ready
        said = (
            f"{_many(len(self.peers), 'storage peer')}; {_many(len(ready), 'shard')}, "
            f"{_many(self.replicas, 'replica')} of each wanted"
        )
        lacking = sum(many < self.replicas for many in ready)
        if not lacking:
            return f"{said}, and all are ready"
        said += f"; {_many(lacking, 'shard')} with fewer ready"
        return f"{said}, {unserved} of them with none" if (unserved := ready.count(0)) else said


def shard_map(found: PeersNow, name: str, replicas: int) -> ShardMap:
    """Return the map of a swarm with this name and this number of wanted replicas."""
    peers = [
        StoragePeer(one.name, "silent" if one.silent else one.state)
        for one in found.peers
        if one.role == "storage"
    ]
    order = {state: rank for rank, state in enumerate(HELD)}
    shards = [
        sorted((one for one in holders if one[1] in order), key=lambda one: (order[one[1]], one[0]))
        for holders in found.shards
    ]
    return ShardMap(name=name, replicas=replicas, peers=peers, shards=shards)


def map_table(found: ShardMap) -> Table:
    """Return a table of the shards and their replicas; shards with the same holders share a line.

    Many do: with as many peers as replicas, all shards have the same holders.
    """
    alike: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for shard, holders in enumerate(found.shards):
        alike.setdefault(tuple(holders), []).append(shard)
    table = Table("ready", box=None, pad_edge=False, header_style="bold")
    columns = max([found.replicas, *map(len, alike)])
    for number in range(columns):
        table.add_column(f"replica {number + 1}", no_wrap=True)
    table.add_column("shards")
    for some, shards in alike.items():
        ready = sum(state == "ready" for _, state in some)
        names = [_holder(*one) for one in some] + [""] * (columns - len(some))
        row = f"{ready} of {found.replicas}", *names, spans(shards)
        table.add_row(*map(harmless, row))
    return table


def spans(numbers: Sequence[int]) -> str:
    """Return ascending numbers in short: `0-3, 7`."""
    breaks = [at for at, (one, other) in enumerate(pairwise(numbers), 1) if other != one + 1]
    edges = zip([0, *breaks], [*breaks, len(numbers)], strict=True)
    return ", ".join(_span(numbers[begin:end]) for begin, end in edges if end > begin)


def _span(numbers: Sequence[int]) -> str:
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def _holder(name: str, state: str) -> str:
    return name if state == "ready" else f"{name} {state}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
