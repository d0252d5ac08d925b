"""What a gateway bears, and what it costs beside the Python client.

    python -m tests.benchmarks.gateway [--streams 200] [--seconds 60] [--listeners 1000]
        [--prompts 20] [--picture FILE.svg]

A swarm of real processes on this machine, of a storage peer and a compute peer, learns the bundled
text. Then so many streams of `/v1/completions` go on at once, each beginning a new prompt when its
answer ends. Before and after that, the Python client answers the same prompts as many at a time as
a compute peer takes from one client, so both find the machine alike; the mean of the two counts.
The time to the first token is the median of prompts one after the other, each over HTTP and by the
client, which take turns to be first. The memory is that of the gateway's process, without its p2pd.
At last `giaann prompt` runs as a process, through the gateway and with --no-gateway by turns.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from typing import Any

from giaann_p2p.cli.pictures.option import picture_file
from giaann_p2p.client.swarm import AsyncSwarm
from giaann_p2p.errors import PromptError, UsageError
from giaann_p2p.gateway.asking import asked, events
from giaann_p2p.gateway.server import allow_files
from giaann_p2p.gateway.whereabouts import Whereabouts
from giaann_p2p.local import linux
from giaann_p2p.local.swarm import LocalSwarm
from tests.benchmarks.gateway_plot import draw_streams
from tests.benchmarks.prompt_command import measured

_WIKI = Path(__file__).parents[1] / "data" / "wiki.txt"
_GIAANN = [sys.executable, "-c", "from giaann_p2p.cli.main import main; main()"]
_TOKENS, _EACH, _FIRST = 40, 32, 100
"""Tokens of an answer, prompts of the Python client at once, and prompts for the first token."""
_COMING = 50
"""Listeners that connect at once: all together would wait too long for their turn."""
Ask = Callable[[str], Coroutine[Any, Any, int]]


def _picture(name: str) -> Path:
    """Return the file to draw into, checked before minutes are spent on the figures."""
    try:
        return picture_file(name)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main() -> None:
    """Measure, and print the figures."""
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks.gateway")
    options.add_argument("--streams", type=int, default=200, help="streams at once")
    options.add_argument("--seconds", type=float, default=60.0, help="how long they go on")
    options.add_argument("--listeners", type=int, default=1000, help="idle listeners to events")
    options.add_argument("--prompts", type=int, default=20, help="`giaann prompt` each way")
    options.add_argument(
        "--picture", type=_picture, help="draw each second of the streams: FILE.svg"
    )
    given = options.parse_args()
    allow_files(given.streams + given.listeners)
    with LocalSwarm(storages=1, computes=1, gateways=1, replicas=1, shards=16) as swarm:
        train = [*_GIAANN, "train", str(_WIKI), "--join", swarm.link]
        subprocess.run(train, check=True, stdout=subprocess.DEVNULL)
        found = asyncio.run(
            _measured(swarm, given.streams, given.seconds, given.listeners, given.picture)
        )
        found |= measured(swarm.link, _prompts()[0], given.prompts)
    print(json.dumps(found, indent=2))


async def _measured(
    swarm: LocalSwarm, streams: int, seconds: float, listeners: int, picture: Path | None
) -> dict[str, object]:
    gateway = swarm.peer("gateway-1")
    where = Whereabouts(url=f"http://{gateway.listen}", pid=gateway.pid)
    async with AsyncSwarm.join(swarm.link) as client:

        async def by_client(prompt: str) -> int:
            return len((await client.generate(prompt, max_tokens=_TOKENS)).tokens)

        async def first_by_client(prompt: str) -> float:
            began, taken = time.perf_counter(), 0.0
            async for _ in await client.stream(prompt, max_tokens=_TOKENS):
                taken = taken or time.perf_counter() - began
            return taken

        ask, prompts = _asking(where), await _good(_prompts(), by_client)
        await _rate(by_client, prompts, _EACH, 5.0)  # warm
        at_first = _memory(gateway.pid)
        before = await _rate(by_client, prompts, _EACH, seconds / 4)
        memory, errors, said = [at_first], list[str](), [0, 0]

        async def counted(prompt: str) -> int:
            tokens = await ask(prompt)
            said[-1] += tokens
            return tokens

        watching = asyncio.create_task(_watched(gateway.pid, memory, said))
        tokens = await _rate(counted, prompts, streams, seconds, errors)
        watching.cancel()
        after = await _rate(by_client, prompts, _EACH, seconds / 4)
        http, python = list[float](), list[float]()
        for number in range(_FIRST):
            prompt, turn = prompts[number % len(prompts)], 1 if number % 2 else -1
            asks = (http, lambda prompt: _first(where, prompt)), (python, first_by_client)
            for taken, first in asks[::turn]:  # who asks second finds the rows at hand
                taken.append(await first(prompt))
    idle = _memory(gateway.pid)
    heard = await _listening(where, listeners, gateway.pid)
    rate = (before + after) / 2
    if picture is not None:
        draw_streams(picture, each_second(said), memory[1:], rate, streams)
    return {
        "streams": streams,
        "errors": len(errors),
        "kinds of errors": sorted(set(errors)),
        "tokens a second over HTTP": round(tokens, 1),
        "tokens a second by the Python client": round(rate, 1),
        "ratio": round(tokens / rate, 3),
        "memory before, MB": round(at_first, 1),
        "memory at most, MB": round(max(memory), 1),
        "memory of the listeners, MB": round(heard - idle, 1),
        "first token over HTTP, ms": round(1000 * median(http), 2),
        "first token by the Python client, ms": round(1000 * median(python), 2),
        "first token, ratio": round(median(http) / median(python), 3),
        "load": os.getloadavg()[0],
    }


def _prompts() -> list[str]:
    lines = [line.split() for line in _WIKI.read_text().splitlines()]
    return [" ".join(words[:8]) for words in lines if len(words) > 20][:200]


async def _good(prompts: Sequence[str], ask: Ask) -> list[str]:
    """Return the prompts that have an answer: a few name no noun."""
    found = []
    for prompt in prompts:
        with suppress(PromptError):
            if await ask(prompt):
                found.append(prompt)
    return found


def _asking(where: Whereabouts) -> Ask:
    """Return what streams a completion, and returns the number of its tokens."""

    async def ask(prompt: str) -> int:
        body = {"model": "local", "prompt": prompt, "max_tokens": _TOKENS, "stream": True}
        body["stream_options"] = {"include_usage": True}
        async with asked(where, "/v1/completions", body) as reply:
            lines = [line async for line in reply.body if line.startswith(b"data: {")]
        last = json.loads(lines[-1].removeprefix(b"data: "))
        if "error" in last:
            raise RuntimeError(last["error"]["message"])
        tokens: int = last["usage"]["completion_tokens"]
        return tokens

    return ask


async def _rate(
    ask: Ask,
    prompts: Sequence[str],
    at_once: int,
    seconds: float,
    errors: list[str] | None = None,
) -> float:
    """Return the tokens a second of so many askers at once; errors are collected, or raised."""
    clock, numbers = time.monotonic, count()
    began, said = clock(), 0

    async def go_on() -> None:
        nonlocal said
        while clock() - began < seconds:
            try:
                tokens = await ask(prompts[next(numbers) % len(prompts)])
            except Exception as error:
                if errors is None:
                    raise
                errors.append(str(error))
            else:
                said += tokens

    await asyncio.gather(*(go_on() for _ in range(at_once)))
    return said / (clock() - began)


async def _first(where: Whereabouts, prompt: str) -> float:
    """Return the seconds until the first token; wait for the rest, which would delay others."""
    body = {"model": "local", "prompt": prompt, "max_tokens": _TOKENS, "stream": True}
    began = time.perf_counter()
    async with asked(where, "/v1/completions", body) as reply:
        await reply.body.readline()
        taken = time.perf_counter() - began
        async for _ in reply.body:
            pass
    return taken


async def _watched(pid: int, memory: list[float], said: list[int]) -> None:
    """Note the memory of a process each second, and how much was said by then, until cancelled."""
    while True:
        await asyncio.sleep(1.0)
        memory.append(_memory(pid))
        said.append(said[-1])


def each_second(said: Sequence[int]) -> list[int]:
    """Return how much was said in each second, given how much was said by its end."""
    return [after - before for before, after in pairwise(said)]


def _memory(pid: int) -> float:
    """Return the memory of a process alone, in megabytes."""
    found = linux.memory(pid)
    return 0.0 if found is None else (found.private + found.shared) / 1e6


async def _listening(where: Whereabouts, listeners: int, pid: int) -> float:
    """Return the gateway's memory with so many listeners, each of whom has heard the state."""
    over, ready, coming = asyncio.Event(), asyncio.Semaphore(0), asyncio.Semaphore(_COMING)

    async def listen() -> None:
        async with AsyncExitStack() as listening:
            async with coming:
                reply = await listening.enter_async_context(asked(where, "/api/events"))
                async for name, _ in events(reply):
                    if name == "rates":
                        break
            ready.release()
            await over.wait()

    async with asyncio.TaskGroup() as tasks:  # one that fails ends the wait for it
        for _ in range(listeners):
            tasks.create_task(listen())
        for _ in range(listeners):
            await ready.acquire()
        found = _memory(pid)
        over.set()
    return found


if __name__ == "__main__":
    main()
