"""Options that shape a new swarm, given for one that exists."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bootstrap.daemon import _founded, _rules
from bootstrap.options import SHAPING, BootstrapOptions
from bootstrap.shape import without_effect
from giaann_p2p.exit_codes import WRONG_USAGE
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.swarm.wire.edition import Edition, rules_of
from peers.command import command, exit_code
from peers.folder import Folder
from peers.options import flag, options

SHAPE = {
    "shards": 16,
    "replicas": 4,
    "quorum": 2,
    "redundancy": 2,
    "blocks": 2,
    "chunk": 128,
    "column_segments": 3,
    "open": True,
}
ELSE = "only another swarm, founded in another --data-dir, can have that"
RAISE = "giaann reshard {} can change that while the swarm runs"


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., list[str]]:
    """Return a function that returns what is said of options given for a founded swarm."""
    with Folder(tmp_path) as folder:
        manifest = _founded(options(BootstrapOptions, {"new": "bees"} | SHAPE), folder)

    def found(**given: object) -> list[str]:
        rules = _rules(Folder(tmp_path), manifest)
        return list(without_effect(options(BootstrapOptions, given), manifest, rules))

    return found


def test_options_that_are_as_at_the_founding_or_not_given_are_silent(
    lines: Callable[..., list[str]],
) -> None:
    assert lines() == lines(**SHAPE) == lines(new="bees", reshard="auto", cut="", cut_like="") == []


@pytest.mark.parametrize(
    ("name", "value", "given", "has", "remedy"),
    [
        ("shards", 32, "--shards 32", "--shards 16", RAISE),
        ("shards", 8, "--shards 8", "--shards 16", ELSE),
        ("replicas", 3, "--replicas 3", "--replicas 4", ELSE),  # 3 is the default
        ("replicas", 5, "--replicas 5", "--replicas 4", RAISE),
        ("quorum", 0, "--quorum 0", "--quorum 2", ELSE),
        ("redundancy", 1, "--redundancy 1", "--redundancy 2", ELSE),
        ("blocks", 0, "--blocks 0", "--blocks 2", ELSE),
        ("chunk", 256, "--chunk 256", "--chunk 128", RAISE),
        ("column_segments", 4, "--column-segments 4", "--column-segments 3", ELSE),
        ("profile", "words", "--profile words", "--profile subwords", ELSE),
        ("open", False, "--no-open", "--open", ELSE),
        ("cut", "day=4", "--cut day=4", "no cut columns", RAISE),
        ("cut_like", "my text", "--cut-like 'my text'", "no cut columns", RAISE),
    ],
)
def test_another_value_has_no_effect(
    lines: Callable[..., list[str]], name: str, value: object, given: str, has: str, remedy: str
) -> None:
    assert lines(**{name: value}) == [
        f"{given} has no effect: the swarm was founded before, and has {has}; "
        + remedy.format(flag(name))
    ]


def test_there_is_a_line_for_each_option(lines: Callable[..., list[str]]) -> None:
    found = lines(quorum=4, open=False, shards=64)
    assert [line.partition(" has")[0] for line in found] == [
        "--shards 64",
        "--quorum 4",
        "--no-open",
    ]


def test_a_swarm_of_words_has_no_column_segments_to_choose(tmp_path: Path) -> None:
    given = options(BootstrapOptions, {"new": "bees", "profile": "words", "column_segments": 0})
    with Folder(tmp_path) as folder:
        manifest = _founded(given, folder)
    assert list(without_effect(given, manifest, rules_of(manifest, None))) == []


def test_values_of_the_founding_and_of_the_newest_edition_are_silent(
    lines: Callable[..., list[str]], tmp_path: Path
) -> None:
    folder = Folder(tmp_path)
    manifest, founder = folder.manifest(), open_key_file(folder.founder_key)
    assert manifest
    edition = Edition.signed(founder, manifest.swarm_id, 1, replicas=6, sizes=(256,), shards=32)
    folder.membership.keep_edition(edition.to_bytes())
    assert lines(replicas=6, chunk=256, shards=32) == lines(**SHAPE) == []
    assert "and has --replicas 6; giaann reshard" in lines(replicas=7)[0]
    (tmp_path / "edition").write_bytes(b"damaged")
    assert "and has --replicas 4; giaann reshard" in lines(replicas=7)[0]


def _refused(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the complaint about arguments that are wrong usage."""

    def run(given: BootstrapOptions) -> None:
        raise AssertionError(f"{given} were accepted")

    link = path / "link"
    code = exit_code(command(BootstrapOptions, run), ["--join", f"giaann://{link}", *arguments])
    assert code == WRONG_USAGE
    return capsys.readouterr().err


@pytest.mark.parametrize("name", SHAPING)
def test_with_join_each_of_them_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = {"cut": "day=4", "cut_like": "a.txt", "profile": "subwords", "chunk": "64"}
    usual |= {"column_segments": "0", "blocks": "0", "quorum": "0"}
    arguments = [flag(name)] if name == "open" else [flag(name), usual.get(name, "1")]
    said = _refused(tmp_path, capsys, *arguments)
    assert f"{flag(name)} can only be given for a new swarm" in said


def test_with_join_those_of_the_file_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "boot.toml"
    file.write_text("replicas = 3\nopen = false\n")
    said = _refused(tmp_path, capsys, "--config", str(file))
    assert "--replicas, --open can only be given for a new swarm" in said


def test_with_join_the_defaults_are_no_fault() -> None:
    found = options(BootstrapOptions, {"join": "giaann://x", "log": "json"})
    assert found.given == {"join", "log"}
