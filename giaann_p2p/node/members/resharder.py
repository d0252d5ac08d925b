"""Raises the swarm's numbers of shards and of sentences in a chunk, as `reshard_rule` decides.

It runs in the founder's bootstrap peer, and signs with the founder's key in that peer's folder, as
`giaann reshard` does, which may run in the same folder meanwhile. A bootstrap peer has no record by
which others would notice its edition. So at each look it sends the edition in the folder to some of
the peers that announce an earlier one, and these pass it on. A file in the folder keeps how long
each storage peer has been seen, so that newcomers do not count after a restart, either.
"""

import asyncio
import random
from contextlib import suppress

from giaann_p2p.errors import GiaannError, PeerError
from giaann_p2p.node.lifetime import Part
from giaann_p2p.node.members.member import Member
from giaann_p2p.node.members.membership import TokenIssuer
from giaann_p2p.node.members.standing_file import StandingFile
from giaann_p2p.swarm.members.reshard_rule import ReshardRule, reason, storing
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.messages import encode

EVERY = 60.0
"""Seconds between two looks."""
_WITHIN = 6.0
"""Timeout of sending the edition to a peer, in seconds."""
_AT_ONCE = 64
"""Maximum number of peers to which the edition is sent at a look."""


class Resharder:
    """The part of a founder's bootstrap peer that signs and sends editions of the swarm's rules."""

    def __init__(self, member: Member, issuer: TokenIssuer) -> None:
        self._member, self._issuer = member, issuer
        self._gate, self._log = member.context.gate, member.context.log
        self._rule, self._standing = ReshardRule(), member.lookout.view.standing
        self._file = StandingFile(issuer.membership.folder / "standing", self._log)
        self._file.restore(self._standing)

    def __repr__(self) -> str:
        return f"<Resharder: {self._gate.editions!r}>"

    def parts(self) -> list[Part]:
        """Return this object's tasks, to be run once."""
        return [self.run(), self._file.run(self._standing)]

    async def run(self) -> None:
        """Look at the swarm every minute, until cancelled; a failure is logged, and tried again."""
        await self._member.lookout.whole.wait()
        while True:
            try:
                await self.look()
            except GiaannError as error:
                self._log.warning("the swarm's rules were not raised: %s", error)
            await asyncio.sleep(EVERY)

    async def look(self) -> None:
        """Sign an edition if the rule says so; send the last one to peers that lack it.

        Do nothing while the directory cannot be read, because the peers' state is then unknown.
        """
        lookout = self._member.lookout
        if lookout.is_blind:
            return
        self._issuer.catch_up(self._gate)
        rules, now = self._gate.rules(), lookout.time()
        peers = storing(lookout.view, now)
        wish = self._rule.look(rules, peers, now)
        edition = self._issuer.next_edition(chunk=wish.chunk, shards=wish.shards)
        if edition is not None:
            self._issuer.keep_next(edition)  # the next look finds it in the folder
            why = reason(rules, wish, peers)
            self._log.info("signed edition %d of the swarm's rules: %s", edition.number, why)
        await self._send(now)

    async def _send(self, now: float) -> None:
        """Send the newest edition to some of the peers that announce an earlier one."""
        editions, directory = self._gate.editions, self._member.lookout.view.directory
        behind = {said.peer for said in directory.live(now) if said.edition < editions.number}
        some = random.sample(sorted(behind), min(len(behind), _AT_ONCE))
        message = encode(EditionIs(editions.to_bytes()))

        async def send(peer: Peer) -> None:
            with suppress(PeerError):  # others pass it on
                await self._member.context.transport.call(peer, message, timeout=_WITHIN)

        await asyncio.gather(*map(send, some))
