"""Answers clients that ask a peer for the records in its directory, instead of joining the DHT.

1. An answer contains one page of the live records of one role, as their own peers signed them:
   first those that this peer keeps for the DHT, because they are the newest, then those in its
   directory; each once, with the newest pulse.
2. Most clients have the records already, and ask for the pulses. Then a bare pulse of 30 bytes
   replaces each record, of some 500 bytes, that was already in the answers `NEWS` seconds ago.
3. Pages are cut anew at most four times a second, so many requests cost little more than their
   bytes.
4. The bytes of all answers share a budget. A flood of requests uses it up; then clients get a busy
   refusal, and use the DHT.
"""

from collections.abc import Callable, Iterable

import msgspec

from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.wire.member_messages import (
    MOST_LISTED,
    MOST_PAGES,
    PAGE_BYTES,
    AskPulses,
    AskRecords,
    RecordsAre,
)
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import BUSY, Refusal
from giaann_p2p.swarm.wire.pulse import ID_BYTES, bare, newest
from giaann_p2p.swarm.wire.record import Role

NEWS = 12.0
"""Seconds for which new records are sent whole to clients that ask for pulses."""
MOST_BURST = 32 << 20
"""Most bytes of records that are sent in one burst: two directories of the largest size."""
_A_SECOND = MOST_BURST // 4
"""Bytes by which the budget grows in a second."""
_AN_ANSWER = 1 << 12
"""Bytes of the budget that an answer costs in addition to its records."""
_FRESH = 0.25
"""Seconds for which pages are used before they are cut anew."""
_SPENT = Refusal(f"{BUSY}: this peer has sent its directory too often; ask another one")


class _Cut(msgspec.Struct, frozen=True):
    at: float
    records: list[list[bytes]]
    pulses: list[list[bytes]]
    since: dict[bytes, float]
    """The time at which each record, by its id, was first among those to send."""


class DirectoryPages:
    """One peer's directory in pages, and the budget for sending them."""

    def __init__(self, directory: Directory, held: Callable[[Role], list[bytes]]) -> None:
        """Serve the records of a directory; `held` returns those that this peer keeps."""
        self._directory, self._held = directory, held
        self._cut: dict[Role, _Cut] = {}
        self._left = float(MOST_BURST)  # bytes that may be sent at the time `_counted`
        self._counted = 0.0

    def __repr__(self) -> str:
        return f"<DirectoryPages: {self._left:,.0f} bytes may be sent>"

    def answer(self, question: AskRecords | AskPulses, now: float) -> Message:
        """Return a page of records, or a busy refusal; `now` is the time by which they expire."""
        cut = self._cut_now(question.role, now)
        pages = cut.pulses if isinstance(question, AskPulses) else cut.records
        page = pages[question.page] if question.page < len(pages) else []
        self._left = min(MOST_BURST, self._left + max(0.0, now - self._counted) * _A_SECOND)
        self._counted = now
        cost = sum(map(len, page)) + _AN_ANSWER
        if cost > self._left:
            return _SPENT
        self._left -= cost
        return RecordsAre(len(pages), page)

    def _cut_now(self, role: Role, now: float) -> _Cut:
        last = self._cut.get(role)
        if last is not None and 0 <= now - last.at < _FRESH:
            return last
        found = newest([*self._held(role), *self._directory.records(now, role)])
        pulses = [bare(record) for record in found]
        before = last.since if last else {}
        since = {pulse[:ID_BYTES]: before.get(pulse[:ID_BYTES], now) for pulse in pulses}
        short = [
            record if now - since[pulse[:ID_BYTES]] < NEWS else pulse
            for record, pulse in zip(found, pulses, strict=True)
        ]
        cut = self._cut[role] = _Cut(now, paged(found), paged(short), since)
        return cut


def paged(records: Iterable[bytes]) -> list[list[bytes]]:
    """Cut records into pages, at least one; leave out those that exceed `MOST_PAGES`."""
    pages, room = [list[bytes]()], PAGE_BYTES
    for record in records:
        if len(record) > room or len(pages[-1]) == MOST_LISTED:
            if len(pages) == MOST_PAGES:
                break
            pages.append([])
            room = PAGE_BYTES
        pages[-1].append(record)
        room -= len(record)
    return pages
