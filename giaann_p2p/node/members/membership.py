"""The files in a peer's data folder that make it a member of its swarm.

peer.key    the peer's identity
token       the token that was issued for this identity, as text
revoked     the newest list of revoked members that the peer has received
edition     the newest edition of the swarm's rules that the peer has received
"""

import fcntl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from giaann_p2p.errors import DiskError, EditionError, NotAdmitted, TokenError, UsageError
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.token_text import MOST_TEXT, text_of
from giaann_p2p.store.cuts import Cut
from giaann_p2p.store.disk.plain_file import open_plain
from giaann_p2p.store.disk.small_file import read_whole, write_whole
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.edition import MOST_BYTES as MOST_EDITION
from giaann_p2p.swarm.wire.edition import Edition, Editions, number_in
from giaann_p2p.swarm.wire.identity import Identity, Peer, name_of, to_text
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.record import MOST_AHEAD
from giaann_p2p.swarm.wire.revoked import MOST_BYTES as MOST_REVOKED
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.token import EVERY, Rights, Token, founded
from giaann_p2p.swarm.wire.withdrawal_filter import NOTHING, WithdrawalFilter
from giaann_p2p.swarm.wire.withdrawn import MOST as MOST_WITHDRAWN
from giaann_p2p.swarm.wire.withdrawn import Chunk, roots_in
from giaann_p2p.user_folder import user_folder

_DAY = 24 * 3600
_FOUNDER_KEY = "founder.key"
_RESHARD = "change the swarm's rules"
FOUNDERS_OWN = 365 * _DAY
"""Validity of the token that a founder issues for its own peer, in seconds."""


def usual_folder(swarm: str, role: str) -> Path:
    """Return the default data folder of a peer with this role, for a swarm given by its name."""
    return user_folder("XDG_DATA_HOME") / swarm / role


def usual_folder_in(swarm_id: bytes, role: str) -> Path:
    """Return the default data folder of a peer with this role, for a swarm given by its id."""
    return usual_folder(to_text(swarm_id)[:12], role)


class Membership:
    """The key, token and revocation list in a folder, which may still be empty or missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        return f"<Membership in {self.folder}>"

    @property
    def identity(self) -> Identity:
        """The identity of the folder's peer; a key is created if there is none yet."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DiskError(f"{self.folder} cannot be created: {error.strerror}") from None
        return open_key_file(self.folder / "peer.key")

    @property
    def token(self) -> Token | None:
        """The token in the folder, or None; TokenError if it cannot be read."""
        data = read_whole(self.folder / "token", MOST_TEXT)
        if data is None:
            return None
        try:
            return Token.from_text(data.decode(errors="replace"))
        except TokenError as error:
            raise TokenError(f"{self.folder / 'token'}: {error}") from None

    def accept(self, text: str) -> Token:
        """Save a token, given as text or as a file; TokenError if it is for another peer."""
        token = Token.from_text(text_of(text))
        me = self.identity.peer
        if token.member != me:
            raise TokenError(
                f"this token is for the peer {to_text(token.member)}, but this peer is "
                f"{to_text(me)}: have a token issued for this peer, or copy the key that the "
                f"token was issued for to {self.folder / 'peer.key'}"
            )
        write_whole(self.folder / "token", str(token).encode() + b"\n")
        return token

    def shown(self, session: Peer) -> bytes:
        """Return a client's token for a session's own key, derived from the token in the folder.

        The result is empty if the folder has no token. It is valid for as long as the folder's
        token, because a session may be long.
        """
        token = self.token
        if token is None:
            return b""
        until = token.grants[-1].until
        return token.given(self.identity, session, Rights.CLIENT, until).to_bytes()

    def revoked(self) -> bytes | None:
        """Return the list of revoked members in the folder; None if there is none."""
        return read_whole(self.folder / "revoked", MOST_REVOKED)

    def keep_revoked(self, revoked: bytes) -> None:
        """Replace the list of revoked members in the folder."""
        write_whole(self.folder / "revoked", revoked)

    def edition(self) -> bytes | None:
        """Return the newest edition of the swarm's rules in the folder; None if there is none."""
        return read_whole(self.folder / "edition", MOST_EDITION)

    def keep_edition(self, edition: bytes) -> None:
        """Replace the edition of the swarm's rules in the folder, unless it has a newer one."""
        with self.edition_locked():
            if number_in(self.edition() or b"") <= number_in(edition):
                self.write_edition(edition)

    def write_edition(self, edition: bytes) -> None:
        """Replace the edition in the folder; call it under `edition_locked`."""
        write_whole(self.folder / "edition", edition)

    @contextmanager
    def edition_locked(self) -> Iterator[None]:
        """Let no other process change the edition in a founder's folder meanwhile.

        The bootstrap peer in that folder and `giaann reshard` both save editions there, and sign
        them. The lock is on the founder's key. Any other folder has one process, and needs no lock.
        """
        key = self.folder / _FOUNDER_KEY
        try:
            file = open_plain(key)
        except (FileNotFoundError, PermissionError):  # without the key, no edition is signed here
            yield
            return
        except OSError as error:
            raise DiskError(f"{key} cannot be read: {error.strerror}") from None
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class TokenIssuer:
    """An issuer of tokens: the swarm's founder or a delegate, depending on the keys in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.membership, self._founder_key = Membership(folder), folder / _FOUNDER_KEY
        data = read_whole(folder / "manifest.json", MOST_REVOKED)
        if data is None:
            raise UsageError(
                f"{folder} is not a peer's folder: give the folder of the bootstrap peer that "
                "founded the swarm, or of a delegate, with --data-dir"
            )
        self.manifest = Manifest.read(data)

    @property
    def is_open(self) -> bool:
        """Whether the swarm serves every peer that is not revoked."""
        return self.manifest.admission == "open"

    @property
    def founder(self) -> Identity | None:
        """The founder's identity; None if the founder's key is not in this folder."""
        return open_key_file(self._founder_key) if self._founder_key.exists() else None

    def given(self, member: Peer, rights: Rights, until: int) -> Token:
        """Issue a token for a member; raise TokenError if this issuer has no right to.

        Raise UsageError if the swarm is open and the token would not vouch for its member.
        """
        if self.is_open and Rights.STANDING not in rights:
            raise UsageError(
                f"the swarm {self.manifest.name!r} is open: nobody needs a token to join it; "
                "use --standing for a token that vouches for a machine you know"
            )
        swarm_id = self.manifest.swarm_id
        if (founder := self.founder) is not None:
            return founded(founder, swarm_id, member, rights, until)
        if (own := self.membership.token) is None:
            raise TokenError(
                f"{self.membership.folder} has neither the founder's key nor a delegate's token: "
                "give the folder of a peer that has one, with --data-dir"
            )
        token = own.given(self.membership.identity, member, rights, until)
        token.standing(self.manifest.founder)
        return token

    def own(self, now: float) -> Token:
        """Issue a token for this folder's own peer, with every right, for a year."""
        return self.given(self.membership.identity.peer, EVERY, int(now) + FOUNDERS_OWN)

    def revoke(
        self, peers: set[Peer], restored: set[Peer], disowned: Iterable[Peer] = ()
    ) -> Revoked:
        """Sign, save and return the next list of revoked members, with these changes.

        Only the founder can. Disowning is permanent: restoring a disowned peer raises TokenError.
        """
        founder, now = self._signing("revoke a peer"), self.list
        if kept_out := restored & {*now.disowned}:
            raise TokenError(
                f"{name_of(min(kept_out))} is disowned, and that is permanent: owners that were "
                "away would never learn what to withdraw. The peer may come back with another key"
            )
        revoked = ({*now.peers} | peers) - restored
        return self._kept(now.next(founder, revoked, {*now.disowned, *disowned}))

    def withdraw(
        self, roots: Mapping[Chunk, bytes], sought: WithdrawalFilter = NOTHING
    ) -> tuple[Revoked, int]:
        """Sign and save the next list of revoked members, with more withdrawn chunks.

        Only the founder can. Return the list, and how many chunks it had no room for. Owners of
        shards search for the chunks that match `sought`.
        """
        founder, now = self._signing("withdraw a chunk"), self.list
        known = roots_in(now.withdrawn)
        new = {chunk: root for chunk, root in sorted(roots.items()) if chunk not in known}
        room = MOST_WITHDRAWN - len(known)
        taken = dict(islice(new.items(), room))
        following = now.next(founder, {*now.peers}, now.disowned, taken, sought)
        return self._kept(following), len(new) - len(taken)

    def shown(self, session: Peer, until: int) -> bytes:
        """Return a client's token for a session of this issuer; empty if the swarm is open."""
        return b"" if self.is_open else self.given(session, Rights.CLIENT, until).to_bytes()

    @property
    def editions(self) -> Editions:
        """The newest edition of the swarm's rules in the folder."""
        found = Editions(self.manifest)
        if kept := self.membership.edition():
            found.learn(kept)
        return found

    def next_edition(
        self, replicas: int = 0, chunk: int = 0, shards: int = 0, cuts: Sequence[Cut] = ()
    ) -> Edition | None:
        """Return the next edition, with new numbers of replicas, sentences in a chunk, and shards.

        Pass 0 for each number that stays as it is. `cuts` are the columns that are cut into more
        parts. The edition is signed but not saved; None if nothing would change. Raise EditionError
        if a number would decrease, or is too large. Only the founder can sign.
        """
        now = self.editions
        replicas = 0 if replicas == now.rules.replicas else replicas
        chunk = 0 if chunk == now.rules.chunk else chunk
        shards = 0 if shards == now.rules.shards else shards
        if not (replicas or chunk or shards or cuts):
            return None
        edition = now.next(self._signing(_RESHARD), replicas, chunk, shards, cuts)
        if shards > MOST_AHEAD * now.rules.shards:
            raise EditionError(
                f"{shards:,} shards are more than {MOST_AHEAD} times the present "
                f"{now.rules.shards:,}: peers with the earlier edition would not see which shards "
                f"others hold. Take {MOST_AHEAD * now.rules.shards:,} first, and more once all "
                "peers have learned that edition"
            )
        return edition

    def keep_next(self, edition: Edition) -> None:
        """Save the edition that `next_edition` returned, so that others may get it.

        Raise EditionError if another one was saved meanwhile: the founder must never publish two
        editions with the same number.
        """
        with self.membership.edition_locked():
            if edition.number != self.editions.number + 1:
                raise EditionError(
                    f"edition {self.editions.number} was signed meanwhile, by another process in "
                    f"{self.membership.folder}: check again what would change"
                )
            self.membership.write_edition(edition.to_bytes())

    def catch_up(self, gate: Gate) -> None:
        """Exchange the newest edition between the folder and a running peer."""
        ours, theirs = self.editions, gate.editions
        if theirs.number > ours.number:
            self.membership.keep_edition(theirs.to_bytes())
        elif ours.number > theirs.number:
            gate.learn_edition(ours.to_bytes())

    @property
    def list(self) -> Revoked:
        """The list of revoked members in the folder; an empty one if there is none yet."""
        admission = Admission(self.manifest)
        if kept := self.membership.revoked():
            admission.learn(kept)
        return admission.revoked

    def _signing(self, does: str) -> Identity:
        if (founder := self.founder) is None:
            raise TokenError(f"only the swarm's founder can {does}; {self._founder_key} is missing")
        return founder

    def _kept(self, following: Revoked) -> Revoked:
        self.membership.keep_revoked(following.to_bytes())
        return following


def needs(admission: Admission, peer: Peer, token: bytes, rights: Rights, now: float) -> None:
    """Raise NotAdmitted, with advice, if a peer's token does not grant the rights it needs."""
    found = admission.look(peer, token, now)
    if found.why:
        raise NotAdmitted(f"{found.why}. The name of this peer is {to_text(peer)}")
    if rights not in found.rights:
        granted = f"only the rights {found.rights}" if found.rights else "no rights"
        raise NotAdmitted(
            f"the token of {name_of(peer)} grants {granted}, but {rights} is needed: "
            f"have one issued for {to_text(peer)} that grants it"
        )
