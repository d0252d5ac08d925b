"""Commands through a gateway: what it says is printed, and what it refuses is done without it."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from giaann_p2p.cli.through_gateway import GatewayOracle, NoReads
from giaann_p2p.errors import UsageError
from giaann_p2p.gateway import whereabouts
from giaann_p2p.gateway.failures import Unavailable
from giaann_p2p.gateway.views import PeersNow
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.swarm.wire.link import Link
from tests.cli.conftest import GIAANN, Run
from tests.unit.gateway.serving import Served, served

SWARM = bytes(range(32))
LINK = str(
    Link(SWARM, ("/ip4/127.0.0.1/tcp/1/p2p/12D3KooWJzAMc6f4afnkkrUydqgNnjcg8ar3P3c2eDM8XCGn5QTQ",))
)


PROGRAM = """
import sys
from giaann_p2p.cli.main import main
try:
    main()
except SystemExit:
    pass
slow = ("giaann_p2p.cli.swarm", "giaann_p2p.client.session", "numpy", "torch", "spacy")
print([one for one in slow if one in sys.modules])
"""
"""The command, which tells at last what it imported of what takes long."""


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A gateway to the swarm of LINK, which nobody could join: it has no peers."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with served() as found:
        where = whereabouts.Whereabouts(url=found.url, pid=1)
        with whereabouts.told(whereabouts.of_swarm(SWARM), where):
            yield found


@pytest.fixture
def _no_swarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail at once where a command joins the swarm."""

    def join(*_: object) -> None:
        raise UsageError("joins the swarm")

    monkeypatch.setattr("giaann_p2p.cli.visiting.oracle_of", join)
    monkeypatch.setattr("giaann_p2p.cli.visiting.visiting", join)


@pytest.mark.usefixtures("_no_swarm")
def test_a_prompt_is_answered_as_the_gateway_says(giaann: Run, at: Served) -> None:
    at.backend.lost = "2 shards"
    done = giaann("prompt", "Bees", "--join", LINK)
    assert (done.returncode, done.stdout) == (0, "Bees 1 2 3\n")
    assert "the swarm has lost some of what it knew: 2 shards" in done.stderr
    found = json.loads(giaann("prompt", "Bees zorp", "--json", "--stats", "--join", LINK).stdout)
    assert (found["text"], found["unknown"], found["stopped"]) == (" 1 2 3", ["zorp"], "end")
    assert (found["begun"]["ms"], found["costs"][0]["ms"]) == (0.005, 0.007)
    assert (found["lies"], found["undecided"]) == ([], 0)
    streamed = giaann("prompt", "Bees", "--stream", "--max-tokens", 2, "--join", LINK)
    assert streamed.stdout == "Bees 1 2\n"
    explained = giaann("prompt", "Bees", "--explain", "--join", LINK).stdout
    assert "exact  score   1.000  p 0.500  of    3 candidates  number/1" in explained


@pytest.mark.usefixtures("at")
def test_a_prompt_imports_no_other_command_and_nothing_that_joins() -> None:
    command = [sys.executable, "-c", PROGRAM, "prompt", "Bees", "--join", LINK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "Bees 1 2 3\n[]\n", done.stderr


@pytest.mark.usefixtures("_no_swarm")
def test_a_chat_and_a_column_come_from_the_gateway(giaann: Run, at: Served) -> None:
    done = giaann("chat", "--join", LINK, stdin="Bees\n/quit\n")
    assert (done.returncode, done.stdout) == (0, "Bees 1 2 3\n")
    found = json.loads(giaann("column", "civil war", "--json", "--join", LINK).stdout)
    assert (found["concept"], found["words"][0]["occurrences"]) == ("civil_war", 16)


@pytest.mark.usefixtures("_no_swarm")
def test_a_chat_says_why_a_gateway_refuses_and_goes_on(giaann: Run, at: Served) -> None:
    done = giaann("chat", "--join", LINK, stdin="nothing\nBees\n/quit\n")
    assert (done.returncode, done.stdout) == (0, "Bees 1 2 3\n")
    assert "answers with 400: a prompt needs a noun; joining the swarm" in done.stderr
    assert "giaann: joins the swarm" in done.stderr


@pytest.mark.usefixtures("_no_swarm", "at")
def test_a_chat_takes_no_number_of_tokens_that_no_answer_can_have(giaann: Run) -> None:
    typed = f"/max {'9' * 5000}\n/max 0\n/max 2\nBees\n/quit\n"
    done = giaann("chat", "--join", LINK, stdin=typed)
    assert (done.returncode, done.stdout) == (0, "Bees 1 2\n")
    assert done.stderr.count("/max takes a number of tokens, 1 to 65,536") == 2


@pytest.mark.usefixtures("_no_swarm", "at")
def test_a_chat_answers_what_is_not_text_as_far_as_it_is(giaann: Run) -> None:
    done = giaann("chat", "--join", LINK, stdin=b"Bees\n\xff\xfe\nBees \xed\xb3\xbf\nBees\n")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines == [
        "Bees 1 2 3",
        "\ufffd\ufffd 1 2 3",
        "Bees \ufffd\ufffd\ufffd 1 2 3",
        "Bees 1 2 3",
    ]


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize("arguments", [["chat"], ["prompt", "Bees", "--stream"]], ids=" ".join)
def test_an_answer_that_nobody_reads_is_closed_in_good_order(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*GIAANN, *arguments, "--join", LINK],
        input=b"Bees\n",
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=100,
        check=False,
    )
    os.close(writing)
    assert done.stderr == b""


@pytest.mark.usefixtures("at")
def test_a_chat_on_a_full_disk_says_so() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*GIAANN, "chat", "--join", LINK],
            input="Bees\n",
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=100,
            check=False,
        )
    told = "giaann: standard output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


class Joined(NoReads):
    """The session of a swarm that was joined, as far as a chat looks at it."""

    manifest = SimpleNamespace(swarm_id=SWARM)

    def losses(self) -> None:
        """Return None: nothing is lost."""


def test_a_chat_joins_the_swarm_when_its_gateway_fails(
    giaann: Run, at: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served() as other:
        swarm = GatewayOracle(whereabouts.Whereabouts(url=other.url, pid=1))
        swarm.visiting = Joined()

        @asynccontextmanager
        async def join(*_: object) -> AsyncIterator[GatewayOracle]:
            yield swarm

        monkeypatch.setattr("giaann_p2p.cli.visiting.oracle_of", join)
        at.backend.fault, at.backend.fault_at, other.backend.length = Unavailable("gone"), 0, 2
        done = giaann("chat", "--join", LINK, stdin="Bees\nBees\n/quit\n")
    assert (done.returncode, done.stdout) == (0, "Bees 1 2\nBees 1 2\n")
    assert done.stderr.count("answers with 503: gone; joining the swarm") == 1


@pytest.mark.usefixtures("_no_swarm")
def test_a_picture_of_a_column_comes_from_the_gateway(
    giaann: Run, at: Served, tmp_path: Path
) -> None:
    file = tmp_path / "war.png"
    done = giaann("column", "civil war", "--join", LINK, "--picture", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("_no_swarm")
def test_a_picture_in_another_format_is_refused_before_anybody_is_asked(
    giaann: Run, at: Served, tmp_path: Path
) -> None:
    for command in (["column", "civil war"], ["swarm", "map"]):
        done = giaann(*command, "--join", LINK, "--picture", tmp_path / "war.gif")
        assert (done.returncode, done.stdout) == (2, "")
        told = "giaann: --picture takes a file that ends in .svg or .png, not "
        assert done.stderr == f"{told}{tmp_path / 'war.gif'}\n"


@pytest.mark.usefixtures("_no_swarm")
def test_a_map_comes_from_the_gateway(giaann: Run, at: Served, tmp_path: Path) -> None:
    async def peers() -> PeersNow:
        return PeersNow(shards=[[("maya", "ready")], [("maya", "ready"), ("willi", "lost")], []])

    at.backend.peers = peers
    found = json.loads(giaann("swarm", "map", "--json", "--join", LINK).stdout)
    assert found == {
        "name": "bees",
        "replicas": 1,
        "peers": [],
        "shards": [[["maya", "ready"]], [["maya", "ready"]], []],
    }

    async def away() -> PeersNow:
        raise Unavailable("the swarm is away")

    at.backend.peers = away
    assert "joins the swarm" in giaann("swarm", "map", "--join", LINK).stderr


@pytest.mark.usefixtures("_no_swarm")
@pytest.mark.parametrize("option", ["--no-gateway", "--local", "--verify", "--device=cpu"])
def test_some_options_go_without_the_gateway(giaann: Run, at: Served, option: str) -> None:
    assert "joins the swarm" in giaann("prompt", "Bees", option, "--join", LINK).stderr
    assert at.backend.manners == []


@pytest.mark.usefixtures("_no_swarm")
def test_what_a_gateway_refuses_is_done_without_it(giaann: Run, at: Served) -> None:
    assert "joins the swarm" in giaann("column", "zorp", "--join", LINK).stderr
    assert "joins the swarm" in giaann("status", "--join", LINK).stderr  # this one is no swarm
    at.backend.away = "the swarm is away"
    assert "joins the swarm" in giaann("prompt", "Bees", "--join", LINK).stderr
    at.stop()
    assert "joins the swarm" in giaann("prompt", "Bees", "--join", LINK).stderr


@pytest.mark.usefixtures("_no_swarm")
def test_an_answer_that_breaks_off_is_an_error(giaann: Run, at: Served) -> None:
    at.backend.fault, at.backend.fault_at = Unreachable("the peers are gone"), 1
    done = giaann("prompt", "Bees", "--stream", "--join", LINK)
    assert done.returncode == 1
    assert "the peers are gone" in done.stderr
    assert done.stdout.startswith("Bees 1")
