"""What makes a folder's peer a member: its key, and the token that somebody gave it for that key.

peer.key    the peer's identity
token       its token, as text
revoked     the newest list of revoked members that it has
"""

import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from giaann_p2p.errors import DiskError, TokenError, UsageError
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.node.files import read_whole, write_whole
from giaann_p2p.swarm.admission import Admission
from giaann_p2p.swarm.identity import Identity, Peer, name_of, to_text
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.swarm.revoked import MOST_BYTES as MOST_REVOKED
from giaann_p2p.swarm.revoked import Revoked
from giaann_p2p.swarm.token import EVERY, Rights, Token, founded
from giaann_p2p.swarm.withdrawn import MOST as MOST_WITHDRAWN
from giaann_p2p.swarm.withdrawn import Chunk, roots_in

_MOST_TEXT = 1 << 12
_DAY = 24 * 3600
FOUNDERS_OWN = 365 * _DAY


def usual_folder(swarm: str, role: str) -> Path:
    """Return where a peer's folder is if nobody says otherwise."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "giaann" / swarm / role


def usual_folder_in(swarm_id: bytes, role: str) -> Path:
    """Return the same, of a swarm that is known by its id."""
    return usual_folder(to_text(swarm_id)[:12], role)


class Membership:
    """See the module; nothing needs to be in the folder yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        return f"<Membership in {self.folder}>"

    @property
    def identity(self) -> Identity:
        """Whose folder it is; a key is made if there is none yet."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DiskError(f"{self.folder} cannot be made: {error.strerror}") from None
        return open_key_file(self.folder / "peer.key")

    @property
    def token(self) -> Token | None:
        """The token that is kept here."""
        data = read_whole(self.folder / "token", _MOST_TEXT)
        if data is None:
            return None
        try:
            return Token.from_text(data.decode(errors="replace"))
        except TokenError as error:
            raise TokenError(f"{self.folder / 'token'}: {error}") from None

    def accept(self, text: str) -> Token:
        """Keep a token, given as its text or as a file with it; TokenError if not for here."""
        token = Token.from_text(text_of(text))
        me = self.identity.peer
        if token.member != me:
            raise TokenError(
                f"this token is for the peer {to_text(token.member)}, here is {to_text(me)}: "
                "have one issued for that name, or bring the key it was issued for to "
                f"{self.folder / 'peer.key'}"
            )
        write_whole(self.folder / "token", str(token).encode() + b"\n")
        return token

    def shown(self, session: Peer) -> bytes:
        """Return what another key shows for this one, for a session of its own; nothing if there
        is no token here. It lasts as long as the token, for a session may be long.
        """
        token = self.token
        if token is None:
            return b""
        until = token.grants[-1].until
        return token.given(self.identity, session, Rights.CLIENT, until).to_bytes()

    def revoked(self) -> bytes | None:
        """Return the list that is kept here."""
        return read_whole(self.folder / "revoked", MOST_REVOKED)

    def keep_revoked(self, revoked: bytes) -> None:
        """Have this list here from now on."""
        write_whole(self.folder / "revoked", revoked)


class Giver:
    """Who gives tokens: the founder of a swarm, or one of its delegates, by what its folder has."""

    def __init__(self, folder: Path) -> None:
        self.membership, self._founder_key = Membership(folder), folder / "founder.key"
        data = read_whole(folder / "manifest.json", MOST_REVOKED)
        if data is None:
            raise UsageError(
                f"{folder} is no folder of a peer: name that of the bootstrap peer that founded "
                "the swarm, or a delegate's, with --data-dir"
            )
        self.manifest = Manifest.read(data)

    @property
    def is_open(self) -> bool:
        """Whether the swarm serves everybody who is not revoked."""
        return self.manifest.admission == "open"

    @property
    def founder(self) -> Identity | None:
        """The founder's identity, if it is here."""
        return open_key_file(self._founder_key) if self._founder_key.exists() else None

    def given(self, member: Peer, rights: Rights, until: int) -> Token:
        """Return a token for a member; TokenError if this peer may not give it."""
        if self.is_open:
            raise UsageError(
                f"the swarm {self.manifest.name!r} is open: nobody needs a token to join it"
            )
        swarm_id = self.manifest.swarm_id
        if (founder := self.founder) is not None:
            return founded(founder, swarm_id, member, rights, until)
        if (own := self.membership.token) is None:
            raise TokenError(
                f"{self.membership.folder} has neither the founder's key nor a delegate's token"
            )
        token = own.given(self.membership.identity, member, rights, until)
        token.standing(self.manifest.founder)
        return token

    def own(self, now: float) -> Token:
        """Return a token for the founder's own peer, with every right."""
        return self.given(self.membership.identity.peer, EVERY, int(now) + FOUNDERS_OWN)

    def revoke(
        self, peers: set[Peer], restored: set[Peer], disowned: Iterable[Peer] = ()
    ) -> Revoked:
        """Return the next list of who is revoked, and who disowned, and keep it.

        Only the founder can.
        """
        founder, now = self._signing("revokes"), self.list
        if kept_out := restored & {*now.disowned}:
            raise TokenError(
                f"{name_of(min(kept_out))} is disowned, and that stays so: owners that were away "
                "would never learn what to withdraw. It may come back with another key"
            )
        revoked = ({*now.peers} | peers) - restored
        return self._kept(now.next(founder, revoked, {*now.disowned, *disowned}))

    def withdraw(self, roots: Mapping[Chunk, bytes]) -> tuple[Revoked, int]:
        """Return the next list, with more chunks that are withdrawn, and keep it; and how many
        there was no room for. Only the founder can.
        """
        founder, now = self._signing("withdraws"), self.list
        known = roots_in(now.withdrawn)
        new = {chunk: root for chunk, root in sorted(roots.items()) if chunk not in known}
        room = MOST_WITHDRAWN - len(known)
        taken = dict(islice(new.items(), room))
        following = now.next(founder, {*now.peers}, now.disowned, taken)
        return self._kept(following), len(new) - len(taken)

    @property
    def list(self) -> Revoked:
        """The newest list that is kept here."""
        admission = Admission(self.manifest)
        if kept := self.membership.revoked():
            admission.learn(kept)
        return admission.revoked

    def _signing(self, does: str) -> Identity:
        if (founder := self.founder) is None:
            raise TokenError(f"only the swarm's founder {does}: {self._founder_key} is not here")
        return founder

    def _kept(self, following: Revoked) -> Revoked:
        self.membership.keep_revoked(following.to_bytes())
        return following


def needs(admission: Admission, peer: Peer, token: bytes, rights: Rights, now: float) -> None:
    """Raise TokenError, which says what to do, unless a peer may be what it wants to be."""
    found = admission.look(peer, token, now)
    if found.why:
        raise TokenError(f"{found.why}. The name of this peer is {to_text(peer)}")
    if rights not in found.rights:
        raise TokenError(
            f"the token of {name_of(peer)} lets it be {found.rights}, and not {rights}: have one "
            f"issued for {to_text(peer)} that does"
        )


def text_of(text: str) -> str:
    """Return a token's text, which may stand in a file."""
    path = Path(text)
    try:
        if len(text) < _MOST_TEXT and path.is_file():
            return path.read_text(errors="replace")[:_MOST_TEXT]
    except OSError:
        return text
    return text
