"""What can be set of daemons: on the command line, in a file, or not at all."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from bootstrap.options import BootstrapOptions
from giaann_p2p.errors import UsageError
from peers.command import command
from peers.compute.options import ComputeOptions
from peers.options import Options, described, options
from peers.storage.options import StorageOptions
from tests.unit.peers.helpers import LINK

KINDS = [StorageOptions, ComputeOptions, BootstrapOptions]


def run(kind: type[Options], *arguments: str) -> tuple[list[Options], Any]:
    app, seen = typer.Typer(), list[Options]()
    app.command()(command(kind, seen.append))
    return seen, CliRunner().invoke(app, arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_every_option_is_explained(kind: type[Options]) -> None:
    _, result = run(kind, "--help")
    assert result.exit_code == 0
    for name, told in described(kind).items():
        assert f"--{name.replace('_', '-')}" in result.output
        assert len(str(told.description)) > 20
        assert str(told.description).endswith(".")


def test_the_command_line_goes_before_the_file_and_that_before_the_default(tmp_path: Path) -> None:
    file = tmp_path / "storage.toml"
    file.write_text(f'join = "{LINK}"\ncapacity = "2GiB"\nlisten = ["/ip4/1.2.3.4/tcp/1"]\n')
    seen, result = run(StorageOptions, "--config", str(file), "--capacity", "3GiB")
    assert result.exit_code == 0, result.output
    assert seen == [StorageOptions(join=LINK, capacity="3GiB", listen=("/ip4/1.2.3.4/tcp/1",))]
    assert seen[0].bandwidth == "50MB/s"
    assert options(StorageOptions, {"join": "x"}).listen == ("/ip4/0.0.0.0/tcp/0",)


def test_several_addresses_and_switches() -> None:
    seen, result = run(
        StorageOptions, "--join", LINK, "--listen", "a", "--listen", "b", "--memory-only"
    )
    assert result.exit_code == 0, result.output
    assert seen == [StorageOptions(join=LINK, listen=("a", "b"), memory_only=True)]


@pytest.mark.parametrize(
    ("kind", "given", "complaint"),
    [
        (StorageOptions, {}, "--join is missing. The swarm's join link"),
        (ComputeOptions, {}, "--join is missing. The swarm's join link"),
        (ComputeOptions, {"join": "x", "workers": -2}, "--workers must be a whole number"),
        (
            ComputeOptions,
            {"join": "x", "slots": 257},
            "--slots must be a whole number from 0 to 256; it is 257",
        ),
        (
            ComputeOptions,
            {"join": "x", "verify": 1.5},
            "--verify must be a number from 0 to 1; it is 1.5",
        ),
        (
            ComputeOptions,
            {"join": "x", "verify": -0.1},
            "--verify must be a number from 0 to 1; it is -0.1",
        ),
        (StorageOptions, {"join": "x", "capacity": "a lot"}, "'a lot' is not a size"),
        (StorageOptions, {"join": "x", "capacity": "1MiB"}, "capacity must be at least 64MiB"),
        (StorageOptions, {"join": "x", "bandwidth": "fast"}, "'fast' is not a size"),
        (StorageOptions, {"join": "x", "metrics_port": 1 << 16}, "--metrics-port"),
        (
            StorageOptions,
            {"join": "x", "log": "xml"},
            "--log must be 'text' or 'json'; it is 'xml'",
        ),
        (BootstrapOptions, {"shards": 0}, "--shards"),
        (BootstrapOptions, {"new": "a", "join": "b"}, "not both"),
    ],
)
def test_what_cannot_be_is_told(
    kind: type[Options], given: dict[str, object], complaint: str
) -> None:
    with pytest.raises(UsageError) as error:
        options(kind, given)
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("capacity = ", "is not TOML"),
        ("capcity = '1GiB'", "no option is named 'capcity'; choose from data_dir, listen"),
        ("listen = [1]", "storage.toml: --listen must be a list of texts; it is [1]"),
    ],
)
def test_a_file_that_cannot_be_is_told(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "storage.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        options(StorageOptions, {"join": "x"}, file)
    assert str(file) in str(error.value)
    assert complaint in str(error.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        options(StorageOptions, {}, tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("cores", "given", "processes", "chunks"),
    [
        (2, {}, 1, 4),
        (1, {}, 1, 4),
        (16, {}, 8, 18),
        (16, {"workers": 0}, 0, 4),
        (2, {"workers": 64}, 64, 130),
        (2, {"workers": 2, "slots": 1}, 2, 1),
    ],
)
def test_a_compute_peer_has_slots_for_its_processes(
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    given: dict[str, int],
    processes: int,
    chunks: int,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    found = ComputeOptions(join="x", **given)
    assert (found.processes, found.chunks) == (processes, chunks)


def test_a_compute_peer_bounds_what_prompts_take() -> None:
    found = ComputeOptions(join="x", device_memory="3MiB", cache="2MiB", prompts=5).prompting()
    assert (found.mind_bytes, found.cache_bytes, found.sessions) == (3 << 20, 2 << 20, 5)
    with pytest.raises(UsageError):
        ComputeOptions(join="x", device_memory="much")
