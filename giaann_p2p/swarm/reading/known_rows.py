"""Rows that a reader has cached, and how peers confirm by marks that they have not changed.

A call has the marks of the known rows of its first neurons (see `row_mark`), and the answer lists
the positions of those rows that have not changed. The marks' salt is derived from the reader's
secret, and is a new one for each call, so no other peer can foresee it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import MessageError
from giaann_p2p.model.rows import Neuron, Row
from giaann_p2p.swarm.wire.row_mark import LEAST, SALT_BYTES, mark
from giaann_p2p.swarm.wire.row_messages import POSITION_BYTES

Known = Mapping[Neuron, Row]
"""Rows that the reader has cached."""
NOTHING_KNOWN: Known = {}


class Marking(NamedTuple):
    """A reader's setting for marks."""

    secret: bytes = b""
    """Random bytes that only this reader knows, at most 64; without them no marks are sent."""
    least: int = LEAST
    """Minimum number of connections of a row for which a mark is sent."""


NO_MARKS = Marking()


class Marked(NamedTuple):
    """The known rows that a call names, in the order of their marks."""

    rows: list[tuple[Neuron, Row]]
    marks: bytes
    salt: bytes
    """The salt of the marks; empty if there are none."""


class Marker:
    """Makes the marks of one reader's calls."""

    def __init__(self, marking: Marking) -> None:
        self._secret, self._least = marking
        self._salts = 0

    def marked(self, neurons: Sequence[Neuron], known: Known) -> Marked:
        """Return the known rows of some neurons that are long enough, and their marks."""
        found = [(neuron, known[neuron]) for neuron in neurons if neuron in known]
        rows = [pair for pair in found if len(pair[1].strength) >= self._least]
        if not rows or not self._secret:
            return Marked([], b"", b"")
        self._salts += 1
        number = self._salts.to_bytes(8, "little")
        salt = hashlib.blake2b(number, key=self._secret, digest_size=SALT_BYTES).digest()
        return Marked(rows, b"".join(mark(row, salt) for _, row in rows), salt)


def confirmed(data: bytes, marked: Marked) -> Known:
    """Return the rows at the positions in an answer's `same`; MessageError if these are invalid."""
    if len(data) % POSITION_BYTES:
        raise MessageError(f"{len(data)} bytes are not a valid list of row positions")
    at = np.frombuffer(data, "<u2").tolist()
    if any(after <= before for before, after in pairwise(at)):
        raise MessageError("the positions of confirmed rows do not ascend")
    if at and at[-1] >= len(marked.rows):
        raise MessageError("an answer confirms a row whose mark was not sent")
    return dict(marked.rows[one] for one in at)
