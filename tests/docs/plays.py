"""Which block is run in which scene, and the few for which something else has to be said.

A block is known by its page and by words that no other block of the page has. A new block fails
`test_each_block_is_run` until it has an entry here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.docs.blocks import Block, runnable

FOUNDS = r"giaann://\S+"
STORES, COMPUTES = r"ready (\d+)/\1 shards", r"found \d+ storage peer"


@dataclass(frozen=True)
class Play:
    """How a block is run."""

    page: str
    words: str
    """By which the block is known: part of one of its lines."""
    scene: str = ""
    """The test that runs it; a scene plays its blocks in the order of this list."""
    never: str = ""
    """Why no test runs it."""
    lasting: Mapping[str, str] = field(default_factory=dict)
    """Commands that go on until they are ended: what they begin with, and a pattern of what they
    write when they are under way."""
    codes: Mapping[str, int] = field(default_factory=dict)
    """Exit codes other than 0: what the command begins with, and the code."""
    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What others type before a command: what that begins with, and their commands."""
    as_shown: bool = False
    """The output is the block's, word for word."""
    elsewhere: bool = False
    """It is for another machine: run with another home folder."""


def _issue(rights: str) -> str:
    """Return how the founder of the club lets in who said its name last."""
    return f"giaann token issue NAME --as {rights} --data-dir ~/.local/share/giaann/club/bootstrap"


PLAYS = (
    # The README as a newcomer reads it: in the default run.
    Play("README.md", "giaann solo train", "reader"),
    Play("README.md", "import Brain", "reader"),
    Play("README.md", "giaann swarm up", "reader"),
    Play("README.md", "import Swarm", "reader"),
    Play("docs/store.md", "Store.at", "reader"),
    # A swarm over the network; here all of it on loopback.
    Play(
        "README.md",
        "giaann bootstrap --new bees",
        "network",
        lasting={"giaann bootstrap": FOUNDS, "giaann storage": STORES},
    ),
    Play(
        "docs/storage-peer.md",
        "--data-dir two",
        "network",
        lasting={"giaann storage": STORES},
    ),
    Play(
        "docs/compute-peer.md",
        "giaann compute",
        "network",
        lasting={"giaann compute": COMPUTES},
    ),
    Play("docs/compute-peer.md", "giaann train", "network"),
    Play(
        "docs/storage-peer.md",
        "giaann doctor",
        "network",
        lasting={"giaann storage": STORES},
    ),
    Play(
        "docs/storage-peer.md",
        "--listen /ip4/0.0.0.0/tcp/4100\n",
        "network",
        lasting={"giaann storage": STORES},
    ),
    Play(
        "docs/concepts.md",
        "giaann solo prompt",
        "network",
        before={"giaann solo": ("giaann solo train book.txt --db words-brain --profile words",)},
        as_shown=True,
    ),
    Play(
        "docs/bootstrap.md",
        "giaann fsck",
        "network",
        before={"giaann fsck": ("giaann solo train book.txt --db my-brain",)},
    ),
    Play("docs/prompts.md", "giaann chat", "network"),
    Play(
        "docs/gateway.md",
        "giaann serve",
        "network",
        lasting={"giaann serve --join": "http://", "giaann serve --db": "http://"},
    ),
    Play("docs/gateway.md", "import OpenAI", "network"),
    Play("README.md", "import OpenAI", "network"),
    Play(
        "docs/operations.md",
        "giaann status",
        "network",
        lasting={"giaann status --join LINK --watch": ""},  # it draws on terminals only
    ),
    Play("docs/configuration.md", "giaann join", "network"),
    Play(
        "docs/bootstrap.md",
        "--new bees",
        "network",
        lasting={"giaann bootstrap": FOUNDS},
        elsewhere=True,
    ),
    Play(
        "docs/bootstrap.md",
        "--join LINK --listen",
        "network",
        lasting={"giaann bootstrap": FOUNDS},
        elsewhere=True,
    ),
    Play(
        "docs/members.md",
        "--new club",
        "club",
        lasting={
            "giaann bootstrap": FOUNDS,
            "giaann storage": STORES,
            "giaann compute": COMPUTES,
        },
        before={
            "giaann token accept": (_issue("client"),),
            "giaann prompt": (
                "giaann token name --join LINK --data-dir two",
                _issue("storage"),
                "giaann storage --join LINK --member-token TOKEN --data-dir two",
                "giaann token name --join LINK --data-dir three",
                _issue("storage"),
                "giaann storage --join LINK --member-token TOKEN --data-dir three",
                "giaann token name --join LINK --role compute",
                _issue("compute"),
                "giaann compute --join LINK --member-token TOKEN",
                "giaann train book.txt --join LINK",
            ),
        },
    ),
    Play("docs/members.md", "revoke NAME --join", "club"),
    Play("docs/members.md", "revoke NAME --disown", "club"),
    Play("docs/members.md", "withdraw --join LINK", "club"),
    Play("docs/members.md", "--standing", "club"),
    Play("docs/members.md", "withdraw --since", "club"),
    # Swarms of processes on one machine, and in memory.
    Play(
        "docs/local-swarm.md",
        "up --storage 3 --replicas 2",
        "local",
        lasting={"giaann swarm up": "another terminal"},
    ),
    Play(
        "docs/local-swarm.md",
        "giaann swarm status",
        "local",
        lasting={"giaann swarm logs": r"\w"},
    ),
    Play("docs/local-swarm.md", "up --dir my-swarm --detach", "local"),
    Play("docs/local-swarm.md", "LocalSwarm", "local"),
    Play("docs/simulator.md", "--seeds 0-9", "simulator"),
    Play("docs/simulator.md", "--seed 17 --trace", "simulator"),
    # What cannot be run here.
    Play(
        "docs/operations.md",
        "giaann reshard --replicas 4",
        never="it takes as many storage peers: tests/e2e/test_editions.py runs it",
    ),
    Play("README.md", "scripts/demo", never="these run the tests themselves; .ci/run runs both"),
    Play("docs/networks.md", "scripts/test -m netns", never="takes root; .ci/run runs it"),
    Play("docs/operations.md", "--require-hashes", never="installs; .ci/run tries it"),
    Play("docs/speed.md", "tests.benchmarks.swarm", never="measures for ten minutes"),
    Play("docs/storage-peer.md", "docker build", never="takes docker, and a machine to reach"),
    Play("docs/storage-peer.md", "rsync", never="takes a second machine"),
)


def block_of(play: Play) -> Block:
    """Return a play's block; there is exactly one."""
    (found,) = [block for block in runnable() if _plays(play, block)]
    return found


def plays_of(block: Block) -> list[Play]:
    """Return the plays of a block: one, if all is well."""
    return [play for play in PLAYS if _plays(play, block)]


def in_scene(scene: str) -> list[Play]:
    """Return the plays of a scene in their order."""
    return [play for play in PLAYS if play.scene == scene]


def _plays(play: Play, block: Block) -> bool:
    return play.page == block.page and play.words in block.text
