"""Access control: which peers a swarm serves, and what each may ask.

1. In an open swarm every peer has all rights unless it is revoked. In a swarm that admits by token
   a peer has the rights of the token that it shows, until the token expires or a peer in its chain
   is revoked.
2. A peer without rights is a stranger. It may ask for the manifest, which it needs to become a
   member, and for nothing else.
3. A token is verified once and cached, so each request costs one dictionary lookup and a comparison
   of times.
"""

from collections.abc import Mapping
from typing import NamedTuple

from giaann_p2p.errors import RecordError, TokenError
from giaann_p2p.swarm.wire import messages
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.messages import Message
from giaann_p2p.swarm.wire.record import Announcement
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.token import EVERY, NONE, ProvenRights, Rights, Token
from giaann_p2p.swarm.wire.withdrawn import Withdrawn

_MOST_KNOWN = 1 << 12
_ANY = EVERY
_STORING = Rights.STORAGE
_COMPUTING = Rights.COMPUTE
_ASKING = Rights.CLIENT
MAY_ASK: Mapping[type[Message], Rights] = {
    messages.Push: _COMPUTING,
    messages.Read: _ANY,
    messages.AskColumn: _ANY,
    messages.AskDigests: _ANY,
    messages.Compare: _STORING | _ASKING,  # a client uses it to check which chunks are committed
    messages.Fetch: _STORING,
    messages.Offer: _STORING,
    messages.AskPart: _STORING,
    messages.AskProof: _STORING,
    messages.Learn: _ASKING,
    messages.Ask: _ASKING,
    messages.Beat: _COMPUTING,
    messages.AskRevoked: _ANY,
    messages.RevokedIs: _ANY,
    messages.AskOrphans: _ASKING,
}
"""A peer needs one of these rights to ask each question. Any peer may ask for the manifest."""
_ROLES = {"storage": Rights.STORAGE, "compute": Rights.COMPUTE}
_REVOKED = "this swarm's founder has revoked you"
_MEMBERS_ONLY = (
    "this swarm serves its members only: send your peer's name (see `giaann token name`) to its "
    "founder, who gives you a token"
)


class Pass(NamedTuple):
    """The rights of a peer."""

    rights: Rights
    why: str
    """Reason why the peer has no rights; empty if it has some."""


class Admission:
    """The access control of one swarm, from the view of one peer."""

    def __init__(self, manifest: Manifest) -> None:
        self.is_open = manifest.admission == "open"
        self.revoked = Revoked(manifest.swarm_id)
        self.withdrawn = Withdrawn()
        """The chunks that the founder's list withdraws."""
        self._swarm_id, self._founder = manifest.swarm_id, manifest.founder
        self._known: dict[bytes, ProvenRights | str] = {}
        self._gone, self._disowned = frozenset[bytes](), frozenset[bytes]()

    def __repr__(self) -> str:
        how = "open" if self.is_open else f"members only, list {self.revoked.number} of the revoked"
        return f"<Admission: {how}>"

    def look(self, peer: Peer, token: bytes, now: float) -> Pass:
        """Return what a peer may do with the token that it showed (empty: no token)."""
        if self.is_open:
            return Pass(NONE, _REVOKED) if peer in self._gone else Pass(EVERY, "")
        if not token:
            return Pass(NONE, _MEMBERS_ONLY)
        found = self._standing(token)
        if isinstance(found, str):
            return Pass(NONE, found)
        if found.member != peer:
            return Pass(NONE, f"this token is {name_of(found.member)}'s, not {name_of(peer)}'s")
        if found.until <= now:
            return Pass(NONE, "the token has run out: have another one issued")
        if gone := next((one for one in found.chain if one in self._gone), None):
            return Pass(NONE, f"the founder has revoked {name_of(gone)}, and this token with it")
        return Pass(found.rights, "")

    def vouches(self, peer: Peer, token: bytes, now: float) -> bool:
        """Return whether a valid token gives this peer the right STANDING, open swarms included."""
        found = self._standing(token) if token else ""
        return (
            not isinstance(found, str)
            and found.member == peer
            and found.until > now
            and Rights.STANDING in found.rights
            and self._gone.isdisjoint(found.chain)
        )

    @property
    def serves_all(self) -> bool:
        """Whether every peer has all rights."""
        return self.is_open and not self._gone

    def disowned(self, peer: Peer) -> bool:
        """Return whether the founder's list discards the work of a peer."""
        return peer in self._disowned

    def fault(self, peer: Peer, token: bytes, now: float) -> str:
        """Return why a peer is a stranger; empty if it is not."""
        return self.look(peer, token, now).why

    def authored(self, peer: Peer, token: bytes) -> str:
        """Return why a peer's work does not count; empty if it does.

        The token may have expired: a member's work stays valid afterwards.
        """
        if self.is_open:
            return ""
        found = self._standing(token) if token else _MEMBERS_ONLY
        if isinstance(found, str):
            return found
        if found.member != peer:
            return f"this token is {name_of(found.member)}'s, not {name_of(peer)}'s"
        return "" if _COMPUTING in found.rights else f"{name_of(peer)} may be {found.rights}"

    def refusal(self, peer: Peer, token: bytes, question: Message, now: float) -> str:
        """Return why a peer may not ask a question; empty if it may."""
        if self.serves_all or isinstance(question, messages.AskManifest):
            return ""
        found = self.look(peer, token, now)
        if found.why or found.rights & MAY_ASK.get(type(question), NONE):
            return found.why
        return f"your token lets you be {found.rights}, which is not enough to ask for this"

    def check(self, said: Announcement, now: float) -> None:
        """Raise RecordError unless the peer may be in the directory in the role that it claims."""
        if self.serves_all:
            return
        found = self.look(said.peer, said.token, now)
        if found.why:
            raise RecordError(f"token: {found.why}")
        if _ROLES[said.role] not in found.rights:
            raise RecordError(f"token: {name_of(said.peer)} may be {found.rights}, not {said.role}")

    def learn(self, data: bytes) -> bool:
        """Take in a list of revoked peers; return whether it is newer than the current one.

        TokenError if the founder did not sign it.
        """
        found = Revoked.read(data, self._swarm_id, self._founder)
        if found.number <= self.revoked.number:
            return False
        self.revoked = found
        self.withdrawn = Withdrawn(found.withdrawn)
        self._gone, self._disowned = frozenset(found.peers), frozenset(found.disowned)
        return True

    def _standing(self, token: bytes) -> ProvenRights | str:
        known = self._known.get(token)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                del self._known[next(iter(self._known))]
            known = self._known[token] = self._worked_out(token)
        return known

    def _worked_out(self, token: bytes) -> ProvenRights | str:
        try:
            found = Token.read(token)
            if found.swarm_id != self._swarm_id:
                return "this token is another swarm's"
            return found.standing(self._founder)
        except TokenError as error:
            return str(error)
