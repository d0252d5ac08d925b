"""Which storage peers prompts read from, and whether one of them becomes a hot spot.

    python -m tests.benchmarks.hot_spots BRAIN [--storages 20] [--replicas 3] [--shards 256]
                                         [--prompts 16] [--tokens 40]

The prompts (of tests/data/prompts.txt) are continued on a brain, and each row that they read counts
for the owners of its shard in a swarm of so many storage peers, all replicas alike. A row that a
prompt has read before is not read again; "shared" counts a row once for all prompts, as a compute
peer does whose prompts read it within the same second.
"""

import argparse
import hashlib
from collections import Counter
from pathlib import Path

import numpy as np

from giaann_p2p.model.manner import Manner
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.rows import Answer, Neuron, Question, run
from giaann_p2p.store.layout import Layout, usual_blocks
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.members.placement import Floats, Placement
from giaann_p2p.swarm.wire.identity import Peer
from tests.helpers import DATA

_GIB = 1 << 30


class Reads:
    """A store that remembers which rows were read of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.neurons = Counter[Neuron]()

    def read(self, question: Question) -> Answer:
        """Return rows, and remember which."""
        self.neurons.update(question.neurons)
        return self._store.read(question)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks.hot_spots")
    options.add_argument("brain", type=Path, help="a brain's directory")
    for name, usual in (("storages", 20), ("replicas", 3), ("shards", 256), ("prompts", 16)):
        options.add_argument(f"--{name}", type=int, default=usual)
    options.add_argument("--tokens", type=int, default=40, help="of each answer")
    given = options.parse_args()
    prompts = (DATA / "prompts.txt").read_text().splitlines()[: given.prompts]
    with Store.at(given.brain, readonly=True) as store:
        read = [_read(store, prompt, given.tokens) for prompt in prompts]
        layout = Layout(shards=given.shards, blocks=usual_blocks(store.spec))
        size = {neuron: _size(store, neuron) for one in read for neuron in one}
    peers = {Peer(hashlib.sha256(bytes([n])).digest()): _GIB for n in range(given.storages)}
    placement = Placement.of(peers, given.shards, given.replicas)
    tokens = given.prompts * given.tokens
    print(f"{given.prompts} prompts, {tokens} tokens at most; {given.storages} storage peers")
    for name, counted in (
        ("alone", Counter[Neuron](neuron for one in read for neuron in one)),
        ("shared", Counter(dict.fromkeys(size, 1))),
    ):
        rows, nbytes = _loads(counted, size, layout, placement)
        print(
            f"{name:7} {sum(counted.values()):7,} rows {nbytes.sum() / 1e6:8.2f} MB;"
            f" the busiest peer has {rows.max() / rows.mean():.2f} times the mean of rows,"
            f" {nbytes.max() / nbytes.mean():.2f} times the mean of bytes"
        )
    largest = sorted(size.items(), key=lambda item: -item[1])[:5]
    print("largest rows, bytes:", ", ".join(f"{nbytes:,}" for _, nbytes in largest))


def _read(store: Store, prompt: str, tokens: int) -> set[Neuron]:
    """Return the neurons whose rows the answer to a prompt reads."""
    profile, reads = profile_of(store.spec), Reads(store)
    continuation = profile.minds().continuation(prompt, Manner(max_tokens=tokens))
    (parsed,) = profile.parsed([prompt])
    run(continuation.begin(parsed), reads)
    while run(continuation.next(), reads) is not None:
        pass
    return {*reads.neurons}


def _size(store: Store, neuron: Neuron) -> int:
    """Return the size of a row's answer, in bytes."""
    concept, feature = (np.array([one], np.uint64) for one in neuron)
    return len(store.rows(concept, feature))


def _loads(
    counted: Counter[Neuron], size: dict[Neuron, int], layout: Layout, placement: Placement
) -> tuple[Floats, Floats]:
    """Return the rows and the bytes that each peer is expected to send."""
    rows, nbytes = np.zeros(len(placement.peers)), np.zeros(len(placement.peers))
    for neuron, times in counted.items():
        owners = placement.owner_matrix[layout.shard_of(*neuron)]
        rows[owners] += times / len(owners)
        nbytes[owners] += times * size[neuron] / len(owners)
    return rows, nbytes


if __name__ == "__main__":
    main()
