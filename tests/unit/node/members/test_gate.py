"""The gate of a swarm that only its members may join: who is served, who is revoked."""

from collections.abc import Callable
from typing import Any

import pytest

from giaann_p2p.errors import DiskError, EditionDelayed, TokenError
from giaann_p2p.net.errors import Reason, Refused
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.swarm.wire import messages
from giaann_p2p.swarm.wire.division import COUNTS_OTHERWISE
from giaann_p2p.swarm.wire.edition import Edition
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.member_messages import (
    AskEdition,
    AskManifest,
    AskRecords,
    AskRevoked,
    EditionIs,
    ManifestIs,
    RecordsAre,
    RevokedIs,
)
from giaann_p2p.swarm.wire.messages import AskDigests
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.token import Rights, founded

FOUNDER, MEMBER, ME = (Identity.from_seed(bytes([number]) * 32) for number in (1, 2, 3))
CLOSED = Manifest.founded(FOUNDER, "club", admission="token")
OPEN = Manifest.founded(FOUNDER, "town")
NOW = 1.8e9
TOKEN = founded(FOUNDER, CLOSED.swarm_id, MEMBER.peer, Rights.STORAGE, int(NOW) + 60).to_bytes()
FIRST = Revoked(CLOSED.swarm_id).next(FOUNDER, {MEMBER.peer})


class Transport:
    """What a gate has of a transport."""

    def __init__(self) -> None:
        self.me = ME.peer
        self.shown = {MEMBER.peer: TOKEN}
        self.doors: list[Callable[[Peer, bytes], str]] = []

    def greeting_of(self, peer: Peer) -> bytes:
        return self.shown.get(peer, b"")

    def guard(self, door: Callable[[Peer, bytes], str]) -> None:
        self.doors.append(door)


def gate(manifest: Manifest = CLOSED) -> tuple[Gate, Transport, list[bytes]]:
    transport, kept = Transport(), list[bytes]()
    made = Gate(manifest, transport, b"", lambda: NOW, kept.append)  # type: ignore[arg-type]
    return made, transport, kept


def test_a_member_may_ask_what_its_token_lets_it_and_a_stranger_nothing() -> None:
    one, transport, _ = gate()
    one.check(MEMBER.peer, AskDigests(b""))
    one.check(ME.peer, AskManifest())
    with pytest.raises(Refused, match="members only") as refusal:
        one.check(ME.peer, AskDigests(b""))
    assert refusal.value.reason is Reason.STRANGER
    assert one.turned_away == 1
    (door,) = transport.doors
    assert door(MEMBER.peer, TOKEN) == ""
    assert "members only" in door(MEMBER.peer, b"")


def test_an_open_swarm_has_no_door() -> None:
    one, transport, _ = gate(OPEN)
    one.check(ME.peer, AskDigests(b""))
    assert transport.doors == []
    assert isinstance(one.answer(RevokedIs(b"rubbish")), messages.Refusal)
    one.answer(RevokedIs(Revoked(OPEN.swarm_id).next(FOUNDER, {ME.peer}).to_bytes()))
    with pytest.raises(Refused, match="has revoked you"):
        one.check(ME.peer, AskDigests(b""))
    one.check(MEMBER.peer, AskDigests(b""))
    (door,) = transport.doors
    assert door(MEMBER.peer, b"") == ""
    assert door(ME.peer, b"")


def test_any_peer_gives_the_manifest_and_the_list_of_the_revoked() -> None:
    one, _, _ = gate()
    assert one.answer(AskManifest()) == ManifestIs(CLOSED.to_bytes())
    assert one.asked_for_manifest == 1
    assert one.answer(AskRevoked(0)) == RevokedIs(b"")
    one.learn(FIRST.to_bytes())
    assert one.answer(AskRevoked(0)) == RevokedIs(FIRST.to_bytes())
    assert one.answer(AskRevoked(1)) == RevokedIs(b"")
    assert one.answer(AskDigests(b"")) is None


def test_the_records_of_the_directory_are_given_to_members_by_who_has_one() -> None:
    one, _, _ = gate()
    assert isinstance(one.answer(AskRecords("storage")), messages.Refusal)
    found = RecordsAre(1, [b"a record"])
    one.list_records(lambda question: found)
    assert one.answer(AskRecords("storage")) == found
    one.check(MEMBER.peer, AskRecords("storage"))
    with pytest.raises(Refused, match="members only"):
        one.check(ME.peer, AskRecords("storage"))


def test_a_newer_list_counts_at_once_and_is_kept() -> None:
    one, transport, kept = gate()
    changes: list[int] = []
    one.on_change(lambda: changes.append(one.admission.revoked.number))
    assert one.answer(RevokedIs(FIRST.to_bytes())) == RevokedIs(b"")
    assert (changes, kept, len(transport.doors)) == ([1], [FIRST.to_bytes()], 2)
    assert "revoked" in transport.doors[-1](MEMBER.peer, TOKEN)
    with pytest.raises(Refused, match="revoked"):
        one.check(MEMBER.peer, AskDigests(b""))
    assert not one.learn(FIRST.to_bytes())
    with pytest.raises(TokenError):
        one.learn(Revoked(CLOSED.swarm_id, 9).to_bytes())
    assert (changes, len(kept), len(transport.doors)) == ([1], 1, 2)
    assert "members only" in one.own_fault()


def test_a_list_that_cannot_be_noted_down_counts_all_the_same() -> None:
    def full(revoked: bytes) -> None:
        raise DiskError("the disk is full")

    transport = Transport()
    one = Gate(CLOSED, transport, b"", lambda: NOW, full)  # type: ignore[arg-type]
    assert one.learn(FIRST.to_bytes())
    assert "revoked" in transport.doors[-1](MEMBER.peer, TOKEN)


def test_the_list_of_the_last_time_is_where_it_begins() -> None:
    one, transport, kept = gate()
    one.recall(None)
    one.recall(b"damaged")
    assert one.admission.revoked.number == 0
    one.recall(FIRST.to_bytes())
    assert one.admission.revoked.number == 1
    assert kept == []
    assert "revoked" in transport.doors[-1](MEMBER.peer, TOKEN)


def edition(number: int, replicas: int) -> bytes:
    return Edition.signed(FOUNDER, CLOSED.swarm_id, number, replicas).to_bytes()


def test_a_newer_edition_of_the_rules_is_kept_before_it_counts() -> None:
    kept, changes = list[tuple[bytes, int]](), list[int]()
    one = Gate(
        CLOSED,
        Transport(),  # type: ignore[arg-type]
        clock=lambda: NOW,
        keep_edition=lambda data: kept.append((data, one.rules().replicas)),
    )
    one.on_edition(lambda: changes.append(one.rules().replicas))
    assert one.answer(AskEdition(0)) == EditionIs(b"")
    assert one.answer(EditionIs(edition(2, 5))) == EditionIs(b"")
    assert (kept, changes) == ([(edition(2, 5), 3)], [5])
    assert one.answer(AskEdition(1)) == EditionIs(edition(2, 5))
    assert one.answer(AskEdition(2)) == EditionIs(b"")
    assert one.answer(EditionIs(edition(1, 9))) == EditionIs(b"")  # it is older
    assert isinstance(one.answer(EditionIs(edition(3, 4))), messages.Refusal)
    assert isinstance(one.answer(EditionIs(b"rubbish")), messages.Refusal)
    assert (len(kept), changes, one.rules().replicas) == (1, [5], 5)


def test_an_edition_that_cannot_be_kept_counts_all_the_same() -> None:
    def full(data: bytes) -> None:
        raise DiskError("the disk is full")

    one = Gate(CLOSED, Transport(), clock=lambda: NOW, keep_edition=full)  # type: ignore[arg-type]
    assert one.learn_edition(edition(1, 4))
    assert one.rules().replicas == 4


def test_who_counts_other_shards_gets_an_edition_only_once_in_some_seconds() -> None:
    now = NOW
    one = Gate(CLOSED, Transport(), clock=lambda: now)  # type: ignore[arg-type]
    assert one.counts_otherwise(MEMBER.peer) == EditionIs(b"")
    assert one.counts_otherwise(MEMBER.peer) == COUNTS_OTHERWISE
    assert one.counts_otherwise(FOUNDER.peer) == EditionIs(b"")  # each peer has its own turn
    one.answer(EditionIs(edition(2, 5)))  # and each edition is news
    assert one.counts_otherwise(MEMBER.peer) == EditionIs(edition(2, 5))
    now += 4.9
    assert one.counts_otherwise(MEMBER.peer) == COUNTS_OTHERWISE
    now += 0.2  # the answer may have been lost
    assert one.counts_otherwise(MEMBER.peer) == EditionIs(edition(2, 5))


def doubled(number: int, shards: int = 2 * CLOSED.layout.shards) -> bytes:
    return Edition.signed(FOUNDER, CLOSED.swarm_id, number, 9, shards=shards).to_bytes()


def test_an_edition_with_more_shards_takes_effect_once_they_are_divided() -> None:
    kept, asked, changes = list[bytes](), list[int](), list[int]()
    one = Gate(CLOSED, Transport(), clock=lambda: NOW, keep_edition=kept.append)  # type: ignore[arg-type]
    done = list[Callable[[], None]]()
    one.on_division(lambda shards, then: (asked.append(shards), done.append(then))[0])
    one.on_edition(lambda: changes.append(one.rules().shards))
    before = CLOSED.layout.shards
    assert one.answer(EditionIs(doubled(3))) == EditionIs(b"")
    assert (kept, asked, changes, one.rules().shards) == ([doubled(3)], [2 * before], [], before)
    assert one.answer(AskEdition(0)) == EditionIs(b"")  # it does not count here yet
    assert not one.learn_edition(doubled(3))
    with pytest.raises(EditionDelayed, match="still divides its shards for an earlier edition"):
        one.learn_edition(doubled(4, 4 * before))
    said = one.answer(EditionIs(doubled(4, 4 * before)))
    assert isinstance(said, messages.Refusal)  # not as if it had learned it
    assert said.is_busy
    assert one.weigh_edition(doubled(3)) == b""
    assert one.weigh_edition(b"") == doubled(3)  # another peer need not wait for this one
    assert (len(kept), len(done)) == (1, 1)
    done.pop()()
    assert (changes, one.rules().edition, one.rules().shards) == ([2 * before], 3, 2 * before)
    assert one.answer(AskEdition(0)) == EditionIs(doubled(3))
    assert one.learn_edition(doubled(4, 4 * before))
    assert asked == [2 * before, 4 * before]
    done.pop()()
    assert (changes, kept[1:]) == ([2 * before, 4 * before], [doubled(4, 4 * before)])


def test_a_peer_without_shards_counts_more_of_them_at_once() -> None:
    one, _, _ = gate()
    assert one.learn_edition(doubled(3))
    assert one.rules().shards == 2 * CLOSED.layout.shards


def test_an_edition_in_place_of_an_answer_is_learned_unless_it_is_forged() -> None:
    one, _, _ = gate()
    one.hear(EditionIs(doubled(3)))
    assert one.rules().edition == 3
    for answer in (EditionIs(b""), EditionIs(doubled(2)), EditionIs(b"forged"), AskEdition(0)):
        one.hear(answer)
    assert one.rules().edition == 3


@pytest.mark.parametrize("is_open", [True, False])
def test_an_edition_with_more_shards_that_cannot_be_kept_is_refused(is_open: bool) -> None:
    """By a peer that has shards, or is still opening them: then they are divided when it has."""

    def full(data: bytes) -> None:
        raise DiskError("the disk is full")

    transport: Any = Transport()
    one = Gate(CLOSED, transport, clock=lambda: NOW, keep_edition=full, stores=not is_open)
    if is_open:
        one.on_division(lambda shards, then: then())
    said = one.answer(EditionIs(doubled(3)))
    assert isinstance(said, messages.Refusal)
    assert "the edition could not be saved: the disk is full" in said.reason
    assert one.weigh_edition(doubled(3)) == b""  # that is no reason to suspect the other peer
    assert one.rules().shards == CLOSED.layout.shards


def test_the_edition_of_the_last_time_counts_from_the_start() -> None:
    one, _, _ = gate()
    one.recall_edition(None)
    one.recall_edition(b"rubbish")
    assert one.rules().edition == 0
    one.recall_edition(edition(4, 6))
    assert one.rules()[:2] == (CLOSED.layout.shards, 6)
