"""The file for what the reference's files cannot hold: a brain's model, and counts of delimiters.

We add this file to databases that we write. GIAANNpy knows delimiters only as flags. So a count
here is used only if its flag is set. Without this file, each set flag counts once.
"""

from typing import Annotated

import msgspec

from giaann_p2p.errors import DatabaseError
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.plain_faults import fault_of

_Counts = dict[int, Annotated[int, msgspec.Meta(ge=1, lt=1 << 53)]]


class Extras(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file."""

    spec: ModelSpec
    """The model of the brain that was written."""
    deterministic: _Counts
    """How often each token was a deterministic delimiter."""
    probabilistic: _Counts


def read(data: bytes, name: object) -> Extras:
    """Decode the file; DatabaseError for any other content."""
    try:
        return msgspec.json.decode(data, type=Extras)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DatabaseError(
            f"{name} is damaged ({fault_of(error)}); delete it to read the rest of the database"
        ) from None


def written(extras: Extras) -> bytes:
    """Encode the file."""
    return msgspec.json.format(msgspec.json.encode(extras), indent=1)
