"""How long `giaann prompt` takes as a process: through a gateway, and if it joins the swarm."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

_PROGRAM = """
import sys
from giaann_p2p.cli.main import main
try:
    main()
finally:
    print("joined" if "giaann_p2p.client.session" in sys.modules else "asked", file=sys.stderr)
"""
"""Runs a command, and says last whether it joined the swarm or asked a gateway."""
_WAYS = {"asked": (), "joined": ("--no-gateway",)}
Measure = Callable[[str, Sequence[str]], float]


def measured(link: str, prompt: str, times: int) -> dict[str, float]:
    """Return the median and the least of the seconds that a prompt takes, each way."""
    command = ["prompt", prompt, "--max-tokens", "20", "--join", link]
    taken = by_turns(times, lambda way, options: _seconds(way, [*command, *options]))
    return {
        "prompt through the gateway, s": round(median(taken["asked"]), 3),
        "prompt through the gateway, least, s": round(min(taken["asked"]), 3),
        "prompt with --no-gateway, s": round(median(taken["joined"]), 3),
        "prompt with --no-gateway, least, s": round(min(taken["joined"]), 3),
    }


def by_turns(times: int, measure: Measure) -> dict[str, list[float]]:
    """Measure both ways so often, one after the other, so that both find the machine alike."""
    taken: dict[str, list[float]] = {way: [] for way in _WAYS}
    for _ in range(times):
        for way, options in _WAYS.items():
            taken[way].append(measure(way, options))
    return taken


def _seconds(way: str, arguments: Sequence[str]) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-c", _PROGRAM, *arguments]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    taken = time.perf_counter() - began
    if not found.stderr.endswith(f"{way}\n"):
        raise RuntimeError(f"the command has not {way}: {found.stderr[-200:]}")
    return taken
