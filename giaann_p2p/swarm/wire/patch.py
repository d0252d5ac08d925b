"""Patches: a peer's new record as its difference from the previous one, for readers that have it.

Most new records change a field or two, or none: a peer signs anew when its chain of pulses ends.
Such a record takes some 460 bytes whole, and 145 as a patch, of which 64 are its signature. A patch
has the id of the previous record, so a reader knows whether it can apply the patch; the signature
then shows whether the result is what the peer has signed.
"""

from typing import Annotated

import msgspec

from giaann_p2p.swarm.wire.pulse import ID_BYTES, PULSE_BYTES, id_of
from giaann_p2p.swarm.wire.record import FRONT_BYTES, ForgedError

_PATCH = 0x40
"""Added to a bucket's number, it makes the first byte of a patch; that of a record is lower."""
_MOST_FIELDS = 64
"""Maximum number of fields of a record: more than any release has."""
_FRONT = 1 + ID_BYTES
"""Length of what precedes the pulse and signature of the new record."""


class _Change(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    fields: Annotated[int, msgspec.Meta(ge=0, le=_MOST_FIELDS)]
    """Number of fields of the new record."""
    changed: dict[int, msgspec.Raw]
    """The encoded fields that are new or differ, by position."""


_FIELDS = msgspec.msgpack.Decoder(list[msgspec.Raw])
_CHANGE = msgspec.msgpack.Decoder(_Change)


def is_patch(data: bytes) -> bool:
    """Return whether this is a patch, and not a record or a pulse."""
    return len(data) > _FRONT + FRONT_BYTES and _PATCH <= data[0] < 2 * _PATCH


def base_of(patch: bytes) -> bytes:
    """Return the id of the record that a patch changes."""
    return patch[1:_FRONT]


def made(bucket: int, old: bytes, new: bytes) -> bytes:
    """Return the patch that turns a peer's valid record into its next one; both have a pulse.

    The result is empty if a patch cannot reproduce `new` exactly, because the peer encoded its list
    of fields in another way: a reader would take the sender of such a patch for a liar.
    """
    before, after = (_FIELDS.decode(data[FRONT_BYTES:]) for data in (old, new))
    known = dict(enumerate(map(bytes, before)))
    changed = {at: raw for at, raw in enumerate(after) if known.get(at) != bytes(raw)}
    change = msgspec.msgpack.encode(_Change(len(after), changed))
    patch = bytes((_PATCH + bucket,)) + id_of(old[PULSE_BYTES:]) + new[:FRONT_BYTES] + change
    return patch if applied(patch, old[PULSE_BYTES:]) == new else b""


def applied(patch: bytes, record: bytes) -> bytes:
    """Return the new record, with a pulse; `record` is the signed one that the patch changes.

    ForgedError if the patch is malformed, because no honest node makes such a patch. Nothing else
    is checked.
    """
    try:
        change = _CHANGE.decode(patch[_FRONT + FRONT_BYTES :])
    except msgspec.MsgspecError as error:
        raise ForgedError(f"patch: {error}") from None
    if len(change.changed) > _MOST_FIELDS:
        raise ForgedError(f"patch: it changes {len(change.changed):,} fields")
    known = dict(enumerate(_FIELDS.decode(record[FRONT_BYTES - PULSE_BYTES :])))
    try:
        known |= change.changed
        after = [known[at] for at in range(change.fields)]
    except KeyError as error:
        raise ForgedError(f"patch: field {error} is missing") from None
    return patch[_FRONT : _FRONT + FRONT_BYTES] + msgspec.msgpack.encode(after)
