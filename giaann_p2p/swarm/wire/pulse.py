"""Pulses: signs of life of a peer whose record has not changed, each checked by a hash or two.

1. A record names the *anchor* of a chain: the end of `MOST_PULSES` hashes, each of the one before.
   Only the peer knows the beginning, the seed. Pulse number i is the link from which i hashes lead
   to the anchor; so number 0 is the anchor itself, and a new record comes with it.
2. Pulse i proves that the peer lived when that pulse was due, `PULSE_SECONDS` times i seconds after
   the peer issued the record. Anybody can compute the earlier pulses from it, but nobody can
   compute a later one.
3. A pulse is valid if it leads to the anchor, whatever else a reader knows. Once it leads to a
   valid pulse that the reader knows, the reader need not hash on to the anchor.
4. Each hash is salted with the peer, so that nobody can attack many peers' chains at once. A peer
   may find two links with the same hash, and have two chains; both prove its own life only.
5. A chain is short, because a peer that sees a record for the first time must hash all the way to
   the anchor: 54 µs for the last pulse, less than the 86 µs for the signature. So a false pulse
   costs a reader no more than a false signature.

In transit and at rest a record is `pulse + signature + body`, and begins with the pulse's number.
Between peers that both have the record a *bare* pulse is enough: `id of the record + pulse`.

The pulses of a whole part of the directory, a bucket, travel as one *batch* of *short* pulses, each
with only the first bytes of the record's id. A reader tries a short pulse on each record whose id
begins with these bytes, and credits it to the record whose chain it continues. A short pulse that
continues no chain proves nothing, not even a lie, because the reader may lack the record.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b

import msgspec

from giaann_p2p.swarm.wire.identity import Peer

LINK_BYTES = 12
"""Length of a link. Finding a link to a given hash takes 2^96 tries."""
NUMBER_BYTES = 2
PULSE_BYTES = NUMBER_BYTES + LINK_BYTES
"""Length of an encoded pulse: its number, big endian, then its link."""
MOST_PULSES = 120
"""Number of the last pulse of a record: 20 minutes after the first, at one every 10 s."""
PULSE_SECONDS = 10
"""Seconds between the times at which two pulses in a row are due."""
ID_BYTES = 16
"""Length of a record's id, which is a hash. Finding two records with one id takes 2^64 tries."""
BARE_BYTES = ID_BYTES + PULSE_BYTES
"""Length of a bare pulse; every record is longer."""
BEGINNING_BYTES = 4
"""Length of the part of a short pulse that points to its record: the bucket, in one byte, and 3
bytes of the id. Of the thousand records of a full bucket, one in 16,000 shares these with
another."""
SHORT_BYTES = BEGINNING_BYTES + 1 + LINK_BYTES
"""Length of a short pulse: the beginning, the pulse's number in one byte, and its link. In a batch
the bucket is stated only once."""
NO_ANCHOR = bytes(LINK_BYTES)
"""An anchor to which no known chain leads, for a record without pulses."""
_BATCH = 0x80
"""Added to a bucket's number, it makes the first byte of a batch or a short pulse; that of a record
is lower."""
_BUCKET = 0x3F
"""The bits of the first byte that contain the bucket's number."""
_SALT_BYTES = 16
_SEED = b"giaann pulses"


class Pulse(msgspec.Struct, frozen=True, gc=False):
    """A link of a record's chain, with its number."""

    number: int
    link: bytes


def seed_of(secret: bytes, sequence: int) -> bytes:
    """Return the seed of the chain of the record with this sequence.

    `secret` consists of up to 64 bytes that no other peer can guess.
    """
    return blake2b(b"%d" % sequence, digest_size=LINK_BYTES, key=secret, person=_SEED).digest()


def pulse_of(seed: bytes, peer: Peer, number: int) -> Pulse:
    """Return a pulse of the chain of a seed; number 0 has the anchor."""
    return Pulse(number, _further(seed, peer, MOST_PULSES - number))


def leads(pulse: Pulse, known: Pulse, anchor: bytes, peer: Peer) -> bool:
    """Return whether a pulse is valid; `known` is a valid one with a lower number.

    The work grows with the number, so it must be at most MOST_PULSES.
    """
    link = _further(pulse.link, peer, pulse.number - known.number)
    return link == known.link or _further(link, peer, known.number) == anchor


def joined(pulse: Pulse, record: bytes) -> bytes:
    """Return a signed record with a pulse in front of it."""
    return pulse.number.to_bytes(NUMBER_BYTES, "big") + pulse.link + record


def split(data: bytes) -> tuple[Pulse, bytes]:
    """Return the pulse in front of a signed record, and the record."""
    return shown_by(data), data[PULSE_BYTES:]


def shown_by(data: bytes) -> Pulse:
    """Return the pulse in front of a signed record."""
    return Pulse(int.from_bytes(data[:NUMBER_BYTES], "big"), data[NUMBER_BYTES:PULSE_BYTES])


def id_of(record: bytes) -> bytes:
    """Return the id of a signed record."""
    return blake2b(record, digest_size=ID_BYTES).digest()


def bare(data: bytes) -> bytes:
    """Return the bare pulse of a signed record with a pulse; a bare pulse is returned as it is."""
    return data if is_bare(data) else id_of(data[PULSE_BYTES:]) + data[:PULSE_BYTES]


def is_bare(data: bytes) -> bool:
    """Return whether this is a bare pulse, and not a record."""
    return len(data) == BARE_BYTES


def batch(bucket: int, pulses: Iterable[bytes]) -> bytes:
    """Return bare pulses of records of one bucket as a batch of short ones."""
    told = BEGINNING_BYTES - 1
    short = [one[:told] + one[ID_BYTES + NUMBER_BYTES - 1 :] for one in pulses]
    return b"".join([_mark(bucket), *short])


def apart(data: bytes) -> Iterator[bytes]:
    """Yield the short pulses of a batch; anything else is yielded as it is."""
    if not _is_marked(data) or len(data) % (SHORT_BYTES - 1) != 1:
        yield data
        return
    for at in range(1, len(data), SHORT_BYTES - 1):
        yield data[:1] + data[at : at + SHORT_BYTES - 1]


def is_short(data: bytes) -> bool:
    """Return whether this is a short pulse, and not a bare one or a record."""
    return len(data) == SHORT_BYTES and _is_marked(data)


def bucket_in(data: bytes) -> int:
    """Return the bucket number in a short pulse or a patch; there may be no such bucket."""
    return data[0] & _BUCKET


def beginning(bucket: int, record_id: bytes) -> bytes:
    """Return the first bytes of a record's short pulses, given the record's bucket and id."""
    return _mark(bucket) + record_id[: BEGINNING_BYTES - 1]


def pulse_in(short: bytes) -> Pulse:
    """Return the number and link in a short pulse."""
    return Pulse(short[BEGINNING_BYTES], short[BEGINNING_BYTES + 1 :])


def continues(pulse: Pulse, known: Pulse, peer: Peer) -> bool:
    """Return whether a pulse leads to `known`, which is valid and has a lower number."""
    return _further(pulse.link, peer, pulse.number - known.number) == known.link


def newest(records: Iterable[bytes]) -> list[bytes]:
    """Return each of the records once, with the newest pulse; all pulses must be valid.

    The number comes first, so the newest pulse of a record makes the greatest bytes.
    """
    found: dict[bytes, bytes] = {}
    for data in records:
        record = data[PULSE_BYTES:]
        found[record] = max(data, found.get(record, data))
    return list(found.values())


def _mark(bucket: int) -> bytes:
    return bytes((_BATCH + bucket,))


def _is_marked(data: bytes) -> bool:
    return bool(data) and data[0] >= _BATCH


def _further(link: bytes, peer: Peer, steps: int) -> bytes:
    """Return the link that results from hashing a link `steps` times."""
    salt = peer[:_SALT_BYTES]
    for _ in range(steps):
        link = blake2b(link, digest_size=LINK_BYTES, salt=salt).digest()
    return link
