"""Finds the size of chunks in which a client continues to teach a text that was begun.

The id of a job depends on its chunk size. So if the swarm has had several sizes, a text is
continued in the size in which it was begun; otherwise it would be learned twice.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum


class Begun(IntEnum):
    """Whether a job was begun. An owner may lie, or not answer; a quorum of owners decides."""

    NO = 0
    PERHAPS = 1
    """One owner says so, or owners that do not answer may have committed chunks of it."""
    YES = 2


def size_to_go_on(sizes: Sequence[int], begun: Mapping[int, Begun]) -> int:
    """Return the size of chunks in which a text is learned.

    `sizes` are those of the swarm, in the order in which they came into force, and `begun` maps
    each to whether its job was begun. The first size of those begun most surely is returned; if
    none was begun, the present one.
    """
    if not any(begun.values()):
        return sizes[-1]
    return max(sizes, key=lambda size: begun[size])
