"""Strangers as a process: KEYS keys push poison, each to all owners, until standard input ends.

    python -m tests.benchmarks.strangers.attacker LINK KEYS

Each push is a chunk of a new job, an honest delta of 64 copies of one sentence, vouched for by the
key that pushes it. Prints what the owners said, as JSON.
"""

import asyncio
import json
import secrets
import sys
import time
from collections import Counter

import numpy as np
import uvloop
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from giaann_p2p.client.session import visit
from giaann_p2p.errors import PeerError
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import Parser
from giaann_p2p.model.text import Sentence
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.store.codec.parcel import encode as parcel_of
from giaann_p2p.store.seal import made
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.messages import Push, Pushed, decode, encode
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.voucher import sealing, vouched
from tests.benchmarks.strangers.streams import RawStreams

_POISON = "Bees make poison from the sweet nectar that they collect from flowers in the summer."
_COPIES = 64
_WITHIN = 5.0
_PAUSE = 0.05
"""Seconds after a refusal: the flood is to cost the owners work, not the attacker."""


class Poison:
    """A delta that is learned from copies of one sentence, for a new job each time."""

    def __init__(self, manifest: Manifest) -> None:
        spec, layout = manifest.spec, manifest.layout
        (parsed,) = Parser(spec).parse([[Sentence(_POISON, at) for at in range(_COPIES)]])
        delta = learn(parsed.sequences, spec)
        self._swarm_id, self._count = manifest.swarm_id, layout.shards
        self._tree, self._parcel = made(delta, layout), parcel_of(delta)
        self._shards = np.arange(layout.shards, dtype=np.uint16)

    def push(self, author: Identity) -> bytes:
        """Return a request that an honest author could send."""
        job = secrets.token_bytes(16)
        voucher = vouched(author, self._swarm_id, job, 0, self._tree.root)
        seal = sealing([voucher], self._tree)(self._shards)
        return encode(Push(job, 0, packed(self._shards, self._count), self._parcel, seal))


async def flood(link: str, keys: int) -> dict[str, int | float]:
    """Push until standard input ends; return how many were taken, refused, or not answered."""
    async with visit(Link.read(link)) as visiting:
        poison = Poison(visiting.manifest)
        live = visiting.around.directory.live(visiting.lookout.time())
        ports = {
            said.peer: int(said.addresses[0].split("/")[4])
            for said in live
            if said.role == "storage"
        }
    counts, began = Counter[str](), time.monotonic()
    transports, pushing = [], []
    for _ in range(keys):
        seed = secrets.token_bytes(32)
        streams = RawStreams(Ed25519PrivateKey.from_private_bytes(seed), ports)
        transports.append(StreamTransport(streams))
        for owner in ports:
            call = _endless(transports[-1], owner, poison, Identity.from_seed(seed), counts)
            pushing.append(asyncio.create_task(call))
    print("begun", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    took = time.monotonic() - began
    for task in pushing:
        task.cancel()
    await asyncio.gather(*pushing, return_exceptions=True)
    await asyncio.gather(*(transport.close() for transport in transports))
    return {"seconds": took, "owners": len(ports), **counts}


async def _endless(
    transport: StreamTransport, owner: Peer, poison: Poison, me: Identity, counts: Counter[str]
) -> None:
    while True:
        try:
            answer = await transport.call(owner, poison.push(me), timeout=_WITHIN)
        except PeerError:
            counts["unanswered"] += 1
        else:
            taken = isinstance(decode(answer), Pushed)
            counts["taken" if taken else "refused"] += 1
            if taken:
                continue
        await asyncio.sleep(_PAUSE)


if __name__ == "__main__":
    print(json.dumps(uvloop.run(flood(sys.argv[1], int(sys.argv[2])))))
