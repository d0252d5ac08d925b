"""Training while strangers push poison at full rate, beside training alone.

    python -m tests.benchmarks.strangers [--keys 1 10 100] [--epochs 30] [--rounds 3]

Three storage peers and two compute peers learn texts; strangers push 64 copies of a sentence under
ever new jobs, each key to every owner. In a swarm's first ten minutes all peers are equal, so the
first flood begins when they have passed. Attackers run with the lowest priority, because real ones
have processors of their own; what they cost the peers is measured. A round lasts for many seconds,
else it would measure how hundreds of connections are opened.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from statistics import median

import uvloop

from giaann_p2p.client.training import Trainer
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.swarm.members.standing import FOUNDING
from tests.benchmarks.swarm.swarms import swarm_of, visiting
from tests.benchmarks.swarm.taught import taught
from tests.benchmarks.swarm.texts import again

_STORAGES, _COMPUTES = 3, 2
_LEAST = 0.8
_IDLE = 19
_OLD = FOUNDING + 30.0


def main() -> int:
    """Print a table; the exit code is 1 if training beside a flood was too slow."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.strangers")
    parser.add_argument("--keys", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--epochs", type=int, default=30, help="of the bundled text, each round")
    parser.add_argument("--rounds", type=int, default=3, help="of each, median taken")
    parser.add_argument("--age", type=float, default=_OLD, help="seconds before the first flood")
    given = parser.parse_args()
    print("| keys | pushes a minute and owner, sent | taken | sentences/s alone | beside | ratio |")
    print("|---|---|---|---|---|---|", flush=True)
    with swarm_of(_STORAGES, _COMPUTES) as swarm:
        return uvloop.run(_measured(swarm, given))


async def _measured(swarm: LocalSwarm, given: argparse.Namespace) -> int:
    epochs, rounds = given.epochs, given.rounds
    numbers, slow = count(), 0  # no text twice: it would be known
    async with visiting(swarm) as visit:
        trainer = Trainer(visit)

        async def rate() -> float:
            return (await taught(trainer, swarm, again(next(numbers)), epochs)).rate

        await rate()
        await asyncio.sleep(given.age)
        for many in given.keys:
            alone, beside = [], []
            sent = taken = 0.0
            for _ in range(rounds):
                alone.append(await rate())
                async with _strangers(swarm.link, many) as told:
                    beside.append(await rate())
                a_minute = 60 / told["seconds"] / told["owners"] / rounds
                taken += told.get("taken", 0) * a_minute
                sent += (told.get("taken", 0) + told.get("refused", 0)) * a_minute
            ratio = median(one / other for one, other in zip(beside, alone, strict=True))
            slow += ratio < _LEAST
            print(
                f"| {many} | {sent:,.0f} | {taken:,.1f} | {median(alone):,.0f}"
                f" | {median(beside):,.0f} | {ratio:.2f} |",
                flush=True,
            )
        await trainer.close()
    return int(slow > 0)


@asynccontextmanager
async def _strangers(link: str, keys: int) -> AsyncIterator[dict[str, float]]:
    """Have strangers push; when it is left, what they count is in what this gave."""
    module = "tests.benchmarks.strangers.attacker"
    process = await asyncio.create_subprocess_exec(
        *("nice", "-n", str(_IDLE), sys.executable, "-m", module, link, str(keys)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    _rank_last(process.pid)
    assert process.stdin is not None
    assert process.stdout is not None
    told: dict[str, float] = {}
    try:
        if await process.stdout.readline() != b"begun\n":
            raise SystemExit("the attackers did not begin")
        yield told
        process.stdin.close()
        told |= json.loads(await process.stdout.read())
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _rank_last(session: int) -> None:
    """Rank a session of processes behind all others: Linux heeds priorities only within one."""
    with suppress(FileNotFoundError):
        Path(f"/proc/{session}/autogroup").write_text(str(_IDLE))


if __name__ == "__main__":
    sys.exit(main())
