"""`curl`, as it is, at a gateway: a completion, a stream as it comes, and a file that is taught."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import pytest

from tests.unit.gateway.serving import WITHIN, Served, Stub, served

JSON = ["-H", "Content-Type: application/json"]


@pytest.fixture
def at() -> Iterator[Served]:
    with served(partial(Stub, training=True)) as found:
        yield found


@contextmanager
def curl(*arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run curl; fail if it is missing, because then nothing would be tested."""
    program = shutil.which("curl")
    assert program is not None, "curl is missing: apt-get install curl"
    options = ["-q", "--silent", "--show-error", "--noproxy", "*", "--max-time", str(WITHIN)]
    command = [program, *options, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def said(*arguments: str) -> tuple[bytes, int]:
    """Run curl to its end; return what it printed, and the status that it met."""
    with curl("--write-out", "%{stderr}%{http_code}", *arguments) as process:
        output, status = process.communicate(timeout=WITHIN)
        assert process.returncode == 0, status
    return output, int(status)


def test_a_completion(at: Served) -> None:
    body = json.dumps({"model": "bees", "prompt": "Bees"})
    output, status = said(*JSON, "-d", body, f"{at.url}/v1/completions")
    assert status == 200
    (choice,) = json.loads(output)["choices"]
    assert (choice["text"], choice["finish_reason"]) == (" 1 2 3", "stop")
    output, status = said(
        *JSON, "-d", '{"model": "zorp", "prompt": "a"}', f"{at.url}/v1/completions"
    )
    assert (status, json.loads(output)["error"]["code"]) == (404, "model_not_found")


def test_a_stream_is_printed_as_it_comes(at: Served) -> None:
    at.backend.held_at = 2
    body = json.dumps({"model": "bees", "prompt": "Bees", "stream": True})
    with curl("-N", *JSON, "-d", body, f"{at.url}/v1/completions") as process:
        assert process.stdout is not None
        assert [text_of(process.stdout) for _ in range(2)] == [" 1", " 2"]
        at.run(at.backend.holding.wait())  # the rest is not there yet
        at.loop.call_soon_threadsafe(at.backend.go.set)
        assert text_of(process.stdout) == " 3"
        assert process.stdout.read().endswith(b"data: [DONE]\n\n")
        assert process.wait(WITHIN) == 0


def text_of(output: IO[bytes]) -> str:
    """Return the text of the next chunk that is printed."""
    line, end = output.readline(), output.readline()
    assert (line[:6], end) == (b"data: ", b"\n"), line
    text: str = json.loads(line[6:])["choices"][0]["text"]
    return text


def test_a_file_is_taught(at: Served, tmp_path: Path) -> None:
    file = tmp_path / "bees.txt"
    file.write_text("Bees make honey.\r\n\r\nBees fly.\n", newline="")
    for query, name in (("", "bees.txt"), ("?name=mine", "mine")):
        output, status = said("-F", f"file=@{file}", f"{at.url}/api/train{query}")
        assert status == 200, output
        report = output.partition(b"event: done\ndata: ")[2]
        assert json.loads(report) == {"name": name, "letters": file.stat().st_size}
