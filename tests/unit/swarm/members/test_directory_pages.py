"""A directory in pages, for clients that are no nodes of the DHT."""

from typing import cast

import pytest

from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.members.directory_pages import MOST_BURST, NEWS, DirectoryPages, paged
from giaann_p2p.swarm.wire.member_messages import (
    MOST_LISTED,
    MOST_PAGES,
    PAGE_BYTES,
    AskPulses,
    AskRecords,
    RecordsAre,
)
from giaann_p2p.swarm.wire.messages import Refusal
from giaann_p2p.swarm.wire.pulse import bare
from giaann_p2p.swarm.wire.record import Role
from tests.helpers_swarm import RULES
from tests.unit.swarm.helpers_pulses import beat
from tests.unit.swarm.members.test_peers_view import NOW, ONE, SWARM, THREE, TWO, record

HALF = bytes(PAGE_BYTES // 2)


class Known:
    """A directory of records that are counted by their bytes only."""

    def __init__(self, *records: bytes) -> None:
        self.found, self.reads = [*records], 0

    def records(self, now: float, role: Role) -> list[bytes]:
        self.reads += 1
        return list(self.found)


def pages_of(known: Known) -> DirectoryPages:
    return DirectoryPages(cast(Directory, known), lambda role: [])


@pytest.mark.parametrize(
    ("records", "sizes"),
    [
        ([], [0]),
        ([b"a"], [1]),
        ([HALF, HALF], [2]),
        ([HALF, HALF, b"a"], [2, 1]),
        ([HALF, HALF + b"a", b"b"], [1, 2]),
        ([b""] * (MOST_LISTED + 1), [MOST_LISTED, 1]),
        ([HALF] * (2 * MOST_PAGES + 1), [2] * MOST_PAGES),
    ],
)
def test_pages_are_full_and_bounded(records: list[bytes], sizes: list[int]) -> None:
    found = paged(records)
    assert [len(page) for page in found] == sizes
    kept = [one for page in found for one in page]
    assert kept == records[: len(kept)]


def test_a_page_has_the_live_records_of_one_role() -> None:
    directory = Directory(SWARM, lambda: RULES)
    compute = record(THREE, role="compute", capacity=0, device="cpu", slots=3)
    stores = [record(ONE), record(TWO)]
    for one in (*stores, compute):
        directory.merge(one, NOW)
    pages = DirectoryPages(directory, lambda role: [])
    assert pages.answer(AskRecords("storage"), NOW) == RecordsAre(1, stores)
    assert pages.answer(AskRecords("compute"), NOW) == RecordsAre(1, [compute])
    assert pages.answer(AskRecords("compute", 1), NOW) == RecordsAre(1, [])
    assert pages.answer(AskRecords("storage"), NOW + 40) == RecordsAre(1, [])


def test_what_the_peer_keeps_for_others_goes_first_and_nothing_goes_twice() -> None:
    directory = Directory(SWARM, lambda: RULES)
    old, new, other = record(ONE, 1), record(ONE, 2), record(TWO)
    for one in (old, other):
        directory.merge(one, NOW)
    kept: dict[Role, list[bytes]] = {"storage": [other, new], "compute": []}
    pages = DirectoryPages(directory, kept.__getitem__)
    assert pages.answer(AskRecords("storage"), NOW) == RecordsAre(1, [other, new, old])
    assert pages.answer(AskRecords("compute"), NOW) == RecordsAre(1, [])


def test_a_record_is_listed_once_with_the_newest_pulse() -> None:
    directory = Directory(SWARM, lambda: RULES)
    one, two = record(ONE), record(TWO)
    directory.merge(beat(one, ONE, 1), NOW)
    directory.merge(beat(two, TWO, 4), NOW)
    kept: dict[Role, list[bytes]] = {
        "storage": [beat(one, ONE, 2), beat(two, TWO, 3)],
        "compute": [],
    }
    pages = DirectoryPages(directory, kept.__getitem__)
    listed = [beat(one, ONE, 2), beat(two, TWO, 4)]
    assert pages.answer(AskRecords("storage"), NOW) == RecordsAre(1, listed)


def test_who_asks_for_pulses_gets_whole_only_what_is_new() -> None:
    directory = Directory(SWARM, lambda: RULES)
    one, two = record(ONE), record(TWO)
    pages = DirectoryPages(directory, lambda role: [])
    directory.merge(one, NOW)
    assert pages.answer(AskPulses("storage"), NOW) == RecordsAre(1, [one])
    directory.merge(two, NOW + 5)
    later = beat(one, ONE, 1)
    directory.merge(later, NOW + NEWS)
    assert pages.answer(AskPulses("storage"), NOW + NEWS) == RecordsAre(1, [bare(later), two])
    assert pages.answer(AskRecords("storage"), NOW + NEWS) == RecordsAre(1, [later, two])
    renewed = record(ONE, 2)
    directory.merge(renewed, NOW + NEWS + 1)
    known = [renewed, two]  # it was not asked since, so this one is new to it
    assert pages.answer(AskPulses("storage"), NOW + NEWS + 1) == RecordsAre(1, known)
    assert pages.answer(AskPulses("compute"), NOW + NEWS + 1) == RecordsAre(1, [])


def test_pages_are_cut_anew_after_a_while() -> None:
    first = [HALF, HALF[1:] + b"1"]
    known = Known(*first, b"last")
    pages = pages_of(known)
    for question in (AskRecords("storage"), AskRecords("storage", 1)):
        assert pages.answer(question, NOW) == RecordsAre(2, [b"last"] if question.page else first)
    assert known.reads == 1
    known.found = [b"another"]
    assert pages.answer(AskRecords("storage"), NOW + 0.2) == RecordsAre(2, first)
    assert pages.answer(AskRecords("storage"), NOW + 0.25) == RecordsAre(1, [b"another"])
    pages.answer(AskRecords("storage"), NOW)  # a clock that went back
    assert known.reads == 3


@pytest.mark.parametrize("known", [Known(HALF, HALF[1:] + b"1"), Known()], ids=["full", "empty"])
def test_a_flood_of_requests_is_refused_until_the_budget_grows(known: Known) -> None:
    pages, sent = pages_of(known), 0
    while isinstance(answer := pages.answer(AskRecords("storage"), NOW), RecordsAre):
        sent += 1
        assert sum(map(len, answer.records)) * sent <= MOST_BURST
    assert isinstance(answer, Refusal)
    assert answer.is_busy
    assert isinstance(pages.answer(AskRecords("storage"), NOW - 9), Refusal)
    assert isinstance(pages.answer(AskRecords("storage"), NOW + 1), RecordsAre)
