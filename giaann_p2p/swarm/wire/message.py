"""What all messages between peers have in common."""

from typing import Annotated

import msgspec

from giaann_p2p.store.applied import JOB_BYTES

Amount = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
Job = Annotated[bytes, msgspec.Meta(min_length=JOB_BYTES, max_length=JOB_BYTES)]
Chunk = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
NEURON_BYTES = 16
"""Length of an encoded neuron, in bytes: a concept and a feature."""


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Base class of everything that one peer sends to another."""


class Counting(Message, frozen=True):
    """Base class of the questions that name shards.

    The sender and the receiver must count the same number of shards. `Read` is not such a question:
    it names no shards, and its answer counts them as the reader does.
    """
