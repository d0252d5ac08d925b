"""The chunks on a founder's list: one form, bounded, looked up."""

import random

import msgspec
import numpy as np
import pytest

from giaann_p2p.errors import TokenError, UsageError
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.member_messages import RevokedIs
from giaann_p2p.swarm.wire.messages import MOST_BYTES as MOST_OF_MESSAGE
from giaann_p2p.swarm.wire.messages import OrphansAre, decode, encode
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.revoked import MOST_BYTES, MOST_REVOKED, Revoked
from giaann_p2p.swarm.wire.withdrawal_filter import WithdrawalFilter
from giaann_p2p.swarm.wire.withdrawn import (
    MOST,
    NONE,
    Chunk,
    Part,
    Withdrawn,
    fault_of,
    pages_of,
    parts_of,
    roots_in,
)
from tests.helpers_swarm import JOB, OTHER_JOB, SWARM_ID

FOUNDER, OTHER = Identity.from_seed(b"f" * 32), Identity.from_seed(b"o" * 32)
FIRST = Revoked(SWARM_ID).next(FOUNDER, {OTHER.peer}, [OTHER.peer])


def root(number: int) -> bytes:
    return number.to_bytes(16, "little")


def some(*numbers: int, job: bytes = JOB) -> dict[Chunk, bytes]:
    return {(job, number): root(number) for number in numbers}


def read(data: bytes) -> Revoked:
    return Revoked.read(data, SWARM_ID, FOUNDER.peer)


def test_chunks_are_looked_up_by_job_and_number() -> None:
    found = Withdrawn(parts_of(some(3, 0, 99) | some(7, job=OTHER_JOB)))
    assert [found.root_of(JOB, n) for n in (0, 3, 99)] == [root(0), root(3), root(99)]
    assert {found.root_of(JOB, n) for n in (1, 7, 100, WITHDRAWN)} == {b""}
    assert found.root_of(OTHER_JOB, 7) == root(7)
    assert found.root_of(bytes(16), 7) == NONE.root_of(JOB, 0) == b""
    assert found.chunks == Applied().plus(JOB, 0).plus(JOB, 3).plus(JOB, 99).plus(OTHER_JOB, 7)
    assert repr(found) == "<Withdrawn: 4 chunks of 2 jobs>"


def test_their_one_form_says_the_same() -> None:
    rng = random.Random(1)
    roots = {(rng.choice([JOB, OTHER_JOB]), rng.randrange(WITHDRAWN)): rng.randbytes(16)}
    for _ in range(50):
        roots[rng.choice([JOB, OTHER_JOB]), rng.randrange(1 << 16)] = rng.randbytes(16)
    parts = parts_of(roots)
    assert fault_of(parts) == ""
    assert roots_in(parts) == roots
    pages = pages_of(roots, 20)
    assert [sum(map(len, page)) for page in pages] == [20, 20, len(roots) - 40]
    assert [chunk for page in pages for chunk in roots_in(page)] == sorted(roots)
    assert pages_of({}, 20) == [()]


def numbers(*some: int) -> bytes:
    return np.array(some, "<u4").tobytes()


FULL = Part(bytes(16), numbers(*range(MOST)), bytes(16 * MOST))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([Part(JOB, numbers(2, 1), bytes(32))], "chunks that are not in ascending order"),
        ([Part(JOB, numbers(2, 2), bytes(32))], "chunks that are not in ascending order"),
        ([Part(JOB, numbers(WITHDRAWN), bytes(16))], "chunks that are not in ascending order"),
        ([Part(JOB, numbers(1), bytes(32))], "chunks that do not have one root each"),
        ([Part(JOB, numbers(1) + b"1", bytes(16))], "chunks that do not have one root each"),
        ([Part(JOB, numbers(1), bytes(16))] * 2, "jobs that are not in ascending order"),
        (
            [Part(JOB, numbers(1), bytes(16)), Part(bytes(16), numbers(1), bytes(16))],
            "jobs that are",
        ),
        ([FULL, Part(JOB, numbers(1), bytes(16))], "more than 65,536 chunks"),
    ],
)
def test_what_is_not_in_that_form_is_refused(parts: list[Part], words: str) -> None:
    assert words in fault_of(parts)
    draft = msgspec.structs.replace(FIRST, withdrawn=tuple(parts), signature=b"")
    signed = msgspec.structs.replace(draft, signature=FOUNDER.sign("revoked", draft.to_bytes()))
    with pytest.raises(TokenError, match=words):
        read(signed.to_bytes())


def test_a_list_keeps_what_is_withdrawn_and_takes_more_on() -> None:
    second = FIRST.next(FOUNDER, {OTHER.peer}, [OTHER.peer], some(1, 2))
    third = second.next(FOUNDER, {Peer(bytes(32))}, (), {**some(5), (JOB, 2): bytes(16)})
    assert read(third.to_bytes()) == third
    assert roots_in(third.withdrawn) == some(1, 2, 5)
    forged = msgspec.structs.replace(third, withdrawn=parts_of(some(1, 2, 5, 6)))
    with pytest.raises(TokenError, match="did not sign"):
        read(forged.to_bytes())


def test_the_longest_list_goes_into_a_message_and_no_longer_one_is_made() -> None:
    peers = {Peer(number.to_bytes(32, "little")) for number in range(MOST_REVOKED)}
    roots = {(number.to_bytes(16, "big"), number): root(number) for number in range(MOST)}
    longest = FIRST.next(FOUNDER, peers, peers, roots)
    assert len(longest.to_bytes()) <= MOST_BYTES
    assert len(encode(RevokedIs(longest.to_bytes()))) < MOST_OF_MESSAGE
    assert read(longest.to_bytes()) == longest
    with pytest.raises(TokenError, match="65,537 chunks are too many: at most 65,536"):
        longest.next(FOUNDER, peers, (), some(1))
    of_one = FIRST.next(FOUNDER, peers, peers, some(*range(MOST)))
    assert len(of_one.to_bytes()) < MOST_BYTES // 2


def test_what_is_sought_is_in_one_edition() -> None:
    jobs, authors = [bytes([n]) * 16 for n in (3, 1, 2)], [FOUNDER.peer]
    sought = WithdrawalFilter.of(jobs, authors, 1_800_000_000)
    first = Revoked(SWARM_ID).next(FOUNDER, set(), sought=sought)
    read = Revoked.read(first.to_bytes(), SWARM_ID, FOUNDER.peer)
    assert read.sought == sought
    assert read.sought.jobs == tuple(sorted(jobs))
    assert not read.next(FOUNDER, set()).sought
    disorder = WithdrawalFilter(jobs=tuple(jobs))
    wrong = Revoked(SWARM_ID).next(FOUNDER, set(), sought=disorder).to_bytes()
    with pytest.raises(TokenError, match="a search that is not in ascending order"):
        Revoked.read(wrong, SWARM_ID, FOUNDER.peer)


def test_owners_tell_theirs_page_by_page() -> None:
    orphans = Orphans()
    roots = some(*range(20_000))
    orphans.found(4, roots)
    pages = [orphans.page(4, at) for at in range(3)]
    assert [page.pages for page in pages] == [3] * 3
    assert {chunk: r for page in pages for chunk, r in roots_in(page.found).items()} == roots
    assert decode(encode(pages[0])) == pages[0]
    with pytest.raises(UsageError, match="there is no page 3; the last is 2"):
        orphans.page(4, 3)
    with pytest.raises(UsageError, match="busy: this peer has not finished"):
        orphans.page(5, 0)
    orphans.found(3, {})  # by an older list: found out too late
    assert orphans.page(1, 0) == pages[0]
    orphans.found(5, {})
    assert orphans.page(4, 0) == OrphansAre(5, 1, ())
    assert repr(orphans) == "<Orphans by list 5: 0>"
