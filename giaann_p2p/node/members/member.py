"""The membership of a node in its swarm: everything that is the same for every role.

1. It keeps the peer directory current and, if the node has a role, announces the node.
2. It fetches newer lists of revoked members, and newer editions of the swarm's rules. A list that
   revokes the node itself ends the node.
3. It sends clients the records in its directory, once it has read the directory itself.
4. It holds the node's lifetime, its calls and its file of known peers.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from giaann_p2p.errors import NotAdmitted, PeerError
from giaann_p2p.net.transport import Handler
from giaann_p2p.node.calls import Calls
from giaann_p2p.node.lifetime import Last, Lifetime, Part
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.founder_news import EditionNews, FounderNews, RevokedNews
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.node.members.presence import Complete, Presence
from giaann_p2p.swarm.members.directory_pages import DirectoryPages
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.members.standing import Standing
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.member_messages import AskPulses, AskRecords
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import BUSY, Refusal
from giaann_p2p.swarm.wire.record import ROLES, Role

_NOT_READ = f"{BUSY}: this peer has not read the directory yet; ask another one"


class Member:
    """A running node's membership in its swarm; `presence` is None if it announces no record."""

    def __init__(
        self,
        context: Context,
        role: Role | None = None,
        complete: Complete | None = None,
        *,
        sees: Sequence[Role] = ROLES,
        standing: Standing | None = None,
        restarted: Callable[[Peer], None] = lambda peer: None,
    ) -> None:
        """Create a membership; `complete` adds a role's own fields to the node's record.

        `sees` are the roles whose records the node reads. `restarted` is called with each storage
        peer that has restarted.
        """
        self.context, self.me = context, context.identity.peer
        self.lost = 0
        """Number of connections to other peers that broke."""
        manifest, gate = context.manifest, context.gate
        self.lookout = Lookout(
            context.board,
            PeersView.of(self.me, manifest, gate.admission, gate.rules, standing),
            manifest.swarm_id,
            context.clock,
            roles=sees,
            restarted=restarted,
            options=context.options,
            log=context.log,
        )
        if context.book is not None:
            context.book.directory = self.lookout.view.directory
        self.presence: Presence | None = None
        if role is not None and complete is not None:
            self.presence = Presence(context, self.lookout, role, complete)
        parts = gate, self.lookout, context.transport, context.log
        self.news: list[FounderNews] = [RevokedNews(*parts), EditionNews(*parts)]
        self.life = Lifetime(context.log)
        self.calls = Calls(context.transport, gate.rules, self.life.fail, gate.weigh_edition)
        self._pages = DirectoryPages(self.lookout.view.directory, context.board.held)
        gate.on_change(self._members_changed)
        gate.on_edition(self.announce)
        gate.list_records(self._listed)

    def announce(self) -> None:
        """Post the node's record again, because its content has changed."""
        if self.presence is not None:
            self.presence.changed()

    async def run(
        self,
        answer: Handler,
        parts: Sequence[Part] = (),
        last: Last | None = None,
        executor: Executor | None = None,
    ) -> None:
        """Run the node to its end, with a role's own `parts`; `last` runs after all parts ended.

        `answer` handles requests of other peers; `executor` writes the file of known peers.
        """
        context = self.context
        context.transport.serve(answer)
        context.transport.on_lost(self._lost)
        own = [self.lookout.run(), *(news.run() for news in self.news)]
        if self.presence is not None:
            own.append(self.presence.run())
        if context.acquaintances is not None:
            own.append(context.acquaintances.run(self.lookout, executor))
        await self.life.run([*own, *parts], last)

    async def say_left(self) -> None:
        """Announce that the node has left, unless it failed."""
        if self.presence is not None and not self.life.has_failed:
            await self.presence.say("left")
            self.context.log.info("left")

    def _listed(self, question: AskRecords | AskPulses) -> Message:
        if not self.lookout.whole.is_set():
            return Refusal(_NOT_READ)
        return self._pages.answer(question, self.lookout.time())

    def _members_changed(self) -> None:
        if self.presence is not None and (why := self.context.gate.own_fault()):
            self.life.fail(NotAdmitted(why))
        self.lookout.view.directory.look_again(self.lookout.time())
        self.announce()

    def _lost(self, peer: bytes, error: PeerError) -> None:
        self.lost += 1
        self.context.log.debug("lost the connection to %s: %s", name_of(Peer(peer)), error)
