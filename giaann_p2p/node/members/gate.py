"""A peer's access control, and the questions that a peer of any role answers.

1. Each question is checked against its sender's rights, by the token that the sender showed when
   the connection began. The transport limits what it accepts from strangers (see `net.streams`).
2. Every peer gives the manifest to anybody. To members, it also gives its list of revoked members,
   the newest edition of the rules, the records in its directory, and its release.
3. A newer list takes effect at once: connections of revoked members are closed, their records are
   forgotten, and the list is saved for the next start.
4. A newer edition of the swarm's rules is saved before it takes effect, so that a peer that has
   acted on it still knows it after a crash. If the disk is full, it takes effect without being
   saved.
5. At a storage peer, an edition with more shards takes effect once the peer's shards are divided.
   If the disk is full, the edition is refused, because a divided store must not be opened by the
   former rules. That holds while the store is still being opened, too: it is then divided by the
   rules that this peer knows.
6. A peer that counts another number of shards gets this peer's edition, but the same edition again
   only after some seconds: an edition that cuts columns is large, and a question is small.
"""

import logging
from collections.abc import Callable
from contextlib import suppress

from giaann_p2p.errors import DiskError, EditionDelayed, EditionError, TokenError
from giaann_p2p.net.errors import Reason, Refused
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.clock import Clock
from giaann_p2p.release import RELEASE
from giaann_p2p.swarm.wire import messages
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.division import COUNTS_OTHERWISE
from giaann_p2p.swarm.wire.edition import Editions
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Manifest, Rules
from giaann_p2p.swarm.wire.member_messages import (
    AskEdition,
    AskManifest,
    AskPulses,
    AskRecords,
    AskRelease,
    AskRevoked,
    EditionIs,
    ManifestIs,
    ReleaseIs,
    RevokedIs,
)
from giaann_p2p.swarm.wire.message import Message

_LOG = logging.getLogger("giaann.node")
_TELL_AGAIN = 5.0
"""Seconds before a peer that counts another number of shards gets the same edition again."""
_NO_DIRECTORY = messages.Refusal("this peer has no directory; ask another one")


Heard = Callable[[Message], None]
"""A function that receives the answers to questions that name shards; see `Gate.hear`."""
Divide = Callable[[int, Callable[[], None]], None]
"""A function that divides a peer's shards. Its arguments are the swarm's new number of shards, and
a function that it calls in the step in which the peer begins to count that number."""


class Gate:
    """Checks whether other peers may ask their questions, and answers those common to all roles.

    `token` is this peer's own; it may be empty in an open swarm. `keep` saves a newer list of
    revoked members, and `keep_edition` a newer edition of the swarm's rules. `stores`: whether this
    peer has shards, or is opening them.
    """

    def __init__(
        self,
        manifest: Manifest,
        transport: Transport,
        token: bytes = b"",
        clock: Callable[[], float] | None = None,
        keep: Callable[[bytes], None] = lambda revoked: None,
        keep_edition: Callable[[bytes], None] = lambda edition: None,
        *,
        stores: bool = False,
    ) -> None:
        self.admission, self.editions = Admission(manifest), Editions(manifest)
        self.token = token
        self.asked_for_manifest = 0
        """Number of requests for the manifest."""
        self.turned_away = 0
        """Number of questions refused because the sender may not ask them."""
        self._manifest, self._transport = manifest.to_bytes(), transport
        self.clock, self._keep, self._keep_edition = clock or Clock(), keep, keep_edition
        self._began = self.clock()
        self._changed: list[Callable[[], None]] = []
        self._on_edition: list[Callable[[], None]] = []
        self._divide: Divide | None = None
        self._stores = stores
        self._dividing = b""  # the edition that waits until this peer has divided its shards
        self._listed: Callable[[AskRecords | AskPulses], Message] = lambda question: _NO_DIRECTORY
        self._told = set[Peer]()  # peers that have got `_told_edition` since `_told_since`
        self._told_edition, self._told_since = b"", 0.0
        self._guard()

    def __repr__(self) -> str:
        return f"<Gate: {self.admission!r}, {self.turned_away} questions turned away>"

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever a newer list of revoked members takes effect."""
        self._changed.append(changed)

    def on_edition(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever a newer edition of the swarm's rules takes effect."""
        self._on_edition.append(changed)

    def on_division(self, divide: Divide) -> None:
        """Let an edition with more shards take effect once `divide` has divided the shards here."""
        self._divide, self._stores = divide, True

    def rules(self) -> Rules:
        """Return the swarm's rules by the newest edition that this peer knows."""
        return self.editions.rules

    @property
    def newest_edition(self) -> bytes:
        """The newest edition here, which may wait until this peer has divided its shards."""
        return self._dividing or self.editions.to_bytes()

    @property
    def newest_number(self) -> int:
        """The number of the newest edition here."""
        waits = self._dividing
        return self.editions.number_of(waits) if waits else self.editions.number

    def list_records(self, listed: Callable[[AskRecords | AskPulses], Message]) -> None:
        """Answer requests for the records in the directory with `listed` from now on."""
        self._listed = listed

    def check(self, peer: Peer, question: Message) -> None:
        """Raise Refused if a peer has no right to ask a question."""
        if self.admission.serves_all:
            return
        shown = self._transport.greeting_of(peer)
        if why := self.admission.refusal(peer, shown, question, self.clock()):
            self.turned_away += 1
            raise Refused(Reason.STRANGER, why)

    def answer(self, question: Message) -> Message | None:
        """Answer a question that peers of every role answer; return None for any other."""
        if isinstance(question, AskManifest):
            self.asked_for_manifest += 1
            return ManifestIs(self._manifest)
        if isinstance(question, AskRelease):
            return ReleaseIs(RELEASE, max(0, int(self.clock() - self._began)))
        if isinstance(question, AskRevoked):
            revoked = self.admission.revoked
            return RevokedIs(revoked.to_bytes() if revoked.number > question.number else b"")
        if isinstance(question, RevokedIs):
            try:
                self.learn(question.revoked)
            except TokenError as error:
                return messages.Refusal(str(error))
            return RevokedIs(b"")
        if isinstance(question, AskEdition):
            known = self.editions
            return EditionIs(known.to_bytes() if known.number > question.number else b"")
        if isinstance(question, EditionIs):
            try:
                self.learn_edition(question.edition)
            except EditionError as error:
                return messages.Refusal(str(error))
            return EditionIs(b"")
        if isinstance(question, AskRecords | AskPulses):
            return self._listed(question)
        return None

    def counts_otherwise(self, peer: Peer) -> Message:
        """Answer a peer that counts another number of shards, or cuts columns in another way.

        The answer is this peer's edition. A peer that has got it lately is only told to ask again.
        """
        now, edition = self.clock(), self.newest_edition
        if edition != self._told_edition or now - self._told_since >= _TELL_AGAIN:
            self._told, self._told_edition, self._told_since = set(), edition, now
        if peer in self._told:
            return COUNTS_OTHERWISE
        self._told.add(peer)
        return EditionIs(edition)

    def learn(self, revoked: bytes) -> bool:
        """Adopt a list of revoked members if it is newer than the known one; return whether it is.

        Raise TokenError if the list is forged.
        """
        if not self.admission.learn(revoked):
            return False
        self._guard()
        for changed in self._changed:
            changed()
        try:
            self._keep(revoked)
        except DiskError as error:  # the list takes effect anyway, but only until the next start
            _LOG.warning("the list of revoked members could not be saved: %s", error)
        return True

    def learn_edition(self, edition: bytes) -> bool:
        """Adopt an edition of the rules if it is newer than the known one; return whether it is.

        If it has more shards, it takes effect once this peer has divided its own. Raise
        EditionDelayed while another edition waits for that, and EditionError if this one is forged.
        """
        if edition == self._dividing or not self.editions.is_news(edition):
            return False
        if self._dividing:
            raise EditionDelayed(
                f"{messages.BUSY}: this peer still divides its shards for an earlier edition"
            )
        divides = self.editions.divides(edition)
        try:
            self._keep_edition(edition)
        except DiskError as error:
            if divides and self._stores:
                raise EditionDelayed(f"the edition could not be saved: {error}") from None
            _LOG.warning("the edition of the swarm's rules could not be saved: %s", error)
        if divides and self._divide is not None:
            self._dividing = edition
            self._divide(self.editions.shards_of(edition), self._divided)
        else:
            self._adopt(edition)
        return True

    def weigh_edition(self, theirs: bytes) -> bytes:
        """Adopt the edition of another peer if it is newer; if it is older, return this peer's.

        `theirs` is empty for edition 0. Raise EditionError if it is forged.
        """
        with suppress(EditionDelayed):
            if theirs and self.learn_edition(theirs):
                return b""
        ours = self.newest_edition
        return ours if ours != theirs else b""

    def hear(self, answer: Message) -> None:
        """Learn the edition in an answer, if it contains one that is newer.

        `Calls` does this by itself; call this for answers to questions sent without `Calls`.
        """
        if isinstance(answer, EditionIs):
            with suppress(EditionError):  # a forged edition is ignored
                self.weigh_edition(answer.edition)

    def _divided(self) -> None:
        """Let the waiting edition take effect, because this peer has divided its shards for it."""
        edition, self._dividing = self._dividing, b""
        self._adopt(edition)

    def _adopt(self, edition: bytes) -> None:
        self.editions.learn(edition)
        for changed in self._on_edition:
            changed()

    def recall_edition(self, edition: bytes | None) -> None:
        """Adopt the edition of the rules that an earlier run saved, if it can be read."""
        if edition:
            with suppress(EditionError):  # other peers can send the edition
                self.editions.learn(edition)

    def own_fault(self) -> str:
        """Return why this peer itself is no longer admitted; empty if it is."""
        return self.admission.fault(self._transport.me, self.token, self.clock())

    def recall(self, revoked: bytes | None) -> None:
        """Adopt the list of revoked members that an earlier run saved, if it can be read."""
        if revoked:
            try:
                self.admission.learn(revoked)
            except TokenError:
                return  # other peers can send the list
            self._guard()

    def _guard(self) -> None:
        if not self.admission.serves_all:
            self._transport.guard(self._fault)

    def _fault(self, peer: Peer, greeting: bytes) -> str:
        return self.admission.fault(peer, greeting, self.clock())
