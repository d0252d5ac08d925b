"""The README as a newcomer reads it: its commands and examples print what it says."""

import re
from collections.abc import Iterator
from contextlib import suppress

import pytest

from giaann_p2p.errors import GiaannError
from giaann_p2p.local.remote import Remote
from tests.docs.blocks import ROOT
from tests.docs.plays import block_of, in_scene
from tests.docs.reader import Reader

pytestmark = pytest.mark.slow
README = (ROOT / "README.md").read_text()
PROFILES = (ROOT / "docs" / "profiles.md").read_text()
SOLO, BRAIN, SWARM, EXAMPLE, STORE = in_scene("reader")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with Reader(tmp_path_factory.mktemp("clone")) as reader:
        yield reader
        with suppress(GiaannError):
            Remote(reader.folder / "my-swarm").down(now=True)


@pytest.fixture(scope="module")
def output(reader: Reader) -> list[str]:
    """What the first commands write; what they leave is there for those that come later."""
    return reader.play(SOLO)


def test_the_commands_run(output: list[str]) -> None:
    assert "learned 47 of 47 texts" in output[0]
    assert "appears in English from 1642 as anarchisme" in output[1]
    assert "accuracy 0.9912" in output[2]
    assert "all is well" in output[4]
    recalled = re.search(r"`subwords` completes (\d\d) of 100 texts", PROFILES)
    assert recalled is not None
    shares = re.findall(r"recalled (0\.\d+)", output[3])
    assert [round(100 * float(share)) for share in shares] == [int(recalled[1])]


@pytest.mark.usefixtures("output")
def test_the_swarm_that_it_shows(reader: Reader) -> None:
    commands = block_of(SWARM).commands()
    verbs = ["swarm", "train", "prompt", "column", "swarm", "prompt", "fsck", "pull", "swarm"]
    assert [command.split()[1] for command in commands] == verbs
    output = [reader.run(["bash", "-c", command]) for command in commands[:-1]]
    assert "learned 47 of 47 texts" in output[1]
    assert "appears in English from 1642 as anarchisme" in output[2]
    assert "* anarch*" in output[3]
    assert output[5].startswith(
        "Anarchism is a political philosophy and movement that is sceptical"
    )
    assert "the swarm and the solo database agree" in output[6]
    assert "the same as the swarm's" in output[7]
    (example,) = reader.play(EXAMPLE)
    lines = example.splitlines()
    assert lines[0].strip() == "that they collect from flowers in the summer."
    assert "' collect'" in lines[1]
    assert lines[2] in ("healthy", "degraded")
    reader.run(["bash", "-c", commands[-1]])


def test_the_example_runs_and_prints_what_the_text_says(reader: Reader) -> None:
    (printed,) = reader.play(BRAIN)
    lines = printed.splitlines()
    assert lines[0].startswith("Bees make honey from the nectar that they collect from flowers")
    assert float(lines[-1]) == pytest.approx(0.9912, abs=5e-5)
    assert "right, on a learned text | 0.9912 |" in README


def test_the_stores_example_runs(reader: Reader) -> None:
    (printed,) = reader.play(STORE)
    assert printed.splitlines()[-2:] == ["Name(concept='bee', feature='make') 1 23", "[2]"]
