"""Pulses: each leads to the ones before, and to nothing else; how far is bounded."""

import random

import pytest

from giaann_p2p.swarm.wire import pulse as module
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.pulse import (
    ID_BYTES,
    LINK_BYTES,
    MOST_PULSES,
    PULSE_BYTES,
    SHORT_BYTES,
    Pulse,
    apart,
    bare,
    batch,
    beginning,
    bucket_in,
    continues,
    id_of,
    is_bare,
    is_short,
    joined,
    leads,
    newest,
    pulse_in,
    pulse_of,
    seed_of,
    shown_by,
    split,
)

ONE, OTHER = (Identity.from_seed(bytes([n]) * 32).peer for n in (1, 2))
SEED = seed_of(b"secret", 7)
CHAIN = [pulse_of(SEED, ONE, number) for number in range(MOST_PULSES + 1)]
ANCHOR = CHAIN[0].link


def test_a_pulse_leads_to_each_one_before() -> None:
    assert CHAIN[-1].link == SEED
    for number in range(1, MOST_PULSES + 1):
        for known in range(0, number, 7):
            assert leads(CHAIN[number], CHAIN[known], ANCHOR, ONE)


def test_nothing_else_leads_anywhere() -> None:
    known, rng = CHAIN[5], random.Random(1)
    others = [
        Pulse(9, rng.randbytes(LINK_BYTES)),
        Pulse(8, CHAIN[9].link),
        Pulse(10, CHAIN[9].link),
        Pulse(6, CHAIN[5].link),
        Pulse(6, CHAIN[0].link),
        pulse_of(seed_of(b"secret", 8), ONE, 9),
        pulse_of(SEED, OTHER, 9),
        Pulse(9, CHAIN[9].link[:-1] + b"?"),
        Pulse(9, b""),
    ]
    for wrong in others:
        assert not leads(wrong, known, ANCHOR, ONE), wrong
    assert not leads(CHAIN[9], known, ANCHOR, OTHER)
    assert not leads(CHAIN[9], Pulse(0, CHAIN[1].link), CHAIN[1].link, ONE)


def test_a_pulse_is_valid_whatever_else_a_reader_knows() -> None:
    """A peer that finds two links with the same hash can split its chain, and show either."""
    elsewhere = Pulse(5, b"another link")
    assert leads(CHAIN[9], elsewhere, ANCHOR, ONE)
    assert not leads(Pulse(9, b"another link"), elsewhere, ANCHOR, ONE)


def test_one_step_is_one_hash_and_all_are_no_more_than_the_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = list[bytes]()
    blake2b = module.blake2b

    def counting(link: bytes, **how: object) -> object:
        steps.append(link)
        return blake2b(link, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "blake2b", counting)
    for wrong, known, count in ((False, 8, 1), (False, 3, 6), (True, 8, 9), (True, 0, 9)):
        steps.clear()
        pulse = Pulse(9, bytes(LINK_BYTES)) if wrong else CHAIN[9]
        assert leads(pulse, CHAIN[known], ANCHOR, ONE) != wrong
        assert len(steps) == count


def test_chains_differ() -> None:
    seeds = {seed_of(secret, number) for secret in (b"", b"a", b"b" * 64) for number in (0, 1, 2)}
    assert len(seeds) == 9
    assert len({pulse_of(seed, peer, 0) for seed in seeds for peer in (ONE, OTHER)}) == 18


def test_a_pulse_stands_in_front_of_its_record() -> None:
    for number in (0, 1, 255, 256, 65535):
        pulse = Pulse(number, b"twelve bytes")
        data = joined(pulse, b"record")
        assert len(data) == PULSE_BYTES + len(b"record")
        assert split(data) == (pulse, b"record")
    for data in (b"", b"\1", bytes(PULSE_BYTES - 1)):
        assert split(data)[1] == b""


def test_a_bare_pulse_names_its_record() -> None:
    data = joined(CHAIN[7], b"a record" * 20)
    short = bare(data)
    assert is_bare(short)
    assert not is_bare(data)
    assert short == id_of(b"a record" * 20) + data[:PULSE_BYTES]
    assert shown_by(short[ID_BYTES:]) == CHAIN[7]
    assert id_of(b"another") != id_of(b"a record" * 20)


def test_of_each_record_the_newest_pulse_is_kept() -> None:
    one, other = b"one", b"other"
    told = [joined(Pulse(n, bytes(LINK_BYTES)), of) for n, of in ((1, one), (300, other), (2, one))]
    assert newest([*told, *told[:2]]) == [told[2], told[1]]
    assert newest([]) == []


def test_a_batch_comes_apart_into_the_short_pulses_that_it_was_made_of() -> None:
    rng = random.Random(1)
    records = [joined(CHAIN[number], rng.randbytes(100)) for number in (0, 1, 77, MOST_PULSES)]
    for count in range(len(records) + 1):
        together = batch(15, map(bare, records[:count]))
        assert len(together) == 1 + 16 * count
        assert not is_bare(together)
        found = list(apart(together))
        assert all(len(one) == SHORT_BYTES and is_short(one) for one in found)
        for one, data in zip(found, records, strict=False):
            assert bucket_in(one) == 15
            assert one.startswith(beginning(15, id_of(data[PULSE_BYTES:])))
            assert pulse_in(one) == shown_by(data)
        assert len(found) == count
    for other in (b"", records[0], bare(records[0]), bytes(17), together[:-1]):
        assert list(apart(other)) == [other]
        assert not is_short(other)


def test_a_pulse_continues_an_earlier_one_of_its_chain_alone() -> None:
    assert continues(CHAIN[9], CHAIN[5], ONE)
    assert not continues(CHAIN[9], CHAIN[5], OTHER)
    assert not continues(CHAIN[9], Pulse(5, CHAIN[4].link), ONE)
