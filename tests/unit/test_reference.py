"""docs/configuration.md tells what can be set today, and its example can be read."""

import re
from pathlib import Path

import msgspec
import pytest

from peers.compute.options import ComputeOptions
from peers.options import Options, described, flag, options
from peers.storage.options import StorageOptions
from tests.reference import COMPUTE_PAGE, KINDS, PAGE, STORAGE_PAGE, escaped, made, table

PAGE_TEXT = PAGE.read_text()
PAGES = [PAGE, STORAGE_PAGE, COMPUTE_PAGE]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_pages_are_up_to_date(page: Path) -> None:
    assert made(page) == page.read_text(), "make it anew: scripts/reference"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_lead_to_pages(page: Path) -> None:
    for name in re.findall(r"\]\((\w[\w-]*\.md)\)", page.read_text()):
        assert (page.parent / name).exists(), name


OTHERS = {
    "--config",
    "--dir",
    "--batch",
    "--compute",
    "--policy",
    "--against",
    "--epochs",
    "--patience",
    "--kill-whom",
    "--network",
    "--json",
}
"""Options in the manual that are those of other commands."""


@pytest.mark.parametrize(
    ("page", "kind"), [(STORAGE_PAGE, StorageOptions), (COMPUTE_PAGE, ComputeOptions)]
)
def test_the_manuals_name_options_that_there_are(
    page: Path, kind: type[Options], tmp_path: Path
) -> None:
    text = page.read_text()
    told = re.sub(r"```(console|dockerfile)\n.*?```", "", text, flags=re.DOTALL)
    known = {flag(name) for name in described(kind)}
    assert set(re.findall(r"--[a-z][a-z-]+", told)) <= known | OTHERS
    examples = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 1
    (tmp_path / "peer.toml").write_text(examples[0])
    assert options(kind, {}, tmp_path / "peer.toml").metrics_port >= 9100


@pytest.mark.parametrize("kind", KINDS.values())
def test_each_option_is_told_once(kind: type[Options]) -> None:
    for name, told in described(kind).items():
        rows = [
            line
            for line in PAGE_TEXT.splitlines()
            if line.startswith((f"| `{flag(name)}` ", f"| `{flag(name)} "))
            and escaped(str(told.description)) in line
        ]
        assert len(set(rows)) == 1, name
        assert f"`{name}`, " in rows[0]


def test_a_line_has_all_that_is_known() -> None:
    lines = table(StorageOptions).splitlines()
    assert len(lines) == 2 + len(described(StorageOptions)) - len(described(Options))
    assert any("| `capacity`, text | `1GiB` |" in line for line in lines)
    assert any("| `join`, text | must be given |" in line for line in lines)
    assert any("| `memory_only`, true or false | no |" in line for line in lines)
    common = table(Options)
    assert "| `listen`, list of texts | `/ip4/0.0.0.0/tcp/0` |" in common
    assert '`log`, `"text"` or `"json"` | `text` |' in common
    assert "-1 serves none. -1 to 65535. |" in common


def test_the_example_can_be_read(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE_TEXT, re.DOTALL)
    (tmp_path / "storage.toml").write_text(example)
    found = options(StorageOptions, {}, tmp_path / "storage.toml")
    assert found.capacity_bytes == 8 << 30
    assert set(msgspec.toml.decode(example)) <= set(described(StorageOptions))
