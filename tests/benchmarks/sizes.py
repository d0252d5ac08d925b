"""What a connection takes in each profile, in bytes: in RAM, as a delta, and as a snapshot.

    python -m tests.benchmarks.sizes [--text FILE ...]

A text is learned in chunks of 64 texts, as by a compute peer. Deltas are the parcels of these
chunks, and their bytes are per connection of the delta; RAM and snapshot are of the model that they
add up to. RAM is what the store accounts for: connections, neurons, names, and the sets of applied
chunks. In a model of few connections the neurons and names weigh more, so say how many it has.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

from giaann_p2p.model.parse import chunks
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.traits import traits_of
from giaann_p2p.model.usual import SUBWORDS, WORDS, new_spec
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.benchmarks.model import WIKI

_JOB = bytes(16)


class Sizes(NamedTuple):
    """The sizes of a model of one profile; bytes are per connection."""

    tokens: int
    connections: int
    ram: float
    delta: float
    snapshot: float


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--text", type=Path, nargs="+", default=[WIKI], help="UTF-8 texts")
    chosen = options.parse_args()
    print("profile      tokens  connections  RAM B  delta B  snapshot B")
    for profile in (WORDS, SUBWORDS):
        found = measured(new_spec(profile), chosen.text)
        print(f"{profile:9} {found.tokens:9,} {found.connections:12,}", end="")
        print(f" {found.ram:6.1f} {found.delta:8.2f} {found.snapshot:11.2f}")


def measured(spec: ModelSpec, texts: Sequence[Path]) -> Sizes:
    """Learn some texts, and return what the model takes."""
    profile = profile_of(spec)
    pieces = (text.read_bytes() for text in texts)
    cut = chunks(profile.texts(pieces, "texts"))
    with TemporaryDirectory() as name:
        layout = Layout(shards=16, blocks=traits_of(spec.profile).blocks)
        with Store.at(Path(name, "store"), spec, layout) as store:
            store.hold(range(layout.shards))
            sent = pushed = 0
            for number, learned in enumerate(profile.learned(cut, 1)):
                if learned.delta.connections:
                    sent += len(encode(learned.delta))
                    pushed += learned.delta.connections
                    store.apply([Update(_JOB, number, store.shards, learned.delta)])
            store.compact()
            known = store.statistics()
            snapshot = sum(file.stat().st_size for file in Path(name, "store").glob("snapshot-*"))
            return Sizes(
                profile.occurrences(store, known.occurrences),
                known.connections,
                store.nbytes / known.connections,
                sent / pushed,
                snapshot / known.connections,
            )


if __name__ == "__main__":
    main()
