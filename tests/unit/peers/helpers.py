"""What tests of daemons share."""

from giaann_p2p.net.hive.peer_id import libp2p_name
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.link import Link

_PEER = Identity.from_seed(b"b" * 32).peer
LINK = str(Link(bytes(32), (f"/ip4/127.0.0.1/tcp/4100/p2p/{libp2p_name(_PEER)}",)))
"""A link of the right form to a swarm that does not exist."""
