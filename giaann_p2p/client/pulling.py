"""Copies a swarm's model into a brain on this machine: every shard from peers that agree on it.

1. All owners report the digests of their replicas. Of each shard, the content that a majority
   of its owners reports is the swarm's. While a text is being learned, shards differ for a moment;
   then the owners are asked again.
2. Each shard is downloaded in parts from one of the peers that report this content; each part is
   checked on arrival, and the whole against the digest.
3. Each shard is saved as soon as it is complete. So an interrupted pull goes on where it stopped,
   and a later one takes only the shards that have changed.
4. Where the swarm's number of shards has doubled, the brain's shards are divided, too. If that
   happens during a pull, it begins anew, but keeps what it has saved.

The brain has the swarm's layout, and its shards the swarm's sets of chunks: a text that the swarm
has learned is known to the brain.
"""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from giaann_p2p.client.checkup import digests_of
from giaann_p2p.client.session import Session
from giaann_p2p.errors import DamagedError, GiaannError, MessageError, PeerError, UsageError
from giaann_p2p.model.digest import added, readable
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.solo.jobs import note_foreign
from giaann_p2p.store.content import Content
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.transfer import Import, Manifest
from giaann_p2p.swarm.members.agreement import Agreed, Agreement, agreement
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.limits import of_part
from giaann_p2p.swarm.wire.manifest import Manifest as SwarmManifest
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AskPart, Offer, Offered, Part, Refusal, decode, encode

_AT_ONCE = 4
"""The number of shards that are downloaded at the same time."""
_WITHIN = 30.0
"""Timeout of a request, in seconds."""
_AGAIN, _PAUSE = 10, 2.0
"""How often the digests are asked for again while shards differ, and the seconds in between."""
_NAME_LETTERS = 8
Progress = Callable[[int, int], None]
"""Callback with the number of shards that the brain has, and of all shards."""


class Pulled(NamedTuple):
    """The result of pulling a swarm's model."""

    shards: int
    rows: int
    connections: int
    digest: str
    """The digest of the swarm's content, and of the brain's."""
    downloaded: int
    """The number of shards that were downloaded; the brain had the others already."""


async def pull(
    visiting: Session, directory: Path, progress: Progress = lambda _here, _all: None
) -> Pulled:
    """Pull a swarm's model into the brain in a directory, which may exist already."""
    await visiting.join_dht()  # so that no owner is missed
    while True:
        rules = visiting.around.rules
        try:
            return await _pulled(visiting, rules, directory, progress)
        except PeerError:
            if visiting.around.rules.shards == rules.shards:
                raise


async def _pulled(visiting: Session, rules: Rules, directory: Path, progress: Progress) -> Pulled:
    """Pull a swarm's model, shard by shard; `rules` say how many shards there are.

    PeerError if the swarm's peers do not send it, or have another number of shards.
    """
    manifest, layout = visiting.manifest, rules.layout
    store = await asyncio.to_thread(_opened, directory, manifest, layout)
    try:
        found = await _agreed(visiting, rules)
        changed = await asyncio.to_thread(_changed, store, found)
        total, here = layout.shards, layout.shards - len(changed)
        progress(here, total)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def one(shard: int) -> None:
            nonlocal here
            async with turns:
                content = await _downloaded(visiting, layout, shard, found.agreed[shard], store)
                await asyncio.to_thread(store.adopt, content)
                here += 1
                progress(here, total)

        async with asyncio.TaskGroup() as group:
            for shard in changed:
                group.create_task(one(shard))
        return await asyncio.to_thread(_finished, store, found, manifest.name, len(changed))
    except ExceptionGroup as errors:  # not `except*`, which wraps what it raises before 3.11.4
        known, others = errors.split(GiaannError)
        if known is None or others is not None:
            raise
        raise known.exceptions[0] from None
    finally:
        await asyncio.to_thread(store.close)


def _opened(directory: Path, manifest: SwarmManifest, layout: Layout) -> Store:
    """Open the brain's store, or create it; UsageError if it cannot hold this swarm's model."""
    store = Store.at(directory, manifest.spec, manifest.layout)
    try:
        if store.layout.shards > layout.shards:
            raise UsageError(
                f"this brain has {store.layout.shards} shards, by a newer edition of the swarm's"
                f" rules; the peers that answer still have {layout.shards}: try again later"
            )
        store.double(layout.shards)
        store.hold(range(layout.shards))
    except BaseException:
        store.close()
        raise
    return store


async def _agreed(visiting: Session, rules: Rules) -> Agreement:
    """Return the agreed content of all shards, once all have learned the same chunks."""
    found = Agreement({}, [], [])
    for attempt in range(_AGAIN):
        if attempt:
            await asyncio.sleep(_PAUSE)
        if visiting.around.rules.shards != rules.shards:
            break  # peers no longer report the former shards
        placement = visiting.around.placement(visiting.now)
        transport, heard = visiting.place.transport, visiting.gate.hear
        told = await digests_of(transport, rules, placement.peers, heard=heard)
        found = agreement(told, rules.shards, placement)
        if not (found.open or found.uneven):
            return found
    if found.open:
        raise PeerError(
            f"{len(found.open)} of {rules.shards} shards have no content on which most"
            " of their owners agree; see `giaann fsck`, and try again later"
        )
    raise PeerError("the swarm is learning, and its shards differ; try again when it has finished")


def _changed(store: Store, found: Agreement) -> list[int]:
    """Return the shards whose content the brain does not have."""
    return [
        shard
        for shard, one in found.agreed.items()
        if store.content(shard).digest.to_bytes(32, "little") != one.digest.content
    ]


async def _downloaded(
    visiting: Session, layout: Layout, shard: int, agreed: Agreed, store: Store
) -> Content:
    """Download a shard from one of the peers that have it; Unreachable if none sends it."""
    reasons = []
    for peer in random.sample(agreed.peers, len(agreed.peers)):
        try:
            parts = await _import(visiting, peer, layout, shard, agreed, store)
            return await asyncio.to_thread(parts.content)
        except (PeerError, DamagedError) as error:
            reasons.append(f"{name_of(peer)}: {error}")
    raise Unreachable(f"no peer sent shard {shard} ({'; '.join(reasons)}); try again")


async def _import(
    visiting: Session, peer: Peer, layout: Layout, shard: int, agreed: Agreed, store: Store
) -> Import:
    offered = await _answer(visiting, peer, layout, Offer(shard))
    if not isinstance(offered, Offered):
        raise MessageError("the answer offers no shard")
    manifest = Manifest.from_bytes(offered.manifest)
    if manifest.shard != shard or manifest.digest != agreed.digest.content:
        raise MessageError("the offered content is not what the peer reported; it may have changed")
    parts = Import(manifest, of_part(store.limits, manifest.connections))
    if offered.part:
        parts.take(0, offered.part)
    for number in parts.missing:
        part = await _answer(visiting, peer, layout, AskPart(shard, manifest.digest, number))
        if not isinstance(part, Part):
            raise MessageError("the answer holds no part of a shard")
        parts.take(number, part.parcel)
    return parts


async def _answer(visiting: Session, peer: Peer, layout: Layout, question: Message) -> Message:
    data = encode(question, layout.doublings)
    answer = decode(await visiting.place.transport.call(peer, data, timeout=_WITHIN))
    visiting.gate.hear(answer)
    if isinstance(answer, Refusal):
        raise MessageError(answer.reason)
    return answer


def _finished(store: Store, found: Agreement, swarm: str, downloaded: int) -> Pulled:
    """Record where the jobs come from, check the brain's digest, and return the result."""
    sets = store.sets([0])[0]
    for job in sets:
        note_foreign(store, job, f"{swarm}, job {job.hex()[:_NAME_LETTERS]}")
    store.snapshot()
    digests = [one.digest for one in found.agreed.values()]
    wanted = added(int.from_bytes(one.content, "little") for one in digests)
    digest = readable(store.digest())
    if digest != readable(wanted):
        raise UsageError(
            "this brain has learned more than the swarm, and now holds both; for the swarm's"
            " model alone, pull into an empty folder"
        )
    return Pulled(
        len(digests),
        sum(one.rows for one in digests),
        sum(one.connections for one in digests),
        digest,
        downloaded,
    )
