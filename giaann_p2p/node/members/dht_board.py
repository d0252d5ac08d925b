"""A member's part in the DHT that keeps the peer directory.

Importing this module imports hivemind, which takes more than a second.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.joined_host import JoinedHost
from giaann_p2p.swarm.wire.manifest import Manifest


@asynccontextmanager
async def dht_board(place: JoinedHost, manifest: Manifest, gate: Gate) -> AsyncIterator[HiveBoard]:
    """Take part in the DHT of a swarm for the duration of the context."""
    board = await HiveBoard.start(
        place.host,
        manifest.swarm_id,
        gate.rules,
        place.book.seeds,
        gate.clock,
        gate.admission,
        gate.token,
        near=manifest.places == "near",
    )
    try:
        yield board
    finally:
        await board.close()
