"""The ids by which a directory finds the records that pulses belong to.

Each record of the directory has a row, and a row may have two ids: that of its record, and that of
the record that it replaced, because pulses of the replaced record may still be in transit.
"""

from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.pulse import BEGINNING_BYTES, beginning
from giaann_p2p.swarm.wire.record import bucket_of

_MOST_ALIKE = 16
"""Maximum number of records on which a short pulse is tried. A peer that announces more records
whose ids begin alike only makes short pulses of such records useless; bare pulses still count."""


class RecordIds:
    """Finds the rows of a directory by their records' ids, or by the first bytes of these ids."""

    def __init__(self) -> None:
        self._rows: dict[bytes, int] = {}
        self._alike: dict[bytes, list[int]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<RecordIds: {len(self):,} ids>"

    def add(self, record_id: bytes, peer: Peer, row: int) -> None:
        """Note the id of a record of a peer."""
        if record_id not in self._rows:
            self._rows[record_id] = row
            self._alike.setdefault(beginning(bucket_of(peer), record_id), []).append(row)

    def drop(self, record_id: bytes, peer: Peer) -> None:
        """Forget an id of a record of a peer, if it is known."""
        row = self._rows.pop(record_id, None)
        if row is None:
            return
        begins = beginning(bucket_of(peer), record_id)
        self._alike[begins].remove(row)
        if not self._alike[begins]:
            del self._alike[begins]

    def row(self, record_id: bytes) -> int | None:
        """Return the row of the record with this id; None if it is not known."""
        return self._rows.get(record_id)

    def rows(self, short: bytes) -> list[int]:
        """Return the rows of the records that a short pulse may belong to."""
        return self._alike.get(short[:BEGINNING_BYTES], [])[:_MOST_ALIKE]
