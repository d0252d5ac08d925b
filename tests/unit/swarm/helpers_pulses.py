"""Records with a chain of pulses whose seed is known."""

import msgspec

from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.pulse import PULSE_BYTES, joined, pulse_of
from giaann_p2p.swarm.wire.record import Announcement, signed

SEED = b"twelve bytes"


def chained(who: Identity, said: Announcement, seed: bytes = SEED) -> bytes:
    """Return a signed record whose pulses `beat` knows, with the first of them."""
    return signed(who, msgspec.structs.replace(said, anchor=pulse_of(seed, who.peer, 0).link))


def beat(data: bytes, who: Identity, number: int, seed: bytes = SEED) -> bytes:
    """Return the same record with another pulse."""
    return joined(pulse_of(seed, who.peer, number), data[PULSE_BYTES:])
