"""Floods of records and pulses: they hide nobody, and cost little."""

import asyncio

import pytest

from giaann_p2p.node.members import lookout as module
from giaann_p2p.swarm.members import entry
from giaann_p2p.swarm.wire.identity import SIGNATURE_BYTES, Identity
from giaann_p2p.swarm.wire.pulse import (
    BARE_BYTES,
    LINK_BYTES,
    MOST_PULSES,
    PULSE_BYTES,
    Pulse,
    apart,
    bare,
    batch,
    joined,
)
from giaann_p2p.swarm.wire.record import (
    FRONT_BYTES,
    LIFETIME,
    bucket_of,
    signed,
)
from tests.unit.node.helpers import EPOCH, identity
from tests.unit.node.members.test_lookout import ME, Place, announcement, play
from tests.unit.swarm.helpers_pulses import chained


@pytest.mark.slow
def test_a_flood_of_forged_records_hides_nobody_and_costs_little() -> None:
    """As from one node of the board, whose answer comes first."""

    async def story(place: Place) -> None:
        honest = signed(identity(2), announcement(identity(2), 99))
        pulse, body = honest[:PULSE_BYTES], honest[FRONT_BYTES:]
        for number in range(17_000):
            forged = pulse + number.to_bytes(SIGNATURE_BYTES, "little") + body
            place.board.leave(b"x" * 32, "storage", forged, 1e9)
        honest = [identity(number) for number in range(2, 20)]
        for one in honest:
            place.leave(one)
        await place.lookout.look()
        assert {one.peer for one in honest} < place.members() | {ME.peer}
        assert place.lookout.refused <= 2  # one a look
        place.board.lose(ME.peer)
        await asyncio.sleep(100)
        for one in honest:
            place.leave(one, 2)
        place.board.lose(ME.peer, lost=False)
        refused = place.lookout.refused
        await place.lookout.look()  # all at one stroke
        assert {one.peer for one in honest} < place.members() | {ME.peer}
        assert place.lookout.refused <= refused + 2

    play(story)


def test_a_flood_of_wrong_pulses_hides_nobody_and_costs_little() -> None:
    """As from one node of the board: a true record with links that its peer never showed."""

    async def story(place: Place) -> None:
        true = chained(identity(2), announcement(identity(2)))
        place.board.leave(identity(2).peer, "storage", true, 1e9)
        await place.lookout.look()
        for number in range(5_000):
            wrong = Pulse(1, number.to_bytes(LINK_BYTES, "little"))
            place.board.leave(b"x" * 32, "storage", joined(wrong, true[PULSE_BYTES:]), 1e9)
        honest = [identity(number) for number in range(3, 20)]
        for one in honest:
            place.leave(one)
        await asyncio.sleep(1)
        refused = place.lookout.refused
        await place.lookout.look()
        assert {one.peer for one in honest} < place.members() | {ME.peer}
        assert refused < place.lookout.refused <= refused + 2  # one a look
        await asyncio.sleep(LIFETIME)
        assert identity(2).peer not in place.members()

    play(story)


@pytest.mark.parametrize("number", [1, MOST_PULSES + 1])
def test_a_flood_of_wrong_bare_pulses_hides_nobody_and_costs_little(number: int) -> None:
    async def story(place: Place) -> None:
        true = chained(identity(2), announcement(identity(2)))
        place.board.leave(identity(2).peer, "storage", true, 1e9)
        await place.lookout.look()
        for link in range(5_000):
            wrong = Pulse(number, link.to_bytes(LINK_BYTES, "little"))
            short = bare(joined(wrong, true[PULSE_BYTES:]))
            place.board.leave(b"x" * 32, "storage", short, 1e9)
        honest = [identity(number) for number in range(3, 20)]
        for one in honest:
            place.leave(one)
        await asyncio.sleep(1)
        refused = place.lookout.refused
        await place.lookout.look()
        assert {one.peer for one in honest} < place.members() | {ME.peer}
        assert refused < place.lookout.refused <= refused + 2  # one a look

    play(story)


@pytest.mark.parametrize("merged", [True, False])
def test_a_flood_of_old_records_makes_nobody_distrust_its_clock(
    merged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from the node of the board whose answer comes first.

    It is enough that a true record is in the directory, or that it is examined.
    """

    async def story(place: Place) -> None:
        strangers = [Identity.from_seed(number.to_bytes(32, "big")) for number in range(1000, 1300)]
        old = [signed(one, announcement(one, now=EPOCH - 30 * 86_400)) for one in strangers]
        honest = [signed(one, announcement(one)) for one in map(identity, range(2, 4))]

        async def look(role: str) -> list[list[bytes]]:
            return [old, honest, honest]

        monkeypatch.setattr(place.lookout._board, "look", look)
        if not merged:
            monkeypatch.setattr(place.lookout, "_sees_others", lambda now: False)
        assert await place.lookout.look()
        assert place.lookout.whole.is_set()
        assert place.lookout.clock_fault == ""

    play(story)


def test_a_flood_of_what_continues_no_record_hides_nobody_and_costs_little() -> None:
    """As from one node of the board: short pulses that begin like a known record's."""

    async def story(place: Place) -> None:
        true = chained(identity(2), announcement(identity(2)))
        place.board.leave(identity(2).peer, "storage", true, 1e9)
        await place.lookout.look()
        for link in range(5_000):
            wrong = joined(Pulse(1, link.to_bytes(LINK_BYTES, "little")), true[PULSE_BYTES:])
            (short,) = apart(batch(bucket_of(identity(2).peer), [bare(wrong)]))
            place.board.leave(b"x" * 32, "storage", short, 1e9)
        honest = [identity(number) for number in range(3, 20)]
        for one in honest:
            place.leave(one)
        await asyncio.sleep(1)
        tried = list[Pulse]()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(entry, "continues", lambda pulse, known, peer: tried.append(pulse))
            await place.lookout.look()
        assert {one.peer for one in honest} < place.members() | {ME.peer}
        assert 0 < len(tried) <= 2 * (module._MOST_VAIN + 1)  # in two looks
        assert 0 < place.lookout.refused <= 2  # one a look

    play(story)


def test_a_flood_of_pulses_of_no_record_hides_nobody() -> None:
    async def story(place: Place) -> None:
        for number in range(5_000):
            place.board.leave(b"x" * 32, "storage", number.to_bytes(BARE_BYTES, "big"), 1e9)
        honest = [identity(number) for number in range(3, 20)]
        for one in honest:
            place.leave(one)
        await place.lookout.look()
        assert {one.peer for one in honest} < place.members() | {ME.peer}
        assert place.lookout.refused == 0

    play(story)


def test_a_flood_of_strangers_records_hides_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RECORDS", 64)

    async def story(place: Place) -> None:
        for number in range(300):
            stranger = Identity.from_seed(number.to_bytes(32, "little"))
            said = signed(stranger, announcement(stranger))
            place.board.leave(b"x" * 32, "storage", said, 1e9)
        honest = [identity(number) for number in range(2, 20)]
        for one in honest:
            said = signed(one, announcement(one))
            place.board.leave(b"y" * 32, "storage", said, 1e9)
        await place.lookout.look()
        assert {one.peer for one in honest} < place.members()
        assert len(place.members()) <= 2 * 64 + 1  # in two looks, with itself

    play(story)
