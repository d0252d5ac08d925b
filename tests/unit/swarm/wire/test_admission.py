"""Who is served, and who is no longer."""

import msgspec
import pytest

from giaann_p2p.errors import RecordError, TokenError
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.wire import (
    member_messages,
    messages,
    prompt_messages,
    row_messages,
    training_messages,
)
from giaann_p2p.swarm.wire.admission import MAY_ASK, Admission
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Manifest, Rules
from giaann_p2p.swarm.wire.member_messages import AskManifest
from giaann_p2p.swarm.wire.message import Counting, Message
from giaann_p2p.swarm.wire.messages import AskDigests, Offer, Push
from giaann_p2p.swarm.wire.record import Announcement, Role, signed
from giaann_p2p.swarm.wire.revoked import MOST_REVOKED, Revoked
from giaann_p2p.swarm.wire.token import EVERY, NONE, Rights, founded
from giaann_p2p.swarm.wire.training_messages import Learn, LearnCut, LearnIn

FOUNDER, MEMBER, SESSION, OTHER = (Identity.from_seed(bytes([n]) * 32) for n in range(1, 5))
LAYOUT = Layout(shards=16)
RULES = Rules(LAYOUT.shards)
CLOSED = Manifest.founded(FOUNDER, "club", layout=LAYOUT, admission="token")
OPEN = Manifest.founded(FOUNDER, "town", layout=LAYOUT)
NOW = 1.8e9
UNTIL = int(NOW) + 1000
PUSH = Push(bytes(16), 1, b"", b"")


def token(
    rights: Rights = Rights.STORAGE, member: Peer = MEMBER.peer, swarm: Manifest = CLOSED
) -> bytes:
    return founded(FOUNDER, swarm.swarm_id, member, rights, UNTIL).to_bytes()


def revoked(*peers: Peer, after: Revoked | None = None) -> Revoked:
    return (after or Revoked(CLOSED.swarm_id)).next(FOUNDER, set(peers))


def test_in_an_open_swarm_everybody_may_do_everything() -> None:
    admission = Admission(OPEN)
    assert admission.look(OTHER.peer, b"", NOW) == (EVERY, "")
    assert admission.refusal(OTHER.peer, b"rubbish", PUSH, NOW) == ""
    assert repr(admission) == "<Admission: open>"
    assert admission.serves_all


def test_also_an_open_swarm_has_a_list_of_who_is_not_welcome() -> None:
    admission = Admission(OPEN)
    first = Revoked(OPEN.swarm_id).next(FOUNDER, {OTHER.peer})
    assert admission.learn(first.to_bytes())
    assert not admission.serves_all
    assert "has revoked you" in admission.fault(OTHER.peer, b"", NOW)
    assert "has revoked you" in admission.refusal(OTHER.peer, b"", PUSH, NOW)
    assert admission.refusal(OTHER.peer, b"", AskManifest(), NOW) == ""
    assert admission.refusal(MEMBER.peer, b"", PUSH, NOW) == ""
    directory = Directory(OPEN.swarm_id, lambda: RULES, admission=admission)
    directory.merge(record("storage", b"", MEMBER, OPEN), NOW)
    with pytest.raises(RecordError, match="has revoked you"):
        directory.merge(record("storage", b"", OTHER, OPEN), NOW)


def test_some_of_those_on_the_list_are_disowned() -> None:
    admission = Admission(OPEN)
    first = Revoked(OPEN.swarm_id).next(FOUNDER, {OTHER.peer, MEMBER.peer}, [OTHER.peer])
    assert admission.learn(first.to_bytes())
    assert [admission.disowned(one.peer) for one in (OTHER, MEMBER)] == [True, False]
    assert admission.learn(first.next(FOUNDER, {MEMBER.peer}, [OTHER.peer]).to_bytes())
    assert not admission.disowned(OTHER.peer)  # who is welcome again is believed again
    for peers, disowned in (
        ((), (OTHER.peer,)),
        ((OTHER.peer,) * 2, ()),
        ((OTHER.peer,), (OTHER.peer,) * 2),
    ):
        with pytest.raises(TokenError, match="canonical form"):
            admission.learn(Revoked(OPEN.swarm_id, 9, peers, disowned).to_bytes())


def test_a_member_has_the_rights_of_its_token_while_it_lasts() -> None:
    admission = Admission(CLOSED)
    assert admission.look(MEMBER.peer, token(), NOW) == (Rights.STORAGE, "")
    assert admission.look(MEMBER.peer, token(), UNTIL - 1).rights == Rights.STORAGE
    assert "expired" in admission.look(MEMBER.peer, token(), UNTIL).why


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (b"", "serves its members only"),
        (b"rubbish", "not a token"),
        (token(member=OTHER.peer), "and not|, not"),
        (token(swarm=OPEN), "another swarm's"),
        (founded(OTHER, CLOSED.swarm_id, MEMBER.peer, EVERY, UNTIL).to_bytes(), "did not sign"),
    ],
)
def test_all_others_are_strangers(shown: bytes, words: str) -> None:
    admission = Admission(CLOSED)
    for _ in range(2):  # the second time from memory
        found = admission.look(MEMBER.peer, shown, NOW)
        assert found.rights == NONE
        assert any(part in found.why for part in words.split("|"))
        assert admission.refusal(MEMBER.peer, shown, AskManifest(), NOW) == ""
        assert admission.refusal(MEMBER.peer, shown, AskDigests(b""), NOW) == found.why


@pytest.mark.parametrize(
    ("question", "rights"),
    [
        (PUSH, Rights.COMPUTE),
        (Offer(0), Rights.STORAGE),
        (Learn(bytes(16), 0, []), Rights.CLIENT),
        (LearnIn(bytes(16), 0, [], 1), Rights.CLIENT),
        (LearnCut(bytes(16), 0, [], 0, 128), Rights.CLIENT),
    ],
)
def test_each_question_needs_a_right(question: Message, rights: Rights) -> None:
    admission = Admission(CLOSED)
    assert admission.refusal(MEMBER.peer, token(rights), question, NOW) == ""
    others = token(EVERY & ~rights)
    assert "not enough" in admission.refusal(MEMBER.peer, others, question, NOW)


def test_every_question_there_is_has_its_rights_and_an_answer_is_no_question() -> None:
    kinds = {kind for kind in vars(messages).values() if isinstance(kind, type)}
    kinds = {
        kind for kind in kinds if issubclass(kind, Message) and kind not in (Message, Counting)
    }
    answers = {
        *(
            messages.Pushed,
            messages.Carried,
            row_messages.Rows,
            row_messages.Column,
            messages.Compared,
            messages.Fetched,
        ),
        *(
            messages.Offered,
            messages.Part,
            messages.Digests,
            training_messages.LearnAck,
            training_messages.BeatAck,
        ),
        *(prompt_messages.Continued, member_messages.ManifestIs, messages.Refusal, messages.Proof),
        *(
            messages.OrphansAre,
            messages.RecordsAre,
            prompt_messages.Told,
            prompt_messages.ContinuedSubwords,
        ),
        messages.Nouns,
        member_messages.ReleaseIs,
    }
    assert kinds - answers - {AskManifest} == set(MAY_ASK)
    answer = training_messages.LearnAck()
    assert Admission(CLOSED).refusal(MEMBER.peer, token(EVERY), answer, NOW)


def test_with_somebody_goes_all_that_it_let_in() -> None:
    admission = Admission(CLOSED)
    given = founded(FOUNDER, CLOSED.swarm_id, MEMBER.peer, Rights.CLIENT, UNTIL)
    session = given.given(MEMBER, SESSION.peer, Rights.CLIENT, UNTIL).to_bytes()
    assert admission.fault(SESSION.peer, session, NOW) == ""
    first = revoked(MEMBER.peer)
    assert admission.learn(first.to_bytes())
    for peer, shown in ((MEMBER.peer, given.to_bytes()), (SESSION.peer, session)):
        assert "revoked" in admission.fault(peer, shown, NOW)
    assert admission.fault(OTHER.peer, token(member=OTHER.peer), NOW) == ""
    assert not admission.learn(first.to_bytes())
    second = revoked(after=first)
    assert admission.learn(second.to_bytes())
    assert admission.fault(SESSION.peer, session, NOW) == ""
    assert not admission.learn(first.to_bytes())  # an old one, sent again
    assert admission.fault(SESSION.peer, session, NOW) == ""
    assert admission.revoked.number == 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a list"),
        (bytes(3_500_000), "at most"),
        (Revoked(OPEN.swarm_id).next(FOUNDER, set()).to_bytes(), "another swarm's"),
        (Revoked(CLOSED.swarm_id).next(OTHER, {MEMBER.peer}).to_bytes(), "did not sign"),
        (Revoked(CLOSED.swarm_id, 7).to_bytes(), "did not sign"),
        (msgspec.structs.replace(revoked(), number=9).to_bytes(), "did not sign"),
        (
            Revoked(CLOSED.swarm_id, 1, (OTHER.peer, MEMBER.peer)[::1] * 2).to_bytes(),
            "canonical form",
        ),
    ],
)
def test_a_list_that_is_not_the_founders_changes_nothing(data: bytes, words: str) -> None:
    admission = Admission(CLOSED)
    with pytest.raises(TokenError, match=words):
        admission.learn(data)
    assert admission.fault(MEMBER.peer, token(), NOW) == ""


def test_a_list_ends() -> None:
    many = {Peer(number.to_bytes(32, "big")) for number in range(MOST_REVOKED + 1)}
    with pytest.raises(TokenError, match="at most 2,048"):
        Revoked(CLOSED.swarm_id).next(FOUNDER, many)
    longest = Revoked(CLOSED.swarm_id).next(FOUNDER, many - {Peer(bytes(32))})
    assert Admission(CLOSED).learn(longest.to_bytes())


def record(role: Role, shown: bytes, by: Identity = MEMBER, of: Manifest = CLOSED) -> bytes:
    said = Announcement(
        swarm_id=of.swarm_id,
        peer=by.peer,
        role=role,
        incarnation=1,
        sequence=int(NOW * 1000),
        issued=int(NOW),
        capacity=1 << 30 if role == "storage" else 0,
        token=shown,
    )
    return signed(by, said)


@pytest.mark.parametrize(
    ("role", "shown", "words"),
    [
        ("storage", b"", "token: this swarm serves its members only"),
        ("storage", token(Rights.COMPUTE), "grants only compute, not storage"),
        ("compute", token(Rights.STORAGE), "grants only storage, not compute"),
        ("storage", token(member=OTHER.peer), "token: this token is"),
    ],
)
def test_only_members_are_in_the_directory(role: Role, shown: bytes, words: str) -> None:
    directory = Directory(CLOSED.swarm_id, lambda: RULES, admission=Admission(CLOSED))
    with pytest.raises(RecordError, match=words):
        directory.merge(record(role, shown), NOW)
    assert len(directory) == 0
    assert directory.refused == 1


def test_who_is_revoked_is_forgotten_at_once() -> None:
    admission = Admission(CLOSED)
    directory = Directory(CLOSED.swarm_id, lambda: RULES, admission=admission)
    for by in (MEMBER, OTHER):
        assert directory.merge(record("storage", token(member=by.peer), by), NOW)
    assert [peer for peer, _ in directory.members(NOW)] == sorted([MEMBER.peer, OTHER.peer])
    before = directory.version(NOW)
    admission.learn(revoked(MEMBER.peer).to_bytes())
    directory.look_again(NOW)
    assert [peer for peer, _ in directory.members(NOW)] == [OTHER.peer]
    assert directory.version(NOW) != before
    with pytest.raises(RecordError, match="revoked"):
        directory.merge(record("storage", token()), NOW + 1)


@pytest.mark.parametrize("swarm", [OPEN, CLOSED])
def test_a_token_can_vouch_for_a_machine_in_any_swarm(swarm: Manifest) -> None:
    admission, rights = Admission(swarm), Rights.COMPUTE | Rights.STANDING
    shown = token(rights, swarm=swarm)
    assert admission.vouches(MEMBER.peer, shown, NOW)
    assert not admission.vouches(OTHER.peer, shown, NOW)  # another's
    assert not admission.vouches(MEMBER.peer, shown, UNTIL)
    assert not admission.vouches(MEMBER.peer, b"", NOW)
    assert not admission.vouches(MEMBER.peer, b"rubbish", NOW)
    assert not admission.vouches(MEMBER.peer, token(Rights.COMPUTE, swarm=swarm), NOW)
    made_up = founded(OTHER, swarm.swarm_id, MEMBER.peer, rights, UNTIL).to_bytes()
    assert not admission.vouches(MEMBER.peer, made_up, NOW)
    admission.learn(Revoked(swarm.swarm_id).next(FOUNDER, {MEMBER.peer}).to_bytes())
    assert not admission.vouches(MEMBER.peer, shown, NOW)


def test_a_delegate_vouches_if_it_is_vouched_for() -> None:
    for rights, lets in ((Rights.STANDING, True), (NONE, False)):
        delegate = Rights.COMPUTE | Rights.DELEGATE | rights
        own = founded(FOUNDER, OPEN.swarm_id, MEMBER.peer, delegate, UNTIL)
        given = own.given(MEMBER, OTHER.peer, Rights.COMPUTE | Rights.STANDING, UNTIL)
        assert Admission(OPEN).vouches(OTHER.peer, given.to_bytes(), NOW) is lets
