"""The rows of a shard that a reader still uses.

A reader that asks for such a row again gets the same object. That is much faster than to assemble a
long row, and shows the reader at once that the row has not changed.
"""

from weakref import ref

from giaann_p2p.model.rows import Row

_LEAST = 16
"""The number of entries up to which dead rows are left: they take some 245 bytes each."""


class MadeRows:
    """Rows by neuron, with weak references: a row is forgotten some time after its last user.

    The references have no callbacks, which would take a tenth of the time to assemble a short row.
    Instead, adding a row now and then removes what is left of the dead ones. Any thread may read
    and add; at worst, a row that is added at the same moment is forgotten, and made again.
    """

    def __init__(self) -> None:
        self._made: dict[int, tuple[int, int, ref[Row]]] = {}  # piece, renamed, row
        self._room = _LEAST

    def __len__(self) -> int:
        """Return the number of entries, including those of dead rows."""
        return len(self._made)

    def get(self, number: int, piece: int, renamed: int) -> Row | None:
        """Return a neuron's row if it was made of the same pieces and names, and is still used."""
        made = self._made.get(number)
        return made[2]() if made and made[0] == piece and made[1] == renamed else None

    def add(self, number: int, piece: int, renamed: int, row: Row) -> None:
        """Remember a neuron's row, instead of an earlier one.

        `piece`: the number of the neuron's last piece. `renamed`: the count of renamings.
        """
        if len(self._made) >= self._room:
            alive = {n: made for n, made in self._made.copy().items() if made[2]() is not None}
            self._made, self._room = alive, max(_LEAST, 2 * len(alive))
        self._made[number] = piece, renamed, ref(row)
