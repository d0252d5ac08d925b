"""Quick commands of a client load no module that takes long to import."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from giaann_p2p.local.swarm import LocalSwarm

PROGRAM = """
import sys
from giaann_p2p.cli.main import main
try:
    main()
except SystemExit as end:
    code = end.code
else:
    code = 0
slow = ("torch", "spacy", "scipy", "hivemind", "matplotlib", "giaann_p2p.net.hive.board")
slow += ("pydantic", "rich")
print(code, *(one for one in slow if one in sys.modules))
"""


@pytest.fixture(scope="module")
def link() -> Iterator[str]:
    """The link of a swarm that has learned nothing."""
    with LocalSwarm(
        profile="words", storages=1, computes=1, replicas=1, shards=4, grace=1.0
    ) as swarm:
        yield swarm.link


@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        (["prompt", "Bees make honey from the nectar"], "2"),  # nothing was learned yet
        (["status"], "0 rich"),  # which draws tables
        (["column", "bee"], "3 rich"),
    ],
    ids=["prompt", "status", "column"],
)
def test_a_client_imports_no_torch_no_parser_and_no_dht(
    link: str, arguments: list[str], end: str
) -> None:
    command = [sys.executable, "-c", PROGRAM, *arguments, "--join", link]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=True)
    assert done.stdout.splitlines()[-1] == end, done.stderr
