"""Which storage peers prompts read from, and whether one of them becomes a hot spot.

    python -m tests.benchmarks.hot_spots BRAIN [--storages 20] [--replicas 3] [--shards 256]
                                         [--prompts 16] [--tokens 40] [--times 4]

The prompts (of tests/data/prompts.txt) are continued on a brain, and each row that they read counts
for the owners of its shard in a swarm of so many storage peers, all replicas alike. A row that a
prompt has read before is not read again; "shared" counts a row once for all prompts, as a compute
peer does whose prompts read it within the same second.

Then the prompts are played with the real readers (see `played_reads`): all with one reader, and
each with its own, as at as many compute peers; some times over, as rows are read anew after a
second. "quickest alone" has each reader keep to the replica that was quickest, in place of sharing
its reads among those that are about as quick.
"""

import argparse
import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from giaann_p2p.model.manner import Manner
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.rows import Answer, Neuron, Question, run
from giaann_p2p.model.traits import traits_of
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.members.placement import Floats, Placement
from giaann_p2p.swarm.reading.reader import Reader
from giaann_p2p.swarm.wire.identity import Peer
from tests.benchmarks.played_reads import Played, busiest
from tests.helpers import DATA

_GIB = 1 << 30


class Reads:
    """A store that remembers which rows each question read of it for the first time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known = set[Neuron]()
        self.questions: list[list[Neuron]] = []

    def read(self, question: Question) -> Answer:
        """Return rows, and remember which."""
        new = [neuron for neuron in dict.fromkeys(question.neurons) if neuron not in self._known]
        self._known.update(new)
        if new:
            self.questions.append(new)
        return self._store.read(question)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks.hot_spots")
    options.add_argument("brain", type=Path, help="a brain's directory")
    for name, usual in (("storages", 20), ("replicas", 3), ("shards", 256), ("prompts", 16)):
        options.add_argument(f"--{name}", type=int, default=usual)
    options.add_argument("--tokens", type=int, default=40, help="of each answer")
    options.add_argument("--times", type=int, default=4, help="that each prompt is played")
    given = options.parse_args()
    prompts = (DATA / "prompts.txt").read_text().splitlines()[: given.prompts]
    with Store.at(given.brain, readonly=True) as store:
        read = [read_by(store, prompt, given.tokens) for prompt in prompts]
        layout = Layout(shards=given.shards, blocks=traits_of(store.spec.profile).blocks)
        neurons = [neuron for one in read for question in one for neuron in question]
        size = {neuron: _size(store, neuron) for neuron in dict.fromkeys(neurons)}
        peers = {Peer(hashlib.sha256(bytes([n])).digest()): _GIB for n in range(given.storages)}
        placement = Placement.of(peers, given.shards, given.replicas)
        tokens = given.prompts * given.tokens
        print(f"{given.prompts} prompts, {tokens} tokens at most; {given.storages} storage peers")
        counts = {"alone": Counter(neurons), "shared": Counter(dict.fromkeys(size, 1))}
        for name, counted in counts.items():
            _show(name, *_loads(counted, size, layout, placement))
        for title, change in (("quickest alone", _keep_to_the_quickest), ("", lambda _: None)):
            for readers in (1, given.prompts):
                played = Played(store, layout, placement, change)
                many = [played.reader(number) for number in range(readers)]
                again = [one * given.times for one in read]
                played.play([(many[at % readers], one) for at, one in enumerate(again)])
                _show(f"played, {readers} readers {title}", played.rows, played.nbytes)
                seconds = 1000 * np.sort(played.seconds)
                print(
                    f"    {played.calls:,} calls; questions took {np.mean(seconds):.1f} ms,"
                    f" {seconds[len(seconds) * 95 // 100]:.1f} at the 95th percentile"
                )
    largest = sorted(size.items(), key=lambda item: -item[1])[:5]
    print("largest rows, bytes:", ", ".join(f"{nbytes:,}" for _, nbytes in largest))


def _show(name: str, rows: Floats, nbytes: Floats) -> None:
    print(
        f"{name:33} {rows.sum():7,.0f} rows {nbytes.sum() / 1e6:8.2f} MB; the busiest peer has"
        f" {busiest(rows):.2f} times the mean of rows, {busiest(nbytes):.2f} times that of bytes"
    )


def _keep_to_the_quickest(reader: Reader) -> None:
    """Make a reader choose as it did before reads were shared."""
    latencies = reader.latencies

    def choice(peers: Sequence[Peer], question: int, now: float) -> Peer:
        return min(peers, key=lambda peer: (latencies.usual(peer, now), peer))

    reader._calls.loads.choice = choice  # type: ignore[method-assign]


def read_by(store: Store, prompt: str, tokens: int) -> list[list[Neuron]]:
    """Return the neurons whose rows the answer to a prompt reads, question by question."""
    profile, reads = profile_of(store.spec), Reads(store)
    continuation = profile.minds().continuation(prompt, Manner(max_tokens=tokens))
    (parsed,) = profile.parsed([prompt])
    run(continuation.begin(parsed), reads)
    while run(continuation.next(), reads) is not None:
        pass
    return reads.questions


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
