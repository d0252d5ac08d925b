"""The addresses at which nodes of the DHT can be dialled.

hivemind's nodes name each other by id alone, because p2pd can look addresses up in libp2p's own
DHT. That DHT stores everything that a stranger sends, so p2pd runs without it, and this project's
messages carry the addresses. Each request and answer carries its sender's addresses, and an answer
also those of the nodes that it names.

1. A node's own report of its addresses takes precedence over what others report of it.
2. A false address costs a failed dial, because libp2p proves the identity of the peer that answers.
3. Everything is bounded: the nodes, the addresses of each node, the bytes of a message.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from giaann_p2p.errors import MessageError
from giaann_p2p.net.hive.peer_id import libp2p_name, way_to
from giaann_p2p.swarm.wire.identity import PEER_BYTES, Peer
from giaann_p2p.swarm.wire.link import fault_of

MOST_WAYS = 4
"""The most addresses of a node in one message."""
MOST_KNOWN = 4096
"""The most nodes whose addresses are kept, of each kind: reported by the node, or by others."""
_MOST_BYTES = 1 << 17
"""The most bytes of addresses in one message."""
_DECODER = msgspec.msgpack.Decoder(dict[bytes, list[str]])


class Ways:
    """The known addresses of each node, without their /p2p/ parts."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._own: dict[Peer, list[str]] = {}
        self._told: dict[Peer, list[str]] = {}

    def __repr__(self) -> str:
        return f"<Ways: {len(self._own)} nodes by own report, {len(self._told)} by others' reports>"

    def of(self, peer: Peer) -> Sequence[str]:
        """Return a node's addresses; those that it reported itself come first."""
        return list(dict.fromkeys([*self._own.get(peer, ()), *self._told.get(peer, ())]))

    def has_heard(self, peer: Peer) -> bool:
        """Return whether a node recently reported its own addresses."""
        return peer in self._own

    def learn(self, sender: Peer, packed: bytes) -> None:
        """Keep the addresses in a message from a node; raise MessageError if it is malformed."""
        for peer, ways in unpacked(packed).items():
            if peer == sender:
                _keep(self._own, peer, ways, self._most)
            else:
                known = [way for way in self._told.get(peer, ()) if way not in ways]
                _keep(self._told, peer, [*ways, *known[:MOST_WAYS]], self._most)

    def packed(self, me: Peer, mine: Sequence[str], named: Iterable[Peer] = ()) -> bytes:
        """Encode this node's own addresses and those of other nodes as part of a message."""
        told = {me: [way_to(address) for address in mine][:MOST_WAYS]}
        for peer in named:
            if peer not in told and (ways := self.of(peer)):
                told[peer] = list(ways)[:MOST_WAYS]
        return _written(told)


def unpacked(packed: bytes) -> dict[Peer, list[str]]:
    """Decode the addresses in a message, and drop those that nobody could dial."""
    if not packed:
        return {}
    if len(packed) > _MOST_BYTES:
        raise MessageError(f"addresses: {len(packed):,} bytes; {_MOST_BYTES:,} are allowed")
    try:
        found = _DECODER.decode(packed)
    except msgspec.MsgspecError as error:
        raise MessageError(f"addresses: {error}") from None
    return {
        Peer(peer): _good(peer, ways) for peer, ways in found.items() if len(peer) == PEER_BYTES
    }


def _good(peer: bytes, ways: Sequence[str]) -> list[str]:
    part = f"/p2p/{libp2p_name(Peer(peer))}"
    return [way for way in ways[:MOST_WAYS] if not fault_of(way + part)]


def _keep(known: dict[Peer, list[str]], peer: Peer, ways: list[str], most: int) -> None:
    """Keep a node's addresses as the newest entry; forget the oldest node if there are too many."""
    known.pop(peer, None)
    if ways:
        known[peer] = ways
    if len(known) > most:
        del known[next(iter(known))]


def _written(told: Mapping[Peer, list[str]]) -> bytes:
    """Encode the addresses of as many nodes as fit into a message, this node's first."""
    packed = msgspec.msgpack.encode(told)
    while len(packed) > _MOST_BYTES:
        told = dict(list(told.items())[: len(told) // 2])
        packed = msgspec.msgpack.encode(told)
    return packed
