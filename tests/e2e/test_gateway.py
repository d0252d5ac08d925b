"""A gateway to a swarm of real peers: it answers, outlives what dies, and commands use it."""

import http.client
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from giaann_p2p.local.swarm import LocalSwarm
from tests.e2e.conftest import NewSwarm
from tests.e2e.persistent import Request, asking

pytestmark = pytest.mark.e2e
TEXT = (
    "Bees make honey from the nectar that they collect from flowers in the summer.\n"
    "The old captain of the ship told the young sailors a long story about the sea.\n"
)
PROMPT, REST = "Bees make honey from", "nectar"
NEW_PROMPT = "The old captain of the ship"
"""A prompt whose rows no compute peer has read yet."""
WITHIN = 300.0
"""Only for what hangs."""
HANGS = 30.0
"""Seconds that no request may take, whatever is dead."""
CHAT: list[ChatCompletionMessageParam] = [{"role": "user", "content": PROMPT}]
REQUESTS = [
    Request(
        "POST",
        "/v1/completions",
        {"model": "local", "prompt": PROMPT, "stream": True},
        end=b"data: [DONE]\n\n",
    ),
    Request("POST", "/v1/chat/completions", {"model": "local", "messages": CHAT}),
    Request("GET", "/api/columns/bee"),
    Request("GET", "/api/search?q=be"),
    Request("GET", "/api/status"),
]
"""What clients send while peers die: it may fail then, but must end."""
PROGRAM = """
import sys
from giaann_p2p.cli.main import main
try:
    main()
finally:
    print("joined" if "giaann_p2p.client.session" in sys.modules else "asked", file=sys.stderr)
"""


def test_a_gateway_outlives_its_swarm_and_commands_use_it(
    new_swarm: NewSwarm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with new_swarm(
        storages=1,
        computes=1,
        gateways=1,
        replicas=1,
        shards=4,
        arguments={"gateway": ["--allow-training"]},
    ) as swarm:
        gateway = swarm.peer("gateway-1")
        assert b"event: done" in posted(gateway.listen, "/api/train?name=bees", TEXT)[1]
        assert REST in said(gateway.listen)
        the_openai_package_streams_and_chats(gateway.listen)
        commands_print_the_same(swarm.link)
        dies_and_comes_back(swarm, gateway.listen, "compute-1", PROMPT)
        dies_and_comes_back(swarm, gateway.listen, "storage-1", NEW_PROMPT)
        assert swarm.peer("gateway-1").pid == gateway.pid  # it never started again


def the_openai_package_streams_and_chats(at: str) -> None:
    """Continue a prompt in a stream, in a chat, and in a chat's stream: always with the same."""
    with OpenAI(base_url=f"http://{at}/v1", api_key="none", timeout=WITHIN) as client:
        model = client.models.list().data[0].id
        whole = client.completions.create(model=model, prompt=PROMPT).choices[0]
        chunks = [*client.completions.create(model=model, prompt=PROMPT, stream=True)]
        assert len(chunks) > 2
        assert "".join(one.choices[0].text for one in chunks) == whole.text
        assert chunks[-1].choices[0].finish_reason == whole.finish_reason
        chat = client.chat.completions.create(model=model, messages=CHAT).choices[0]
        assert (chat.message.content, chat.finish_reason) == (whole.text, whole.finish_reason)
        parts = [*client.chat.completions.create(model=model, messages=CHAT, stream=True)]
        assert "".join(one.choices[0].delta.content or "" for one in parts) == whole.text
        assert REST in whole.text


def commands_print_the_same(link: str) -> None:
    for command in (
        ["prompt", PROMPT],
        ["prompt", PROMPT, "--json"],
        ["prompt", PROMPT, "--stream", "--explain"],
        ["prompt", "zorp of zorps"],
        ["column", "bee"],
        ["column", "bee", "--json"],
        ["status"],
    ):
        by_gateway, joined = run(*command, "--join", link), run(*command, "--join", link, "-G")
        assert by_gateway.stderr.endswith("asked\n"), by_gateway.stderr
        assert joined.stderr.endswith("joined\n")
        assert settled(command, by_gateway.stdout) == settled(command, joined.stdout)
        assert by_gateway.returncode == joined.returncode


def settled(command: list[str], output: str) -> str:
    """Return what a command printed, of a status without its numbers, which change meanwhile."""
    if command != ["status"]:
        return output
    lasting = re.sub(r"; (compute peers learn|they answer).*", "", output)
    return " ".join(re.sub(r"\b[0-9.]+\b", "N", lasting).split())


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    given = ["--no-gateway" if one == "-G" else one for one in arguments]
    command = [sys.executable, "-c", PROGRAM, *given]
    return subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)


def dies_and_comes_back(swarm: LocalSwarm, at: str, name: str, prompt: str) -> None:
    """Kill the only peer of a role; its gateway says so, and answers again once it is back.

    The peer stops first, so that requests are under way when it dies. Whatever else clients ask
    from then on until the peer is back must end, too.
    """
    swarm.stop(name)
    with asking(at, REQUESTS, WITHIN) as clients:
        killed_and_back(swarm, at, name, prompt)
    for request, client in zip(REQUESTS, clients, strict=True):
        slowest = max(client.replies, key=lambda reply: reply.seconds)
        assert slowest.seconds < HANGS, (request, slowest)
        assert [reply.error for reply in client.replies if reply.error] == [], request
        assert {reply.status for reply in client.replies} <= {200, 503}, request
    assert REST in said(at)


def killed_and_back(swarm: LocalSwarm, at: str, name: str, prompt: str) -> None:
    short = swarm.peer(name).peer[:8]
    line, answer = listening(at)
    swarm.kill(name)
    swarm.wait_ended(name)
    shows_silent(answer, short)
    answer.close()
    line.close()
    began = time.monotonic()
    status, body, headers = asked(at, prompt)
    assert time.monotonic() - began < HANGS
    assert status == 503, body
    assert headers["retry-after"]
    swarm.restart(name)
    swarm.wait_ready([name])
    while status != 200:  # until the peer is in the directory, and its rows are served
        began = time.monotonic()
        status, body, _ = asked(at, prompt)
        assert time.monotonic() - began < HANGS
        assert status in (200, 503), body


def said(at: str) -> str:
    """Continue the prompt with the `openai` package, as soon as that can be."""
    with OpenAI(base_url=f"http://{at}/v1", api_key="none", timeout=WITHIN) as client:
        while True:
            try:
                found = client.completions.create(model="local", prompt=PROMPT)
            except openai.InternalServerError as error:
                assert error.status_code == 503  # noqa: PT017
                continue
            return found.choices[0].text


def asked(at: str, prompt: str) -> tuple[int, bytes, dict[str, str]]:
    body = json.dumps({"model": "local", "prompt": prompt})
    return posted(at, "/v1/completions", body)


def posted(at: str, path: str, body: str) -> tuple[int, bytes, dict[str, str]]:
    line = http.client.HTTPConnection(at, timeout=WITHIN)
    try:
        line.request("POST", path, body, {"Content-Type": "text/plain"})
        reply = line.getresponse()
        return reply.status, reply.read(), {k.lower(): v for k, v in reply.getheaders()}
    finally:
        line.close()


def listening(at: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    line = http.client.HTTPConnection(at, timeout=WITHIN)
    line.request("GET", "/api/events")
    return line, line.getresponse()


def shows_silent(answer: http.client.HTTPResponse, peer: str) -> None:
    """Read events until a peer is shown as silent, or is no longer shown."""
    name = ""
    while line := answer.readline().decode().strip("\n") or " ":
        key, _, value = line.partition(": ")
        name = value if key == "event" else name
        if key == "data" and name == "peers":
            shown: list[dict[str, Any]] = json.loads(value)["peers"]
            if all(one["silent"] for one in shown if one["name"] == peer):
                return
