"""How many bytes a token takes where whole rows travel, computed without a swarm.

    python -m tests.benchmarks.vast.sent BRAIN TEXT [--copies 0 20 120]

The rows are those of the brain that a reader of the text needs, each sent once; the rows that
ignore columns with further targets (see `copies`): 20 copies are as many as in `vast`.
"""

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.rows import Neuron
from giaann_p2p.model.subwords.answer import sure_places
from giaann_p2p.model.subwords.evidence import CountedRows, Evidence, needed
from giaann_p2p.model.subwords.ids import ANY
from giaann_p2p.model.subwords.profile import SubwordsProfile
from giaann_p2p.model.subwords.spec import DISTANCES
from giaann_p2p.model.subwords.tokeniser import tokeniser
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.benchmarks.vast.copies import Learned, turned

_JOB = b"a made-up model."
_TEXTS, _TOKENS = 12, 40


def needed_for(text: str, brain: Store) -> list[list[Neuron]]:
    """Return the neurons that are needed for each of a text's tokens."""
    profile = SubwordsProfile(brain.spec, torch.device("cpu"))
    evidence, found = Evidence(CountedRows(brain.spec)), list[list[Neuron]]()
    for sentences in list(profile.texts([text.encode()], "the text"))[:_TEXTS]:
        places = sure_places(profile.parser.tokens(sentences.text))[:_TOKENS]
        found += [
            needed(evidence, places[max(0, at - DISTANCES) : at][::-1])
            for at in range(1, len(places))
        ]
    return found


def lengthened(rows: Delta, copies: int, brain: Store) -> Store:
    """Return a store of rows that ignore columns, with so many copies of their connections."""
    known = tokeniser()
    whole = total([rows, *(turned(rows, known, number) for number in range(1, copies + 1))])
    store = Store.in_memory(brain.spec, Layout(shards=1))
    store.hold([0])
    store.apply([Update(_JOB, 0, np.zeros(1, np.uint16), whole)])
    return store


def main() -> None:
    """Print a line for each number of copies."""
    parser = argparse.ArgumentParser()
    parser.add_argument("brain", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--copies", type=int, nargs="+", default=[0, 20])
    options = parser.parse_args()
    brain = Store.at(options.brain, readonly=True)
    tokens = needed_for(options.text.read_text("utf-8"), brain)
    wanted = {neuron for neurons in tokens for neuron in neurons}
    features = np.array([one.feature for one in wanted if one.concept == ANY], np.uint64)
    anywhere = Learned.of(brain.knowledge()).anywhere
    rows = anywhere.only(np.isin(anywhere.feature, features))
    for copies in options.copies:
        longer, sent, longest = lengthened(rows, copies, brain), Counter[str](), 0
        for concept, feature in wanted:
            kind, store = ("ignoring", longer) if concept == ANY else ("in", brain)
            size = len(store.rows(*(np.array([word], np.uint64) for word in (concept, feature))))
            sent[kind], longest = sent[kind] + size, max(longest, size)
        told = ", ".join(
            f"{size / len(tokens):,.0f} in rows {kind} columns" for kind, size in sent.items()
        )
        whole = sent.total() / len(tokens)
        print(f"{copies} copies: {whole:,.0f} bytes a token, {told}; the longest row {longest:,}")


if __name__ == "__main__":
    main()
