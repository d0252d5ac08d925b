"""Waits until a swarm's directory knows what its storage peers hold.

Peers read the directory every few seconds, so they learn late that a peer is ready. A user who
starts a swarm and then asks for its health should not read that shards are being copied.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from giaann_p2p.cli.visiting import visiting

if TYPE_CHECKING:
    from giaann_p2p.client.session import Session

_WITHIN = 10.0
"""Maximum seconds to wait; a swarm that came back may have shards to move for much longer."""
_PAUSE = 0.2


async def until_seen(link: str, storages: int, gives_up: Callable[[], bool]) -> None:
    """Wait until the directory has `storages` storage peers, none of which still copies a shard."""
    clock = asyncio.get_running_loop().time
    until = clock() + _WITHIN
    seen = asyncio.create_task(_seen(link, storages))
    while not (seen.done() or gives_up()) and clock() < until:
        await asyncio.wait([seen], timeout=_PAUSE)
    seen.cancel()
    await asyncio.wait([seen])
    if not seen.cancelled():
        seen.result()


async def _seen(link: str, storages: int) -> None:
    async with visiting(link) as session:
        while not _is_seen(session, storages):  # noqa: ASYNC110  (other processes change it)
            await asyncio.sleep(_PAUSE)


def _is_seen(session: "Session", storages: int) -> bool:
    directory = session.around.directory
    live = directory.live(session.now)
    found = [said for said in live if said.role == "storage"]
    settled = [said for said in found if not len(directory.sets_of(said).syncing)]
    return len(settled) >= storages
