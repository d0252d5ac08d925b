"""A peer's gate: who may ask it what, and what any peer answers.

1. Each question is held to what its sender may ask, by the token that it showed when its connection
   began. Before that the transport holds strangers to little: see `net.streams`.
2. Any peer gives the manifest to everybody, and its list of revoked members to members.
3. A newer list counts at once: connections of those who are on it end, their records are forgotten,
   and it is kept for the next time.
"""

import logging
from collections.abc import Callable

from giaann_p2p.errors import DiskError, TokenError
from giaann_p2p.net.errors import Reason, Refused
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.clock import Clock
from giaann_p2p.swarm import messages
from giaann_p2p.swarm.admission import Admission
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.swarm.messages import AskManifest, AskRevoked, ManifestIs, Message, RevokedIs

_LOG = logging.getLogger("giaann.node")


class Gate:
    """See the module. `token` is the peer's own; nothing in an open swarm, or for a stranger."""

    def __init__(
        self,
        manifest: Manifest,
        transport: Transport,
        token: bytes = b"",
        clock: Callable[[], float] | None = None,
        keep: Callable[[bytes], None] = lambda revoked: None,
    ) -> None:
        self.admission = Admission(manifest)
        self.token = token
        self.asked_for_manifest = 0
        self.turned_away = 0
        """Questions of those who may not ask them."""
        self._manifest, self._transport = manifest.to_bytes(), transport
        self._clock, self._keep = clock or Clock(), keep
        self._changed: list[Callable[[], None]] = []
        self._guard()

    def __repr__(self) -> str:
        return f"<Gate: {self.admission!r}, {self.turned_away} questions turned away>"

    def on_change(self, changed: Callable[[], None]) -> None:
        """Tell of each newer list from now on."""
        self._changed.append(changed)

    def check(self, peer: Peer, question: Message) -> None:
        """Raise Refused unless a peer may ask a question."""
        if self.admission.serves_all:
            return
        shown = self._transport.greeting_of(peer)
        if why := self.admission.refusal(peer, shown, question, self._clock()):
            self.turned_away += 1
            raise Refused(Reason.STRANGER, why)

    def answer(self, question: Message) -> Message | None:
        """Answer what any peer answers; None for all else."""
        if isinstance(question, AskManifest):
            self.asked_for_manifest += 1
            return ManifestIs(self._manifest)
        if isinstance(question, AskRevoked):
            revoked = self.admission.revoked
            return RevokedIs(revoked.to_bytes() if revoked.number > question.number else b"")
        if isinstance(question, RevokedIs):
            try:
                self.learn(question.revoked)
            except TokenError as error:
                return messages.Refused(str(error))
            return RevokedIs(b"")
        return None

    def learn(self, revoked: bytes) -> bool:
        """Take in a list of revoked members; tell whether it is news. TokenError if forged."""
        if not self.admission.learn(revoked):
            return False
        self._guard()
        for changed in self._changed:
            changed()
        try:
            self._keep(revoked)
        except DiskError as error:  # it counts all the same, until the next start
            _LOG.warning("the list of revoked members is not noted down: %s", error)
        return True

    def own_fault(self) -> str:
        """Return why this peer itself is a stranger now; nothing if it is none."""
        return self.admission.fault(self._transport.me, self.token, self._clock())

    def recall(self, revoked: bytes | None) -> None:
        """Begin with the list of the last time, if there is one that can be read."""
        if revoked:
            try:
                self.admission.learn(revoked)
            except TokenError:
                return  # others have it
            self._guard()

    def _guard(self) -> None:
        if not self.admission.serves_all:
            self._transport.guard(self._fault)

    def _fault(self, peer: Peer, greeting: bytes) -> str:
        return self.admission.fault(peer, greeting, self._clock())
