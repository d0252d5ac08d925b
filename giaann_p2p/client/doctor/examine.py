"""Runs all checks of `giaann doctor`, in the order in which joining a swarm depends on them."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from giaann_p2p.client.doctor.finding import Finding, note, ok, problem
from giaann_p2p.client.doctor.machine import DiskPlan, machine
from giaann_p2p.client.doctor.member import member_told
from giaann_p2p.client.doctor.swarm import asked, clock, computing, link_told, manifest_told
from giaann_p2p.client.doctor.ways import knocked, listening, outside
from giaann_p2p.client.launch import ANYWHERE
from giaann_p2p.client.session import visited
from giaann_p2p.errors import GiaannError, TokenError
from giaann_p2p.machine import DISK_SHARE
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.node.members.joined_host import JoinedHost, joined_host
from giaann_p2p.node.members.membership import Membership, usual_folder_in
from giaann_p2p.swarm.members.figures import cut_figures, cut_said
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The options with which a peer is to join a swarm."""

    join: str
    listen: tuple[str, ...] = HostConfig().listen
    announce: tuple[str, ...] = ()
    relay: bool = False
    data_dir: Path | None = None
    capacity: int = 1 << 30
    """Memory that the peer will offer, in bytes."""
    remember: int = 64 << 20
    """Disk space for the deltas of recent chunks, in bytes."""
    cold: int = Settings().cold_bytes
    """Disk space for cold copies, in bytes."""

    @property
    def disk(self) -> DiskPlan:
        """The disk space that the peer will take."""
        return DiskPlan(self.capacity // DISK_SHARE, self.remember, self.cold)


async def examined(plan: Plan) -> AsyncIterator[Finding]:
    """Run all checks, and yield each finding as soon as it is available."""
    for one in await asyncio.to_thread(
        lambda: list(machine(plan.data_dir, plan.capacity, plan.disk))
    ):
        yield one
    port = listening(plan.listen)
    yield port
    found, link = link_told(plan.join)
    yield found
    if link is not None:
        for one in await knocked(link.addresses):
            yield one
    async with AsyncExitStack() as stack:
        places: list[JoinedHost] = []
        listens = port.verdict == "ok"
        for one in [await _started(stack, plan, link, listens, places)]:
            yield one
        if not places or link is None:
            return
        if listens:
            told = places[0].addresses
            yield outside(told, link.addresses, bool(plan.announce), plan.relay)
        async for one in _met(places[0], link, _membership(plan, link)):
            yield one


async def _started(
    stack: AsyncExitStack, plan: Plan, link: Link | None, listens: bool, places: list[JoinedHost]
) -> Finding:
    """Start p2pd as the peer would, append its place to `places`, and return the finding.

    If another process uses the listen addresses (`listens` is False), p2pd listens elsewhere.
    """
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="giaann-doctor-")))
    try:
        config = ANYWHERE
        if listens:
            config = HostConfig(
                listen=plan.listen, announce=plan.announce, auto_relay=plan.relay, start_within=15
            )
        named = link.addresses if link else ()
        shown = _shown(plan, link, folder / "key") if link else b""
        places.append(
            await stack.enter_async_context(joined_host(folder / "key", config, named, shown))
        )
    except GiaannError as error:
        words = " ".join(str(error).split())
        return problem(
            "p2pd",
            words,
            "check the addresses of --listen and --announce; if they are right, reinstall hivemind:"
            " pip install --force-reinstall --no-deps hivemind==1.1.12",
        )
    return ok("p2pd", "can be started")


def _shown(plan: Plan, link: Link, key: Path) -> bytes:
    """Return a token for the temporary key; empty on errors, because `member_told` reports them."""
    try:
        return _membership(plan, link).shown(open_key_file(key).peer)
    except GiaannError:
        return b""


def _membership(plan: Plan, link: Link) -> Membership:
    return Membership(plan.data_dir or usual_folder_in(link.swarm_id, "client"))


async def _met(place: JoinedHost, link: Link, membership: Membership) -> AsyncIterator[Finding]:
    """Ask all peers of a link for the manifest; if any has it, run the checks that depend on it.

    If one peer answers, problems of the others are only notes.
    """
    for strange in place.book.strange:
        yield problem("link", strange, "copy the whole link again, as it was printed")
    answers = await asyncio.gather(
        *[asked(place.transport, peer, link.swarm_id) for peer in place.book.peers]
    )
    manifests = [manifest for _, manifest in answers if manifest is not None]
    for found, _ in answers:
        is_spared = manifests and found.verdict == "problem"
        yield note(found.check, found.said, found.remedy) if is_spared else found
    if manifests:
        async for found in _joined(place, manifests[0], membership):
            yield found


async def _joined(
    place: JoinedHost, manifest: Manifest, membership: Membership
) -> AsyncIterator[Finding]:
    """Run the checks that depend on the swarm's manifest: admission, directory, clock, language."""
    for found in manifest_told(manifest):
        yield found
    yield member_told(manifest, membership)
    try:
        async with visited(manifest, place) as visiting:
            await visiting.join_dht()
            now = visiting.lookout.time()
            shown = visiting.around.directory.shown(now)
            storing = len(visiting.storage_peers())
            refused = visiting.lookout.refused
            cut = cut_said(cut_figures(visiting.around.rules))
    except Unreachable as error:
        said, _, _ = str(error).partition(";")
        yield problem("directory", said, "try again; if that does not help, get a newer link")
    except TokenError:
        yield note("directory", "not checked: in this swarm only peers with a token may read it")
    else:
        peers = f"{storing} storage peer{'' if storing == 1 else 's'}"
        yield ok("directory", f"can be read: it lists {peers}")
        if cut:
            yield ok("columns", cut)
        yield clock([said.lived(pulse) for said, pulse in shown], now, refused)
    yield await asyncio.to_thread(computing, manifest)
