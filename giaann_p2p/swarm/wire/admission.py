"""Access control: which peers a swarm serves, and what each may ask.

1. In an open swarm every peer has all rights unless it is revoked. In a swarm that admits by token
   a peer has the rights of the token that it shows, until the token expires or a peer in its chain
   is revoked.
2. A peer without rights is a stranger. It may ask for the manifest, which it needs to become a
   member, and for nothing else.
3. The result of verifying a token is cached, so a request usually costs one dictionary lookup and a
   comparison of times.
"""

from collections.abc import Mapping
from typing import NamedTuple

from giaann_p2p.errors import RecordError, TokenError
from giaann_p2p.swarm.wire import member_messages, messages
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.prompt_messages import Ask
from giaann_p2p.swarm.wire.record import Announcement
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.row_messages import AskColumn, Read, ReadSlice
from giaann_p2p.swarm.wire.token import EVERY, NONE, ProvenRights, Rights, Token
from giaann_p2p.swarm.wire.training_messages import Beat, Learn, LearnCut, LearnIn
from giaann_p2p.swarm.wire.withdrawn import Withdrawn

_MOST_KNOWN = 1 << 12
"""Maximum number of tokens whose verification is cached; the oldest entry is evicted."""
_ANY = EVERY
_STORING = Rights.STORAGE
_COMPUTING = Rights.COMPUTE
_ASKING = Rights.CLIENT
MAY_ASK: Mapping[type[Message], Rights] = {
    messages.Push: _COMPUTING,
    messages.PushFrom: _COMPUTING,
    messages.Carry: _COMPUTING,
    AskColumn: _ANY,
    Read: _ANY,
    ReadSlice: _ANY,
    messages.AskNouns: _ANY,
    messages.AskDigests: _ANY,
    messages.Compare: _STORING | _ASKING,  # a client uses it to check which chunks are committed
    messages.Fetch: _STORING,
    messages.FetchCarried: _STORING,
    messages.Offer: _STORING,
    messages.AskPart: _STORING,
    messages.AskProof: _STORING,
    Learn: _ASKING,
    LearnIn: _ASKING,
    LearnCut: _ASKING,
    Ask: _ASKING,
    Beat: _COMPUTING,
    member_messages.AskRelease: _ANY,
    member_messages.AskRevoked: _ANY,
    member_messages.RevokedIs: _ANY,
    member_messages.AskEdition: _ANY,
    member_messages.EditionIs: _ANY,
    messages.AskOrphans: _ASKING,
    member_messages.AskRecords: _ANY,
    member_messages.AskPulses: _ANY,
}
"""The rights for each kind of question: a peer needs at least one of them to ask it. Every peer may
ask for the manifest."""
_ROLES = {"storage": Rights.STORAGE, "compute": Rights.COMPUTE}
_REVOKED = "this swarm's founder has revoked you"
_MEMBERS_ONLY = (
    "this swarm serves its members only: send your peer's name (see `giaann token name`) to its "
    "founder, who gives you a token"
)


class Pass(NamedTuple):
    """The rights that a peer has in a swarm."""

    rights: Rights
    why: str
    """Reason why the peer has no rights; empty if it has some."""


class Admission:
    """One peer's access control: decides what each other peer of the swarm may do."""

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
        """Return the rights of a peer that showed this token (empty: none)."""
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
            return Pass(NONE, "the token has expired: ask the founder for another one")
        if gone := next((one for one in found.chain if one in self._gone), None):
            return Pass(NONE, f"the founder has revoked {name_of(gone)}, and this token with it")
        return Pass(found.rights, "")

    def vouches(self, peer: Peer, token: bytes, now: float) -> bool:
        """Return whether a valid token gives this peer the right STANDING, also in open swarms."""
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
        """Whether every peer has all rights: the swarm is open, and no peer is revoked."""
        return self.is_open and not self._gone

    def disowned(self, peer: Peer) -> bool:
        """Return whether the founder's list disowns a peer, so that its work no longer counts."""
        return peer in self._disowned

    def fault(self, peer: Peer, token: bytes, now: float) -> str:
        """Return why a peer has no rights with this token; empty if it has some."""
        return self.look(peer, token, now).why

    def authored(self, peer: Peer, token: bytes) -> str:
        """Return why the deltas that a peer signed do not count; empty if they do.

        The token may have expired, because a member's work stays valid afterwards.
        """
        if self.is_open:
            return ""
        found = self._standing(token) if token else _MEMBERS_ONLY
        if isinstance(found, str):
            return found
        if found.member != peer:
            return f"this token is {name_of(found.member)}'s, not {name_of(peer)}'s"
        return "" if _COMPUTING in found.rights else _too_little(peer, found.rights, "compute")

    def refusal(self, peer: Peer, token: bytes, question: Message, now: float) -> str:
        """Return why a peer with this token may not ask a question; empty if it may."""
        if self.serves_all or isinstance(question, member_messages.AskManifest):
            return ""
        found = self.look(peer, token, now)
        if found.why or found.rights & MAY_ASK.get(type(question), NONE):
            return found.why
        return f"your token grants only {found.rights}, which is not enough for this request"

    def check(self, said: Announcement, now: float) -> None:
        """Raise RecordError unless a record's peer has the right to the role that it announces."""
        if self.serves_all:
            return
        found = self.look(said.peer, said.token, now)
        if found.why:
            raise RecordError(f"token: {found.why}")
        if _ROLES[said.role] not in found.rights:
            raise RecordError(f"token: {_too_little(said.peer, found.rights, said.role)}")

    def learn(self, data: bytes) -> bool:
        """Adopt an edition of the founder's list if it is newer; return whether it was.

        TokenError if the list is malformed, or not signed by the founder.
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


def _too_little(peer: Peer, rights: Rights, needed: str) -> str:
    return f"the token of {name_of(peer)} grants only {rights}, not {needed}"
