"""Announces a storage peer while it opens its store, which takes minutes if the store is large.

If all peers restart, some open their stores sooner than others. If they took a peer that is still
opening its store for gone, they would own its shards in its place and, after `Settings.patience`,
serve them without the deltas that only its disk has. A peer that is announced remains an
owner of its shards; and a shard that is ready nowhere becomes ready only if a quorum of its owners
answer. The shards on its disk are announced as syncing, so others keep the deltas that it may lack.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

import msgspec

from giaann_p2p.errors import GiaannError
from giaann_p2p.node.lifetime import Lifetime
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.node.members.presence import Presence
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import BUSY, Refusal, decode_question, encode
from giaann_p2p.swarm.wire.record import Announcement
from giaann_p2p.swarm.wire.shardset import packed

T = TypeVar("T")
Listed = Callable[[], tuple[Shards, Layout]]
"""Returns the shards in a store that is not open yet, and the layout that numbers them."""
_OPENING = encode(Refusal(f"{BUSY}: this peer is opening its store; ask another one"))
_SOON = 2.0
"""Seconds within which most stores are open; until then nothing is announced."""


async def opened(context: Context, capacity: int, open_store: Callable[[], T], listed: Listed) -> T:
    """Open a store in a thread.

    If that takes long, announce the peer meanwhile with the shards that `listed` returns.
    """
    opening = _in_thread(open_store)
    await asyncio.wait({opening}, timeout=_SOON)
    if not opening.done():
        context.log.info("opening the store, which takes a while")
        listing = asyncio.ensure_future(_shards(context, listed))
        either: set[asyncio.Future[Any]] = {listing, opening}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if listing.done() and (shards := listing.result()) is not None:
            await announced(context, capacity, *shards, opening)
        listing.cancel()
    return await opening


async def _shards(context: Context, listed: Listed) -> tuple[Shards, Layout] | None:
    try:
        return await _in_thread(listed)
    except (GiaannError, OSError) as error:  # a new store, or a damaged one, as opening it reports
        context.log.warning("this peer is not announced while it opens its store: %s", error)
        return None


async def announced(
    context: Context, capacity: int, shards: Shards, layout: Layout, until: asyncio.Future[T]
) -> None:
    """Until `until` is done, announce a storage peer with shards on its disk; refuse questions."""
    life = Lifetime(context.log)

    def record(draft: Announcement) -> Announcement:
        now = context.gate.rules().layout
        return msgspec.structs.replace(
            draft,
            capacity=capacity,
            syncing=packed(layout.cover(shards, now), now.shards),
            counted=now.shards if now.doublings else 0,
        )

    async def end() -> None:
        await asyncio.wait({until})
        life.end()

    view = PeersView.of(
        context.identity.peer, context.manifest, context.gate.admission, context.gate.rules
    )
    lookout = Lookout(
        context.board,
        view,
        context.manifest.swarm_id,
        context.clock,
        options=context.options,
        log=context.log,
    )
    presence = Presence(context, lookout, "storage", record)

    def answer(peer: bytes, body: bytes) -> bytes:
        question = decode_question(body)
        context.gate.check(Peer(peer), question)
        known = context.gate.answer(question)
        return _OPENING if known is None else encode(known)

    context.transport.serve(answer)
    await life.run([lookout.run(), presence.run(), end()])
    context.board.forget()  # the board's next reader has not seen any of the records


def _in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Run `work` in a daemon thread, which does not keep the process from ending."""
    done = Future[T]()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001  (raised again where the result is awaited)
            done.set_exception(error)

    Thread(target=run, name="giaann-opening", daemon=True).start()
    return asyncio.wrap_future(done)
