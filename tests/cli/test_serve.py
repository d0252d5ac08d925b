"""`giaann serve`: its options, its address, and its end."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from giaann_p2p import Brain
from giaann_p2p.gateway import whereabouts
from tests.cli.conftest import GIAANN, TEXT, Run

WITHIN = 200.0


@pytest.fixture(scope="module")
def brain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("brains") / "bees"
    with Brain.open(folder) as found:
        found.train(TEXT)
    return folder


@pytest.fixture(autouse=True, scope="module")
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep gateways that are killed here out of the user's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Run a gateway; yield its address once it answers."""
    command = [*GIAANN, "serve", *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def test_a_brain_is_served_until_a_signal_and_found_meanwhile(brain: Path) -> None:
    file = whereabouts.of_brain(brain)
    with serving("--db", brain, "--listen", "127.0.0.1:0") as (url, process):
        where = whereabouts.find(file)
        assert where is not None
        assert (where.url, where.pid, where.key_file) == (url, process.pid, "")
        body = json.dumps({"model": "bees", "prompt": "Bees make honey from"}).encode()
        with urlopen(Request(f"{url}/v1/completions", body), timeout=WITHIN) as reply:  # noqa: S310
            assert "nectar" in json.load(reply)["choices"][0]["text"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN) == 0
    assert whereabouts.find(file) is None


def test_another_address_takes_a_key_which_is_made(brain: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    with serving("--db", brain, "--listen", "0.0.0.0:0", "--api-key", key, "--json") as (line, _):
        url = json.loads(line)["url"].replace("//0.0.0.0", "//127.0.0.1")
        with pytest.raises(HTTPError, match="401"):
            urlopen(f"{url}/v1/models", timeout=WITHIN)  # noqa: S310
        headers = {"Authorization": f"Bearer {key.read_text().strip()}"}
        with urlopen(Request(f"{url}/v1/models", headers=headers), timeout=WITHIN) as reply:  # noqa: S310
            assert json.load(reply)["data"][0]["id"] == "bees"
        where = whereabouts.find(whereabouts.of_brain(brain))
        assert where is not None
        assert where.key_file == str(key)


def test_a_port_that_is_taken_is_told_before_anything_slow(brain: Path) -> None:
    with serving("--db", brain, "--listen", "127.0.0.1:0") as (url, _):
        port = url.rpartition(":")[2]
        command = [*GIAANN, "serve", "--db", str(brain), "--listen", f"127.0.0.1:{port}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)
        assert done.returncode == 2
        assert f"127.0.0.1:{port}: Address already in use" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "either a swarm (--join LINK) or a brain (--db DIR)"),
        (["--db", "x", "--join", "y"], "either a swarm (--join LINK) or a brain (--db DIR)"),
        (["--db", "no-such-brain"], "there is no brain in"),
        (["--join", "giaann://cut"], "cut off"),
        (["--db", "x", "--listen", "8440"], "HOST:PORT"),
        (["--db", "x", "--listen", "127.0.0.1:99999"], "HOST:PORT"),
        (["--db", "x", "--listen", f"127.0.0.1:{'9' * 5000}"], "HOST:PORT"),
        (["--db", "x", "--listen", "0.0.0.0:8440"], "give --api-key FILE"),
        (["--db", "x", "--allow-origin", "chat.example"], "--allow-origin"),
        (["--db", "x", "--allow-origin", "https://chat.example/page"], "--allow-origin"),
        (["--db", "x", "--allow-host", "https://chat.example"], "--allow-host"),
        (["--db", "x", "--allow-host", ""], "--allow-host"),
        (["--db", "x", "--api-key", "/no/such/folder/key"], "cannot be made"),
    ],
)
def test_wrong_options_are_told(giaann: Run, arguments: list[str], why: str) -> None:
    done = giaann("serve", *arguments)
    assert done.returncode == 2
    assert why in " ".join(done.stderr.split())


def test_the_link_may_come_from_the_environment(
    giaann: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIAANN_JOIN", "giaann://cut")
    assert "cut off" in giaann("serve").stderr
