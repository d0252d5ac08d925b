"""How long a user waits for the first word of an answer, and what a client costs.

    python -m tests.benchmarks.first_token [--computes 1] [--runs 5] [--json]

A swarm of real processes on this machine, of three storage peers and some compute peers, learns
the bundled text. Then each run starts `giaann prompt --stream` as a new process. Wall time counts
from the start of that process; processor time is that of the process and of its p2pd, to their end.
The median of the runs counts. Other processes on the machine add to both. The modules are compiled
by a first run that is not measured, as those of an installed package are.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from giaann_p2p.local.swarm import LocalSwarm

_STORAGES, _REPLICAS = 3, 2
_WIKI = Path(__file__).parents[1] / "data" / "wiki.txt"
_WORDS, _SHORTEST = 12, 18
_GIAANN = [sys.executable, "-c", "from giaann_p2p.cli.main import main; main()"]
_STREAMED = ["--stream", "--json", "--max-tokens", "20"]


class Taken(NamedTuple):
    """The times of one run, in seconds."""

    first: float
    """From the start of the process to the first token."""
    whole: float
    """From the start of the process to its end."""
    processor: float
    """Processor time of the client and of its p2pd."""


def main() -> None:
    """Measure, and print the medians."""
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks.first_token")
    options.add_argument("--computes", type=int, default=1, help="compute peers")
    options.add_argument("--runs", type=int, default=5, help="the median is taken")
    options.add_argument("--json", action="store_true", help="print JSON")
    given = options.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="giaann-compiled-") as compiled,
        LocalSwarm(
            profile="words",
            storages=_STORAGES,
            computes=given.computes,
            replicas=_REPLICAS,
        ) as swarm,
    ):
        train = [*_GIAANN, "train", str(_WIKI), "--join", swarm.link]
        subprocess.run(train, check=True, stdout=subprocess.DEVNULL)
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        warming, *prompts = _prompts()
        asked(warming, swarm.link, environment)
        runs = [asked(prompt, swarm.link, environment) for prompt in prompts[: given.runs]]
    found = Taken(*map(median, zip(*runs, strict=True)))
    if given.json:
        every = {"runs": [run._asdict() for run in runs], "load": os.getloadavg()[0]}
        print(json.dumps(found._asdict() | every))
    else:
        print(
            f"first token {found.first:.2f} s, end {found.whole:.2f} s after the start;"
            f" processor {found.processor:.2f} s (median of {len(runs)})"
        )


def asked(prompt: str, link: str, environment: Mapping[str, str]) -> Taken:
    """Ask a swarm to continue a prompt, in a new process, and measure that."""
    began, first = time.perf_counter(), 0.0
    command = [*_GIAANN, "prompt", prompt, "--join", link, *_STREAMED]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, text=True, env=environment) as client:
        assert client.stdout is not None
        for number, _ in enumerate(client.stdout):
            if number == 1:  # line 0 is about the prompt
                first = time.perf_counter() - began
        # The client waits for its p2pd, so the kernel adds the p2pd's processor time to its own.
        _, status, usage = os.wait4(client.pid, 0)
        client.returncode = os.waitstatus_to_exitcode(status)
    return Taken(first, time.perf_counter() - began, usage.ru_utime + usage.ru_stime)


def _prompts() -> list[str]:
    """Return the first words of the text's longer sentences."""
    found = [line.split() for line in _WIKI.read_text().splitlines()]
    return [" ".join(words[:_WORDS]) for words in found if len(words) >= _SHORTEST]


if __name__ == "__main__":
    main()
