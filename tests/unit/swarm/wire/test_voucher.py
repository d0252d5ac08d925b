"""Vouchers: a delta counts if enough peers signed just this one."""

from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from giaann_p2p.errors import DamagedError, GiaannError, MessageError
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.seal import DIGEST, Seal
from giaann_p2p.store.update import anything
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.messages import Piece, Push
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.token import Rights, founded
from giaann_p2p.swarm.wire.voucher import (
    MOST_REDUNDANCY,
    Notary,
    Voucher,
    authors_of,
    is_disowned,
    is_true,
    sealing,
    vouched,
    words_of,
)
from tests.helpers_swarm import (
    AUTHORS,
    JOB,
    LAYOUT,
    LESSONS,
    OTHER_JOB,
    RULES,
    SHARDS,
    SPEC,
    SWARM_ID,
    Listed,
)

ALL = np.arange(SHARDS, dtype=np.uint16)
CHUNK = 3
TREE = LESSONS.tree(CHUNK)
PARCEL = LESSONS.parcel(CHUNK, ALL)


def notary(redundancy: int = 1) -> Notary:
    return Notary(SWARM_ID, lambda: RULES, redundancy, Listed())


def by(*authors: Identity, chunk: int = CHUNK) -> list[Voucher]:
    root = LESSONS.tree(chunk).root
    return [vouched(author, SWARM_ID, JOB, chunk, root) for author in authors]


class Came(NamedTuple):
    """A push that somebody got."""

    vouchers: list[Voucher]
    told: Shards = ALL
    here: Shards = ALL
    job: bytes = JOB
    chunk: int = CHUNK
    delta: int = CHUNK
    """Of which chunk it is in truth."""

    def taken(self, redundancy: int = 1) -> Seal:
        """Return the seal that is kept."""
        parcel = LESSONS.parcel(self.delta, self.told)
        seal = sealing(self.vouchers, TREE)(self.told)
        push = Push(self.job, self.chunk, packed(self.told, SHARDS), parcel, seal)
        delta_checks = DeltaChecks(SPEC, lambda: RULES, notary(redundancy).check)
        return delta_checks.packed(push, self.told, self.here).unpacked().seal


@pytest.mark.parametrize("shards", [[0], [1, 2], [0, 1, 2, 3]])
def test_a_part_that_its_author_signed_is_taken_and_kept_with_its_name(shards: list[int]) -> None:
    told = np.array(shards, np.uint16)
    seal = Came(by(AUTHORS[0]), told, told[:1]).taken()
    assert authors_of(seal) == [AUTHORS[0].peer]
    assert seal == sealing(by(AUTHORS[0]), TREE)(told[:1])


@pytest.mark.parametrize(
    "came",
    [
        Came(by(AUTHORS[0]), delta=CHUNK + 1),
        Came(by(AUTHORS[0]), told=np.array([2], np.uint16), delta=CHUNK + 1),
        Came(by(AUTHORS[0]), chunk=CHUNK + 1),
        Came(by(AUTHORS[0]), job=OTHER_JOB),
        Came(by(AUTHORS[0], chunk=CHUNK + 1)),
        Came([msgspec.structs.replace(by(AUTHORS[0])[0], author=AUTHORS[1].peer)]),
        Came([msgspec.structs.replace(by(AUTHORS[0])[0], signature=bytes(64))]),
        Came([vouched(AUTHORS[0], bytes(32), JOB, CHUNK, TREE.root)]),
        Came([*by(AUTHORS[0]), *by(AUTHORS[1], chunk=CHUNK + 1)]),
    ],
)
def test_what_its_author_did_not_sign_is_refused(came: Came) -> None:
    with pytest.raises(MessageError, match="did not sign this delta"):
        came.taken()


def take(authors: list[Identity], members: Listed, chunk: int = CHUNK) -> None:
    """Take a delta in for which these stand, as it comes from another owner."""
    check = Notary(SWARM_ID, lambda: RULES, 1, members).check
    piece = Piece(JOB, chunk, packed(ALL, SHARDS), PARCEL, sealing(by(*authors), TREE)(ALL))
    DeltaChecks(SPEC, lambda: RULES, check).packed(piece, ALL, ALL).unpacked()


def test_what_only_the_disowned_stand_for_is_pushed_no_longer() -> None:
    one, other = AUTHORS[:2]

    def push(authors: list[Identity], members: Listed) -> None:
        seal = sealing(by(*authors), TREE)(ALL)
        came = Push(JOB, CHUNK, packed(ALL, SHARDS), PARCEL, seal)
        DeltaChecks(SPEC, lambda: RULES, anything, members).packed(came, ALL, ALL).unpacked()

    for authors, disowned in (([one], []), ([one], [other]), ([one, other], [one])):
        push(authors, Listed(*[gone.peer for gone in disowned]))
    for authors in ([one], [one, other]):
        with pytest.raises(MessageError, match="are disowned"):
            push(authors, Listed(one.peer, other.peer))
        take(authors, Listed(one.peer, other.peer))  # of another owner, to be withdrawn as one
    assert not is_disowned([], Listed())


def test_what_the_founder_lists_is_withdrawn_and_nothing_else_whoever_signs() -> None:
    one, other = AUTHORS[:2]
    listed = {(JOB, CHUNK): TREE.root}
    for authors, disowned in (([one], [one]), ([one], []), ([one, other], [one])):
        members = Listed(*[gone.peer for gone in disowned], roots=listed)
        take(authors, members, CHUNK | WITHDRAWN)
    for roots in ({}, {(JOB, CHUNK + 1): TREE.root}, {(OTHER_JOB, CHUNK): TREE.root}):
        with pytest.raises(MessageError, match="chunk 3 is not withdrawn by the founder's list"):
            take([one], Listed(one.peer, roots=roots), CHUNK | WITHDRAWN)


def test_of_a_withdrawn_chunk_only_that_delta_is_withdrawn_that_is_listed() -> None:
    """Else who is disowned could sign, in its name, what others taught in another chunk."""
    (liar,) = AUTHORS[:1]
    members = Listed(liar.peer, roots={(JOB, CHUNK): LESSONS.tree(CHUNK + 1).root})
    with pytest.raises(MessageError, match="the founder's list withdraws another delta"):
        take([liar], members, CHUNK | WITHDRAWN)
    with pytest.raises(MessageError, match="did not sign"):  # another chunk's
        take([liar], Listed(roots={(JOB, CHUNK + 1): TREE.root}), CHUNK + 1 | WITHDRAWN)


def test_as_many_peers_as_the_swarm_wants_have_to_stand_for_it() -> None:
    assert len(authors_of(Came(by(*AUTHORS[:2])).taken(2))) == 2
    assert len(authors_of(Came(by(*AUTHORS[:3])).taken(2))) == 3
    for vouchers in (by(AUTHORS[0]), [*by(AUTHORS[0]), *by(AUTHORS[0])]):
        with pytest.raises(MessageError, match="vouchers of 1 peers; this swarm requires 2"):
            Came(vouchers).taken(2)


@pytest.mark.parametrize(
    "words",
    [
        b"",
        b"\x90",
        b"garbage",
        words_of(by(AUTHORS[0]))[:-1],
        words_of(by(*[AUTHORS[0]] * (MOST_REDUNDANCY + 1))),
        msgspec.msgpack.encode([[b"short", bytes(64), b""]]),
        msgspec.msgpack.encode([[bytes(32), bytes(63), b""]]),
        msgspec.msgpack.encode([[bytes(32), bytes(64), bytes(2000)]]),
    ],
)
def test_words_that_are_none(words: bytes) -> None:
    parcel = LESSONS.parcel(CHUNK, ALL)
    push = Push(JOB, CHUNK, packed(ALL, SHARDS), parcel, Seal(words, TREE.shape))
    with pytest.raises(MessageError, match="the vouchers cannot be read"):
        DeltaChecks(SPEC, lambda: RULES, notary().check).packed(push, ALL, ALL).unpacked()


@pytest.mark.parametrize("beside", [b"x", bytes(DIGEST), bytes(DIGEST * 40)])
def test_a_seal_that_is_broken(beside: bytes) -> None:
    parcel = LESSONS.parcel(CHUNK, ALL)
    push = Push(
        JOB, CHUNK, packed(ALL, SHARDS), parcel, Seal(words_of(by(AUTHORS[0])), TREE.shape, beside)
    )
    with pytest.raises(GiaannError, match=r"a seal (ends within a digest|has too many branches)"):
        DeltaChecks(SPEC, lambda: RULES, notary().check).packed(push, ALL, ALL).unpacked()


def test_a_parcel_that_is_none_is_told_so_whoever_stands_for_it() -> None:
    push = Push(JOB, CHUNK, packed(ALL, SHARDS), encode(LESSONS.delta(1))[:-1])
    with pytest.raises(DamagedError):
        DeltaChecks(SPEC, lambda: RULES, notary().check).packed(push, ALL, ALL).unpacked()


FOUNDER = AUTHORS[3]
MEMBERS = Manifest.founded(FOUNDER, "members", spec=SPEC, layout=LAYOUT, admission="token")


def token(member: Identity, rights: Rights = Rights.COMPUTE, until: int = 10) -> bytes:
    return founded(FOUNDER, MEMBERS.swarm_id, member.peer, rights, until).to_bytes()


def member_said(author: Identity, shown: bytes) -> list[Voucher]:
    return [vouched(author, MEMBERS.swarm_id, JOB, CHUNK, TREE.root, shown)]


def kept_by_members(vouchers: list[Voucher]) -> Seal:
    check = Notary(MEMBERS.swarm_id, lambda: RULES, 1, Admission(MEMBERS)).check
    seal = sealing(vouchers, TREE)(ALL)
    push = Push(JOB, CHUNK, packed(ALL, SHARDS), LESSONS.parcel(CHUNK, ALL), seal)
    return DeltaChecks(SPEC, lambda: RULES, check).packed(push, ALL, ALL).unpacked().seal


def test_a_members_work_counts_also_when_its_token_has_run_out() -> None:
    said = member_said(AUTHORS[0], token(AUTHORS[0], until=1))
    assert authors_of(kept_by_members(said)) == [AUTHORS[0].peer]


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (b"", "this swarm serves its members only"),
        (b"garbage", "token"),
        (token(AUTHORS[1]), "this token is"),
        (token(AUTHORS[0], Rights.STORAGE | Rights.CLIENT), "only storage, client, not compute"),
    ],
)
def test_who_may_not_compute_has_nothing_to_say(shown: bytes, why: str) -> None:
    with pytest.raises(MessageError, match=why):
        kept_by_members(member_said(AUTHORS[0], shown))


def test_a_word_is_its_authors_for_one_thing_only() -> None:
    (said,) = by(AUTHORS[0])
    assert is_true(said, SWARM_ID, JOB, CHUNK, TREE.root)
    assert not is_true(said, SWARM_ID, JOB, CHUNK + 1, TREE.root)
    assert not is_true(said, SWARM_ID, JOB, CHUNK, bytes(DIGEST))


def test_who_pushes_is_an_author() -> None:
    delta_checks = DeltaChecks(SPEC, lambda: RULES, anything, Listed())
    seal = sealing(by(*AUTHORS[:2]), TREE)(ALL)
    for author in AUTHORS[:2]:
        delta_checks.check_sender(author.peer, seal)
    with pytest.raises(MessageError, match="has not signed the delta that it pushes"):
        delta_checks.check_sender(AUTHORS[2].peer, seal)
    with pytest.raises(MessageError, match="seal"):
        delta_checks.check_sender(AUTHORS[0].peer, Seal())
