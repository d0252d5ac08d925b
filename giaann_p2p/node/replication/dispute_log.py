"""Logs which owners of a shard hold different content from the other owners."""

import logging
from collections.abc import Mapping, Sequence

from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.wire.identity import Peer, name_of

_MOST_TOLD = 8
"""Maximum number of shards that one log line names."""


class DisputeLog:
    """Logs each dispute over the content of shards once, and again when it changes."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._wrong: dict[Peer, list[int]] = {}
        self._disputed: list[int] = []

    def __repr__(self) -> str:
        return f"<DisputeLog: {len(self._wrong)} wrong, {len(self._disputed)} shards disputed>"

    def look(self, wrong: Mapping[Peer, Shards], disputed: Sequence[int]) -> None:
        """Log what has changed since the last call.

        `wrong` maps each peer to the shards of which it holds wrong content. `disputed` are the
        shards of which most other owners hold different content from this peer's.
        """
        now = {peer: shards.tolist() for peer, shards in wrong.items()}
        for peer, shards in now.items():
            if self._wrong.get(peer) != shards:
                self._log.warning(
                    "%s does not hold the same content as this peer and other owners of %s: if most"
                    " of the owners agree, another peer gets its place",
                    name_of(peer),
                    _some(shards),
                )
        for peer in self._wrong.keys() - now.keys():
            self._log.info("%s no longer differs from the other owners", name_of(peer))
        self._wrong = now
        if disputed and [*disputed] != self._disputed:
            self._log.error(
                "most other owners hold other content than this peer of %s: this peer's copy is not"
                " read any more, and another peer gets its place. If the others are right, this"
                " machine's memory or disk may be failing: end this peer, and start it once with"
                " --renew %s, which drops its copy, and fetches a new one some minutes later",
                _some(disputed),
                ",".join(map(str, disputed)),
            )
        self._disputed = [*disputed]


def _some(shards: Sequence[int]) -> str:
    told = ", ".join(map(str, shards[:_MOST_TOLD]))
    more = f" and {len(shards) - _MOST_TOLD} more" if len(shards) > _MOST_TOLD else ""
    return f"shard{'' if len(shards) == 1 else 's'} {told}{more}"
