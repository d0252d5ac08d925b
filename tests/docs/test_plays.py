"""Each block of README.md and docs/ is run by a test, or it is said why not."""

import os
import re

import pytest

from tests.docs.blocks import PYTHON, ROOT, Block, blocks_of, runnable
from tests.docs.plays import PLAYS, Play, block_of, in_scene, plays_of
from tests.docs.reader import Reader

SCENES = ("reader", "network", "club", "local", "simulator")


@pytest.mark.parametrize("block", runnable(), ids=lambda block: f"{block.page}: {block.text[:40]}")
def test_each_block_is_run(block: Block) -> None:
    (play,) = plays_of(block)
    assert (play.scene in SCENES) != bool(play.never)


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: f"{play.page}: {play.words}")
def test_each_play_has_its_block(play: Play) -> None:
    block = block_of(play)
    commands = [] if block.kind in PYTHON else block.commands()
    commands += [other for others in play.before.values() for other in others]
    for begin in [*play.lasting, *play.codes, *play.before]:
        assert any(command.startswith(begin) for command in commands), begin


def test_each_scene_has_plays() -> None:
    assert {play.scene for play in PLAYS if not play.never} == set(SCENES)
    assert all(in_scene(scene) for scene in SCENES)


def test_what_is_left_to_ci_is_run_by_it() -> None:
    ci = (ROOT / ".ci/run").read_text().splitlines()
    for line in ("scripts/demo", "scripts/lock --check", "shown scripts/test -m netns -s"):
        assert line in ci
    (first,) = [play for play in PLAYS if "run the tests themselves" in play.never]
    scripts = [command.split()[0] for command in block_of(first).commands()]
    assert scripts == ["scripts/demo", "scripts/test"]
    assert all(os.access(ROOT / script, os.X_OK) for script in scripts)


def test_blocks_are_found_and_taken_apart() -> None:
    page = "a\n```console\n$ giaann a \\\n  b  # c\nshown\n\n$ giaann d\n```\n```\nno\n```\n"
    page += "```sh\nx\n\ny\n```\n"
    console, plain, shell = blocks_of("page.md", page)
    assert console.commands() == ["giaann a b  # c", "giaann d"]
    assert console.output() == "shown"
    assert plain.kind == ""
    assert shell.commands() == ["x", "y"]
    assert shell.output() == ""


def test_commands_are_for_this_machine(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Reader(tmp_path_factory.mktemp("clone")) as reader:
        reader.words["LINK"] = "giaann://x/ip4/127.0.0.1/tcp/5"
        filled = reader.filled("giaann storage --join LINK --listen /ip4/0.0.0.0/tcp/4100")
    assert filled == (
        "giaann storage --join giaann://x/ip4/127.0.0.1/tcp/5 --listen /ip4/127.0.0.1/tcp/0"
    )


def test_no_block_goes_without_a_language_that_shows_commands() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for block in blocks_of(page.name, page.read_text()):
            if block.kind in ("", "text"):
                assert not re.search(r"^(\$ )?giaann \w", block.text, re.MULTILINE), block
