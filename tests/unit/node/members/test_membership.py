"""What makes a folder's peer a member, and who gives tokens."""

import errno
import fcntl
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from giaann_p2p.errors import DiskError, EditionError, TokenError, UsageError
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.node.members import membership
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.membership import Membership, TokenIssuer, needs, usual_folder_in
from giaann_p2p.store.disk import small_file
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.edition import Edition
from giaann_p2p.swarm.wire.identity import Identity, Peer, to_text
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.token import EVERY, Rights
from giaann_p2p.swarm.wire.withdrawn import roots_in
from tests.unit.node.members.test_gate import Transport

NOW = 1.8e9
UNTIL = int(NOW) + 10 * 24 * 3600
OTHER = Identity.from_seed(b"o" * 32)


@pytest.fixture
def boot(tmp_path: Path) -> Path:
    """A folder that has founded a swarm."""
    folder = tmp_path / "boot"
    folder.mkdir()
    founder = open_key_file(folder / "founder.key")
    manifest = Manifest.founded(founder, "club", admission="token")
    (folder / "manifest.json").write_bytes(manifest.to_bytes())
    return folder


def test_a_token_is_kept_by_whom_it_was_given_to(boot: Path, tmp_path: Path) -> None:
    member = Membership(tmp_path / "new" / "member")
    assert member.token is None
    assert member.shown(OTHER.peer) == b""
    assert not member.folder.exists()
    token = TokenIssuer(boot).given(member.identity.peer, Rights.CLIENT, UNTIL)
    assert member.accept(str(token)) == token == member.token
    (tmp_path / "file").write_text(f"{token}\n")
    assert member.accept(str(tmp_path / "file")) == token
    assert Membership(member.folder).token == token


def test_a_token_for_somebody_else_is_not_kept(boot: Path, tmp_path: Path) -> None:
    member = Membership(tmp_path / "member")
    token = TokenIssuer(boot).given(OTHER.peer, Rights.CLIENT, UNTIL)
    with pytest.raises(TokenError, match=f"for the peer {to_text(OTHER.peer)}, but this peer"):
        member.accept(str(token))
    with pytest.raises(TokenError, match="begins with"):
        member.accept("rubbish")
    assert member.token is None
    (member.folder / "token").write_text("rubbish")
    with pytest.raises(TokenError, match="member/token: a token begins with"):
        _ = member.token


def test_a_session_has_a_key_of_its_own_and_asks_as_long_as_its_member_may(
    boot: Path, tmp_path: Path
) -> None:
    member, giver = Membership(tmp_path / "member"), TokenIssuer(boot)
    member.accept(str(giver.given(member.identity.peer, Rights.CLIENT | Rights.STORAGE, UNTIL)))
    shown = member.shown(OTHER.peer)
    admission = Admission(giver.manifest)
    assert admission.look(OTHER.peer, shown, NOW) == (Rights.CLIENT, "")
    assert admission.fault(OTHER.peer, shown, UNTIL - 1) == ""
    assert "expired" in admission.fault(OTHER.peer, shown, UNTIL)


def test_a_delegate_gives_what_it_has(boot: Path, tmp_path: Path) -> None:
    giver, folder = TokenIssuer(boot), tmp_path / "delegate"
    delegate = Membership(folder)
    rights = Rights.DELEGATE | Rights.STORAGE
    delegate.accept(str(giver.given(delegate.identity.peer, rights, UNTIL)))
    (folder / "manifest.json").write_bytes(giver.manifest.to_bytes())
    token = TokenIssuer(folder).given(OTHER.peer, Rights.STORAGE, UNTIL)
    assert (
        Admission(giver.manifest).look(OTHER.peer, token.to_bytes(), NOW).rights == Rights.STORAGE
    )
    with pytest.raises(TokenError, match="no right to grant"):
        TokenIssuer(folder).given(OTHER.peer, Rights.COMPUTE, UNTIL)
    with pytest.raises(TokenError, match="only the swarm's founder can revoke"):
        TokenIssuer(folder).revoke({OTHER.peer}, set())


def test_the_founder_revokes_and_restores_one_edition_after_the_other(boot: Path) -> None:
    giver = TokenIssuer(boot)
    admission = Admission(giver.manifest)
    token = giver.given(OTHER.peer, Rights.CLIENT, UNTIL).to_bytes()
    assert admission.learn(giver.revoke({OTHER.peer}, set()).to_bytes())
    assert "revoked" in admission.fault(OTHER.peer, token, NOW)
    assert giver.membership.revoked() == admission.revoked.to_bytes()
    assert admission.learn(TokenIssuer(boot).revoke(set(), {OTHER.peer}).to_bytes())
    assert (admission.fault(OTHER.peer, token, NOW), admission.revoked.number) == ("", 2)


def test_the_founder_disowns_who_stays_disowned(boot: Path) -> None:
    giver = TokenIssuer(boot)
    assert giver.revoke({OTHER.peer}, set(), [OTHER.peer]).disowned == (OTHER.peer,)
    more = giver.revoke({Peer(bytes(32))}, set())
    assert (more.peers, more.disowned) == ((Peer(bytes(32)), OTHER.peer), (OTHER.peer,))
    with pytest.raises(TokenError, match="is disowned, and that is permanent"):
        giver.revoke(set(), {OTHER.peer})
    assert giver.revoke(set(), {Peer(bytes(32))}).disowned == (OTHER.peer,)


def test_the_founder_withdraws_chunks_which_stay_on_its_list(
    boot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    giver, root = TokenIssuer(boot), bytes(16)
    chunks = [(b"a job of a test.", number) for number in range(6)]
    giver.revoke({OTHER.peer}, set(), [OTHER.peer])
    more, no_room = giver.withdraw(dict.fromkeys(chunks[:2], root))
    assert (roots_in(more.withdrawn), no_room) == (dict.fromkeys(chunks[:2], root), 0)
    assert (more.number, more.disowned) == (2, (OTHER.peer,))
    later = giver.revoke({Peer(bytes(32))}, set())
    assert TokenIssuer(boot).list == later
    assert later.withdrawn == more.withdrawn
    monkeypatch.setattr(membership, "MOST_WITHDRAWN", 4)
    full, no_room = giver.withdraw(dict.fromkeys(chunks, bytes([1]) * 16))
    assert no_room == 2
    assert roots_in(full.withdrawn) == {
        **dict.fromkeys(chunks[:2], root),
        **dict.fromkeys(chunks[2:4], bytes([1]) * 16),
    }
    (boot / "founder.key").unlink()
    with pytest.raises(TokenError, match="only the swarm's founder can withdraw"):
        giver.withdraw({})


def test_the_founders_own_peer_may_do_everything(boot: Path) -> None:
    giver = TokenIssuer(boot)
    me = giver.membership.identity.peer
    assert Admission(giver.manifest).look(me, giver.own(NOW).to_bytes(), NOW).rights == EVERY


def test_who_gives_no_tokens_is_told_so(boot: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a peer's folder: give the folder of the boo"):
        TokenIssuer(tmp_path)
    (boot / "founder.key").unlink()
    with pytest.raises(TokenError, match="neither the founder's key nor a delegate's token"):
        TokenIssuer(boot).given(OTHER.peer, Rights.CLIENT, UNTIL)
    founder = Identity.from_seed(b"f" * 32)
    (boot / "manifest.json").write_bytes(Manifest.founded(founder, "town").to_bytes())
    with pytest.raises(UsageError, match=r"'town' is open: nobody needs a token.*--standing"):
        TokenIssuer(boot).given(OTHER.peer, Rights.CLIENT, UNTIL)


def test_what_a_peer_needs_is_told_with_its_name(boot: Path) -> None:
    giver = TokenIssuer(boot)
    admission = Admission(giver.manifest)
    token = giver.given(OTHER.peer, Rights.STORAGE, UNTIL).to_bytes()
    needs(admission, OTHER.peer, token, Rights.STORAGE, NOW)
    needs(admission, OTHER.peer, token, Rights(0), NOW)
    advice = f"only the rights storage, but compute is needed: .*{to_text(OTHER.peer)}"
    with pytest.raises(TokenError, match=advice):
        needs(admission, OTHER.peer, token, Rights.COMPUTE, NOW)
    with pytest.raises(TokenError, match=f"members only.*is {to_text(OTHER.peer)}"):
        needs(admission, OTHER.peer, b"", Rights.COMPUTE, NOW)


def test_the_usual_folder_of_a_swarm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert usual_folder_in(bytes(32), "client") == Path("/data/giaann/aaaaaaaaaaaa/client")


def test_in_an_open_swarm_a_founder_vouches_for_machines_that_it_knows(boot: Path) -> None:
    founder = open_key_file(boot / "founder.key")
    manifest = Manifest.founded(founder, "town")
    (boot / "manifest.json").write_bytes(manifest.to_bytes())
    token = TokenIssuer(boot).given(OTHER.peer, Rights.COMPUTE | Rights.STANDING, UNTIL)
    assert Admission(manifest).vouches(OTHER.peer, token.to_bytes(), NOW)


def test_the_founder_raises_the_number_of_replicas_one_edition_after_the_other(
    boot: Path, tmp_path: Path
) -> None:
    issuer = TokenIssuer(boot)
    assert issuer.editions.number == 0
    assert issuer.next_edition() is issuer.next_edition(3) is issuer.next_edition(3, 64) is None
    assert resharded(issuer, 4).number == 1
    assert resharded(issuer, 5, 128).number == 2
    assert TokenIssuer(boot).editions.rules[1:3] == (5, 3)
    assert TokenIssuer(boot).editions.rules.chunk == 128
    shards = issuer.manifest.layout.shards
    assert resharded(issuer, 0, 0, 4 * shards).number == 3
    assert TokenIssuer(boot).editions.rules.shards == 4 * shards
    assert issuer.next_edition(5, 128, 4 * shards) is None
    with pytest.raises(EditionError, match=f"Take {16 * shards:,} first"):
        issuer.next_edition(shards=32 * shards)
    with pytest.raises(EditionError, match="give 6 to 64, not 4"):
        issuer.next_edition(4)
    (boot / "founder.key").unlink()
    with pytest.raises(TokenError, match="only the swarm's founder can change the swarm's rules"):
        issuer.next_edition(6)


def resharded(issuer: TokenIssuer, replicas: int, chunk: int = 0, shards: int = 0) -> Edition:
    """Sign and save the next edition."""
    edition = issuer.next_edition(replicas, chunk, shards)
    assert edition is not None
    issuer.keep_next(edition)
    return edition


def test_no_two_processes_sign_an_edition_with_one_number(boot: Path) -> None:
    daemon, command = TokenIssuer(boot), TokenIssuer(boot)
    one, other = daemon.next_edition(4), command.next_edition(5)
    assert one is not None
    assert other is not None
    daemon.keep_next(one)
    with pytest.raises(EditionError, match=f"edition 1 was signed meanwhile.* in {boot}"):
        command.keep_next(other)
    with pytest.raises(EditionError, match="signed meanwhile"):
        daemon.keep_next(one)
    assert daemon.editions.rules.replicas == 4


def test_an_edition_is_looked_at_and_saved_while_no_other_process_may(
    boot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = list[bytes]()

    def save(path: Path, data: bytes) -> None:
        with (boot / "founder.key").open() as key, pytest.raises(BlockingIOError):
            fcntl.flock(key, fcntl.LOCK_EX | fcntl.LOCK_NB)
        saved.append(data)
        small_file.write_whole(path, data)

    monkeypatch.setattr(membership, "write_whole", save)
    issuer = TokenIssuer(boot)
    edition = resharded(issuer, 4).to_bytes()
    issuer.membership.keep_edition(edition)
    assert saved == [edition, edition]
    with (boot / "founder.key").open() as key:
        fcntl.flock(key, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_an_earlier_edition_never_replaces_one_in_the_folder(boot: Path) -> None:
    issuer = TokenIssuer(boot)
    first, second = resharded(issuer, 4).to_bytes(), resharded(issuer, 5).to_bytes()
    issuer.membership.keep_edition(first)
    assert issuer.membership.edition() == second
    (boot / "edition").write_bytes(b"rubbish")
    issuer.membership.keep_edition(first)
    assert issuer.membership.edition() == first


def test_a_folder_without_the_founders_key_keeps_editions_without_a_lock(
    boot: Path, tmp_path: Path
) -> None:
    edition = resharded(TokenIssuer(boot), 4).to_bytes()
    member = Membership(tmp_path)
    member.keep_edition(edition)
    assert member.edition() == edition
    (tmp_path / "founder.key").mkdir()
    with pytest.raises(DiskError, match=r"founder.key cannot be read: not a plain file"):
        member.keep_edition(edition)


def test_who_may_not_read_the_founders_key_keeps_editions_without_a_lock(
    boot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edition = TokenIssuer(boot).next_edition(shards=2 * TokenIssuer(boot).editions.rules.shards)
    assert edition is not None

    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(membership, "open_plain", refuse)
        Membership(boot).write_edition(edition.to_bytes())
        Membership(boot).keep_edition(edition.to_bytes())
    assert Membership(boot).edition() == edition.to_bytes()


@pytest.mark.parametrize(
    ("number", "is_told"), [(errno.EINVAL, False), (errno.ENOTSUP, False), (errno.EIO, True)]
)
def test_a_folder_that_cannot_be_synced_at_all_is_no_failure(
    boot: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_told: bool
) -> None:
    def refuse(files: small_file.DiskFiles) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(small_file.DiskFiles, "sync", refuse)
    with pytest.raises(DiskError) if is_told else nullcontext():
        small_file.write_whole(boot / "some", b"new")
    assert (boot / "some").read_bytes() == b"new"


def test_the_folder_and_a_running_peer_exchange_their_editions(boot: Path) -> None:
    issuer = TokenIssuer(boot)
    gate = Gate(issuer.manifest, Transport())  # type: ignore[arg-type]
    issuer.catch_up(gate)
    resharded(issuer, 4)
    issuer.catch_up(gate)
    assert gate.editions.number == 1
    resharded(issuer, 5)
    second = issuer.membership.edition()
    assert second is not None
    gate.learn_edition(second)
    (boot / "edition").unlink()
    issuer.catch_up(gate)
    assert issuer.membership.edition() == second


def test_a_crash_while_an_edition_is_saved_leaves_the_old_one(
    boot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = TokenIssuer(boot)
    resharded(issuer, 4)

    def torn(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", torn)
    with pytest.raises(KeyboardInterrupt):
        resharded(issuer, 5)
    assert issuer.editions.rules[1] == 4
    monkeypatch.undo()
    assert resharded(issuer, 5).number == 2
    assert issuer.editions.rules[1] == 5
