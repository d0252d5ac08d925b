"""The fingerprint in plain Python, connection by connection: the yardstick for the fast one."""

import hashlib
import struct

from giaann_p2p.model.delta import Delta

WORD = (1 << 64) - 1


def fingerprint(delta: Delta, salt: bytes) -> list[int]:
    """Return the words of a delta's fingerprint."""
    seeds = hashlib.blake2b(salt, digest_size=48, person=b"giaann prints").digest()
    keys = struct.unpack("<6Q", seeds)
    return [_lane(delta, *keys[lane : lane + 3]) for lane in (0, 3)]


def _lane(delta: Delta, at_concept: int, at_feature: int, at_source: int) -> int:
    reached, fires = [], []
    for concept, feature in zip(delta.concept.tolist(), delta.feature.tolist(), strict=True):
        reached.append(_mixed(_mixed(concept ^ at_concept) + (feature ^ at_feature)))
        fires.append(_mixed(reached[-1] + at_source))
    found = sum(fires[n] * count for n, count in enumerate(delta.count.tolist()))
    starts = delta.row_starts.tolist()
    for n in range(delta.neurons):
        for at in range(starts[n], starts[n + 1]):
            place = int(delta.branch[at]) << 8 | int(delta.segment[at])
            pair = _mixed(fires[n] + reached[int(delta.target[at])])
            found += _mixed(pair ^ place) * int(delta.strength[at])
    return found & WORD


def _mixed(x: int) -> int:
    x &= WORD
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & WORD
    return x ^ (x >> 31)
