"""Who is served in a swarm, and what each may ask: of everybody the same, or by members' tokens.

1. In an open swarm everybody has every right who is not revoked. In one that admits by token a peer
   has the rights of the token that it shows, while that lasts and nobody in its chain is revoked.
2. Who has none is a stranger: it may ask for the manifest, for without that it cannot become a
   member, and for nothing else.
3. A token is worked out once, and looked up from then on: each request costs a look into a
   dictionary and a comparison of times.
"""

from collections.abc import Mapping
from typing import NamedTuple

from giaann_p2p.errors import RecordError, TokenError
from giaann_p2p.swarm import messages
from giaann_p2p.swarm.identity import Peer, name_of
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.swarm.messages import Message
from giaann_p2p.swarm.record import Announcement
from giaann_p2p.swarm.revoked import Revoked
from giaann_p2p.swarm.token import EVERY, NONE, Rights, Standing, Token
from giaann_p2p.swarm.withdrawn import Withdrawn

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
    messages.Compare: _STORING | _ASKING,  # a client sees by it what is committed
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
"""Who may ask what: whoever has one of these rights. The manifest is everybody's."""
_ROLES = {"storage": Rights.STORAGE, "compute": Rights.COMPUTE}
_REVOKED = "this swarm's founder has revoked you"
_MEMBERS_ONLY = (
    "this swarm serves its members only: send your peer's name (see `giaann token name`) to its "
    "founder, who gives you a token"
)


class Pass(NamedTuple):
    """What somebody may do."""

    rights: Rights
    why: str
    """Why it is nothing, if it is."""


class Admission:
    """Of one swarm, as one peer sees it."""

    def __init__(self, manifest: Manifest) -> None:
        self.is_open = manifest.admission == "open"
        self.revoked = Revoked(manifest.swarm_id)
        self.withdrawn = Withdrawn()
        """The chunks that the founder has withdrawn."""
        self._swarm_id, self._founder = manifest.swarm_id, manifest.founder
        self._known: dict[bytes, Standing | str] = {}
        self._gone, self._disowned = frozenset[bytes](), frozenset[bytes]()

    def __repr__(self) -> str:
        how = "open" if self.is_open else f"members only, list {self.revoked.number} of the revoked"
        return f"<Admission: {how}>"

    def look(self, peer: Peer, token: bytes, now: float) -> Pass:
        """Tell what a peer may do that has shown a token."""
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

    @property
    def serves_all(self) -> bool:
        """Whether nobody is a stranger."""
        return self.is_open and not self._gone

    def disowned(self, peer: Peer) -> bool:
        """Tell whether what a peer learned counts no longer."""
        return peer in self._disowned

    def fault(self, peer: Peer, token: bytes, now: float) -> str:
        """Tell why a peer is a stranger; nothing if it is none."""
        return self.look(peer, token, now).why

    def authored(self, peer: Peer, token: bytes) -> str:
        """Tell why what a peer computed does not count; nothing if it does.

        What was computed by a member stays its work when its token has run out.
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
        """Tell why a peer may not ask a question; nothing if it may."""
        if self.serves_all or isinstance(question, messages.AskManifest):
            return ""
        found = self.look(peer, token, now)
        if found.why or found.rights & MAY_ASK.get(type(question), NONE):
            return found.why
        return f"your token lets you be {found.rights}, which is not enough to ask for this"

    def check(self, said: Announcement, now: float) -> None:
        """Raise RecordError unless whoever says so may be in the directory as this."""
        if self.serves_all:
            return
        found = self.look(said.peer, said.token, now)
        if found.why:
            raise RecordError(f"token: {found.why}")
        if _ROLES[said.role] not in found.rights:
            raise RecordError(f"token: {name_of(said.peer)} may be {found.rights}, not {said.role}")

    def learn(self, data: bytes) -> bool:
        """Take in a list of those who are revoked; tell whether it is newer than the one here.

        TokenError if it is not the founder's.
        """
        found = Revoked.read(data, self._swarm_id, self._founder)
        if found.number <= self.revoked.number:
            return False
        self.revoked = found
        self.withdrawn = Withdrawn(found.withdrawn)
        self._gone, self._disowned = frozenset(found.peers), frozenset(found.disowned)
        return True

    def _standing(self, token: bytes) -> Standing | str:
        known = self._known.get(token)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                del self._known[next(iter(self._known))]
            known = self._known[token] = self._worked_out(token)
        return known

    def _worked_out(self, token: bytes) -> Standing | str:
        try:
            found = Token.read(token)
            if found.swarm_id != self._swarm_id:
                return "this token is another swarm's"
            return found.standing(self._founder)
        except TokenError as error:
            return str(error)
