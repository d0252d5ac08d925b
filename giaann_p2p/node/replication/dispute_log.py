"""Logs which owners of a shard hold different content from the other owners."""

import logging
from collections.abc import Mapping, Sequence

from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.wire.identity import Peer, name_of

_MOST_TOLD = 8


class DisputeLog:
    """Logs disputes once, and again when they change."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._wrong: dict[Peer, list[int]] = {}
        self._disputed: list[int] = []

    def __repr__(self) -> str:
        return f"<DisputeLog: {len(self._wrong)} wrong, {len(self._disputed)} shards disputed>"

    def look(self, wrong: Mapping[Peer, Shards], disputed: Sequence[int]) -> None:
        """Log changes: the shards that peers hold wrong, and those that are disputed here."""
        now = {peer: shards.tolist() for peer, shards in wrong.items()}
        for peer, shards in now.items():
            if self._wrong.get(peer) != shards:
                self._log.warning(
                    "%s does not hold what other owners and this peer hold of %s: where a majority"
                    " says so, another peer gets the shard",
                    name_of(peer),
                    _some(shards),
                )
        for peer in self._wrong.keys() - now.keys():
            self._log.info("%s is called wrong no longer", name_of(peer))
        self._wrong = now
        if disputed and [*disputed] != self._disputed:
            self._log.error(
                "most other owners hold something else than this peer of %s: it is not read any"
                " more, and another peer gets it. If they are right, this machine's memory or disk"
                " may be failing; end this peer, and start it once with --renew %s, which drops"
                " these shards here, and fetches them anew some minutes later",
                _some(disputed),
                ",".join(map(str, disputed)),
            )
        self._disputed = [*disputed]


def _some(shards: Sequence[int]) -> str:
    told = ", ".join(map(str, shards[:_MOST_TOLD]))
    more = f" and {len(shards) - _MOST_TOLD} more" if len(shards) > _MOST_TOLD else ""
    return f"shard{'' if len(shards) == 1 else 's'} {told}{more}"
