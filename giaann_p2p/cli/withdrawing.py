"""`giaann token revoke` and `giaann token withdraw`: publish the founder's list, withdraw chunks.

The founder sends its list to all peers. Then it asks the owners for the chunks that only disowned
peers taught, and for those that it searches for. It adds the chunks that a majority of the owners
reports to the list, and sends the list again.
"""

import time
from collections.abc import Mapping

import typer

from giaann_p2p.client.revoking import tell
from giaann_p2p.client.session import Session, visit
from giaann_p2p.client.withdrawing import orphans
from giaann_p2p.errors import TokenError
from giaann_p2p.exit_codes import FAILED
from giaann_p2p.node.members.membership import TokenIssuer
from giaann_p2p.swarm.training.orphan_quorum import Agreed
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.withdrawn import MOST
from giaann_p2p.terminal import say, say_json

_SESSION = 3600
"""Seconds for which the token of the founder's session is valid."""
_AGAIN = "run `giaann token withdraw` later to search again"


class Founding:
    """One run of `giaann token revoke` or `withdraw`: its progress, and its report."""

    def __init__(
        self, join: str, giver: TokenIssuer, *, as_json: bool = False, dry_run: bool = False
    ) -> None:
        self._link, self._giver = Link.read(join), giver
        self._as_json, self._dry_run = as_json, dry_run
        self._heard = self._peers = self._no_room = 0
        self._found: Agreed | None = None

    async def carry_out(self, *, withdraws: bool) -> None:
        """Publish the founder's list, then withdraw chunks; typer.Exit if no peer was reached."""
        async with visit(self._link, shows=self._shows) as visiting:
            await visiting.join_dht()  # so that the list reaches all owners
            self._check_newest(visiting)
            await self._tell(visiting)
            if withdraws and self._heard:
                await self._withdraw(visiting)
            elif withdraws:
                self._say(f"nothing is withdrawn yet; {_AGAIN}")
        if self._as_json:
            say_json(self._as_told())
        if not self._heard or (self._found and self._found.silent == self._found.asked):
            raise typer.Exit(FAILED)

    def _shows(self, session: Peer) -> bytes:
        return self._giver.shown(session, int(time.time()) + _SESSION)

    def _check_newest(self, visiting: Session) -> None:
        """If the swarm has a newer list than the founder's folder, save it and raise TokenError."""
        theirs, ours = visiting.gate.admission.revoked, self._giver.list
        if theirs.number >= ours.number and theirs != ours:
            self._giver.membership.keep_revoked(theirs.to_bytes())
            raise TokenError(
                f"the swarm already has list {theirs.number}, which was not in "
                f"{self._giver.membership.folder}; it is saved there now: run the same command "
                "again"
            )

    async def _tell(self, visiting: Session) -> None:
        now = self._giver.list
        self._heard, self._peers = await tell(visiting, now.to_bytes())
        visiting.gate.learn(now.to_bytes())  # only now, because revoked peers are told, too
        gone = f"{len(now.peers)} revoked"
        if now.disowned:
            gone += f", {len(now.disowned)} of them disowned"
        if chunks := sum(map(len, now.withdrawn)):
            gone += f", {_many(chunks, 'chunk')} withdrawn"
        self._say(f"list {now.number}: {gone}; {self._heard} of {self._peers} peers were told")

    async def _withdraw(self, visiting: Session) -> None:
        self._found = found = await orphans(visiting, self._giver.list.number)
        for line in shown(found):
            self._say(line)
        if not found.roots or self._dry_run:
            return
        _, self._no_room = self._giver.withdraw(found.roots)
        if self._no_room:
            self._say(
                f"{_many(self._no_room, 'chunk')} of these cannot be withdrawn: the list has room"
                f" for {MOST:,} at most"
            )
        await self._tell(visiting)

    def _say(self, line: str) -> None:
        if not self._as_json:
            say(line)

    def _as_told(self) -> Mapping[str, object]:
        now, found = self._giver.list, self._found
        said: dict[str, object] = {
            "list": now.number,
            "revoked": len(now.peers),
            "disowned": len(now.disowned),
            "withdrawn": sum(map(len, now.withdrawn)),
            "peers": self._peers,
            "told": self._heard,
        }
        if found is not None:
            said["found"] = {
                "owners": found.asked,
                "silent": found.silent,
                "chunks": len(found.roots),
                "jobs": {job.hex(): count for job, count in found.by_job().items()},
                "left": len(found.left),
                "no_room": self._no_room,
            }
        return said


def shown(found: Agreed) -> list[str]:
    """Return lines that report which chunks the owners agree to withdraw."""
    if not found.asked:
        return ["no storage peer owns any shard, so nothing can be withdrawn"]
    if found.silent == found.asked:
        return [f"none of {_many(found.asked, 'owner')} answered; {_AGAIN}"]
    lines = []
    if found.silent:
        lines.append(f"{found.silent} of {found.asked} owners did not answer; {_AGAIN}")
    if found.left:
        lines.append(
            f"not withdrawn: {_many(len(found.left), 'chunk')}, reported by too few of "
            f"{_many(found.asked, 'owner')}"
        )
    jobs = found.by_job()
    if not jobs:
        return [*lines, "the owners report nothing to withdraw"]
    lines += [f"job {job.hex()}: {_many(count, 'chunk')}" for job, count in jobs.items()]
    return [*lines, f"to be withdrawn: {_many(len(found.roots), 'chunk')}"]


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + "s" * (count != 1)
