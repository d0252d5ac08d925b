"""What it saves to have cached rows confirmed by marks, and what a mark costs.

    python -m tests.benchmarks.row_marks BRAIN [--prompts 4] [--tokens 40]

Each prompt (of tests/data/prompts.txt) is continued on a brain, and the rows that it reads are read
again, as after a second: from one peer, with the reader's and the peer's own code, and messages
encoded. Nothing was learned meanwhile.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from giaann_p2p.model.rows import Neuron, Question, Row
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.reading.known_rows import NO_MARKS, Known, Marking
from giaann_p2p.swarm.reading.row_calls import RowAnswer, RowCalls
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import decode, encode
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.row_mark import SALT_BYTES, mark
from tests.benchmarks.hot_spots import read_by
from tests.benchmarks.played_reads import Others
from tests.helpers import DATA

_MOST = (1 << 31) - 1
_PEER = Peer(bytes(32))
_LENGTHS = (64, 300, 1000, 4000, 20_000, 50_000)
_TIMES = 20


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks.row_marks")
    options.add_argument("brain", type=Path, help="a brain's directory")
    options.add_argument("--prompts", type=int, default=4)
    options.add_argument("--tokens", type=int, default=40, help="of each answer")
    given = options.parse_args()
    prompts = (DATA / "prompts.txt").read_text().splitlines()[: given.prompts]
    with Store.at(given.brain, readonly=True) as store:
        known: dict[Neuron, Row] = {}
        for number, prompt in enumerate(prompts):
            questions = read_by(store, prompt, given.tokens)
            rows = store.read(Question([neuron for one in questions for neuron in one]))
            mine = {row.neuron: row for row in rows if row}
            known |= mine
            whole, again = (_again(store, questions, mine, one) for one in (NO_MARKS, _MARKS))
            print(
                f"prompt {number}: {len(mine)} rows; read again {whole[0]:,} bytes in"
                f" {whole[1] * 1000:.1f} ms of both peers; confirmed {again[0]:,} in"
                f" {again[1] * 1000:.1f} ms"
            )
        _costs(store, known)


_MARKS = Marking(b"a secret")


def _again(
    store: Store, questions: list[list[Neuron]], known: Known, marking: Marking
) -> tuple[int, float]:
    """Return the bytes of all messages of some questions, and the processor time that they take."""
    spec, answers = store.spec, Answers(store, lambda shard: ReplicaState.READY)
    limits = Limits(spec.branches, spec.segments, _MOST, _MOST, _MOST)
    calls = RowCalls(limits, cast(PeersView, Others(_PEER)), 2.0, marking)
    nbytes, began = 0, time.process_time()

    for neurons in questions:
        call = calls.ask(_PEER, neurons, partial(_read, neurons), 0.0, known)
        question = encode(call.message)
        answer = encode(answers.to(decode(question)))
        calls.answered(call.number, decode(answer), 0.0)
        nbytes += len(question) + len(answer)
    return nbytes, time.process_time() - began


def _read(neurons: list[Neuron], told: RowAnswer, now: float) -> None:
    """Use the rows of an answer, as a reader does."""
    assert told.rows is not None
    told.rows.read(Question(neurons))


def _costs(store: Store, known: Known) -> None:
    """Print what a row's mark costs, and what its encoding, by the length of the row."""
    for length in _LENGTHS:
        row = min(known.values(), key=lambda row: abs(len(row.strength) - length))
        concept, feature = (np.array([one], np.uint64) for one in row.neuron)
        data = store.rows(concept, feature)
        seconds = (
            _best(partial(mark, row, bytes(SALT_BYTES))),
            _best(partial(store.rows, concept, feature)),
        )
        print(
            f"{len(row.strength):7,} connections, {len(data):7,} bytes: mark"
            f" {seconds[0] * 1e6:6,.0f} us, read and encode {seconds[1] * 1e6:6,.0f} us"
        )


def _best(deed: Callable[[], object]) -> float:
    found = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        deed()
        found.append(time.perf_counter() - began)
    return min(found)


if __name__ == "__main__":
    main()
