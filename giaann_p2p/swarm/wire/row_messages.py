"""The messages by which any peer reads rows of storage peers."""

from typing import Annotated

import msgspec

from giaann_p2p.model.row_slice import MOST_HALVINGS
from giaann_p2p.swarm.wire.message import NEURON_BYTES, Message
from giaann_p2p.swarm.wire.row_mark import MARK_BYTES, SALT_BYTES

MOST_READ = 1 << 12
"""Maximum number of neurons in one read."""
POSITION_BYTES = 2
"""Length of a neuron's position in a read, in bytes."""
_HALF = NEURON_BYTES // 2
Half = Annotated[bytes, msgspec.Meta(min_length=_HALF, max_length=_HALF)]
"""A neuron's concept or feature, as a little-endian u64."""


class Read(Message, frozen=True, tag="read"):
    """Request for the rows of some neurons."""

    concepts: bytes
    """The concept of each neuron, as a little-endian u64."""
    features: bytes
    """The feature of each neuron, as a little-endian u64."""
    marks: Annotated[bytes, msgspec.Meta(max_length=MARK_BYTES * MOST_READ)] = b""
    """The marks of the sender's cached rows, for the first neurons in the request (see
    `row_mark`)."""
    salt: Annotated[bytes, msgspec.Meta(max_length=SALT_BYTES)] = b""
    """Random bytes that were drawn for these marks; empty if there are none."""


class ReadSlice(Message, frozen=True, tag="read slice"):
    """Request for a slice of one neuron's row, after a peer refused the whole row as too long.

    The answer is `Rows`.
    """

    concept: Half
    feature: Half
    halvings: Annotated[int, msgspec.Meta(ge=1, le=MOST_HALVINGS)]
    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << MOST_HALVINGS)]


class Rows(Message, frozen=True, tag="rows"):
    """Answer to `Read` and `ReadSlice`: all requested rows that the sender has.

    It omits the rows of `moved` shards, and the rows whose mark equals the one in the request.
    """

    parcel: bytes
    """The rows: a few as plain bytes (`store.codec.plain`), more as a sheaf (`codec.sheaf`)."""
    moved: bytes
    """The requested shards that the sender does not serve."""
    same: Annotated[bytes, msgspec.Meta(max_length=POSITION_BYTES * MOST_READ)] = b""
    """Positions in the request of the rows whose mark equals the requested one, as little-endian
    u16."""


class AskColumn(Message, frozen=True, tag="column?"):
    """Request for the words in a concept's column."""

    concept: Half


class Column(Message, frozen=True, tag="column"):
    """Answer to `AskColumn`: the words of the column that the sender holds.

    The most frequent words come first; there are at most `MOST_READ`.
    """

    features: Annotated[bytes, msgspec.Meta(max_length=_HALF * MOST_READ)]
