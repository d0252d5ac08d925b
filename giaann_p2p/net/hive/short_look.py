"""Which nodes a look at the directory asks, when the nodes near its keys are known already.

A search through the DHT asks some ten nodes, most of them twice. Nearly all looks find nothing new,
so most are short: they ask a few of the nodes that an earlier search found, chosen by chance, each
for all keys that it may have. Chance spreads the load, and no liar is asked every time.
"""

import random
from collections.abc import Collection, Container, Hashable, Mapping, Sequence, Sized
from typing import NamedTuple

Near = Mapping[bytes, Sequence[Hashable]]
"""The nodes near each key, nearest first."""
_ENOUGH = 3
"""The number of nodes near each key that looks rely on at least when others did not answer."""
_MANY = 1.5
"""By which factor the number of known nodes must have grown for a search to be made anew."""
_LONGER = 4.0
"""How many times longer than usual short looks rely on a search at most, after several that found
the same nodes. More: less work at rest; less: nodes that came nearer to a key are asked sooner."""


class Search(NamedTuple):
    """The result of a search, on which short looks rely for a while."""

    near: Near
    nodes: int
    """The number of nodes known at the search, or at one before it if it was greater."""
    ended: float
    """The time at which the search ended."""
    lasts: float
    """The seconds after which the search is too old."""

    def holds(self, nodes: int, now: float) -> bool:
        """Return whether short looks may still rely on this search; `nodes` are known now.

        If many nodes came, some may be nearer to a key by now. A few make no difference: most of
        those near a key are still the same. Nor do nodes that went, unless they are near ones (see
        `without`). On a machine out of breath many come and go all the time, because they answer
        late, and searches would only add to its load.
        """
        return now < self.ended + self.lasts and nodes < self.nodes * _MANY

    def after(self, last: "Search | None") -> "Search":
        """Return this search; if it found the same as the `last` one, it lasts twice as long."""
        if last is None:
            return self
        longer = min(_LONGER * self.lasts, 2 * last.lasts)
        return self._replace(
            nodes=max(self.nodes, last.nodes),
            lasts=longer if last.near == self.near else self.lasts,
        )

    def without(self, silent: Collection[Hashable]) -> "Search | None":
        """Return the search without nodes that did not answer; None if too few are left."""
        near = {key: [one for one in some if one not in silent] for key, some in self.near.items()}
        if not all(_are_enough(near[key], some) for key, some in self.near.items()):
            return None
        return self._replace(near=near)


def spread(
    near: Near,
    each: Mapping[bytes, int],
    most_keys: int,
    silent: Container[Hashable] = (),
) -> dict[Hashable, list[bytes]]:
    """Choose nodes so that each key is asked for at some nodes near it, or all if it has fewer.

    `each` says at how many. No node is asked for more than `most_keys` keys. Nodes that were
    `silent` lately are chosen last, if there are enough others.
    """
    nodes = list({node: None for some in near.values() for node in some})
    random.shuffle(nodes)
    others = [{*some}.difference(one for one in some if one in silent) for some in near.values()]
    if all(map(_are_enough, others, near.values())):
        nodes.sort(key=lambda node: node in silent)
    left = dict(each)
    chosen: dict[Hashable, list[bytes]] = {}
    for node in nodes:
        keys = [key for key, some in near.items() if left[key] and node in some][:most_keys]
        for key in keys:
            left[key] -= 1
        if keys:
            chosen[node] = keys
    return chosen


def _are_enough(left: Sized, near: Sized) -> bool:
    """Return whether looks may rely on these that are left of the nodes near a key.

    One or two nodes could hide what they liked.
    """
    return len(left) >= min(_ENOUGH, len(near))
