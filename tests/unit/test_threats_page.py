"""docs/threats.md is true: every test that it names is there, and every row of attacks has one."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/threats.md").read_text()
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
TABLE = PAGE.split("| attack | defence | test | result |")[1].split("\n\n")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.splitlines()[2:]]


@cache
def functions_of(path: str) -> frozenset[str]:
    """Return the names of a file's functions; none for a file that is not there."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_test_that_is_named_is_there(path: str, name: str) -> None:
    assert name.startswith("test_")
    assert name in functions_of(path)


def test_every_attack_has_a_defence_a_test_and_a_result() -> None:
    attacks = [row for row in ROWS if any(row[1:])]
    assert len(attacks) > 40
    for row in attacks:
        assert len(row) == 4
        assert all(row), row
        assert re.fullmatch(
            r"`tests/[\w/]+\.py::test_\w+`(, `tests/[\w/]+\.py::test_\w+`)*", row[2]
        )
    assert len(NAMED) >= len(attacks)


def test_files_and_pages_that_it_names_are_there() -> None:
    for path in re.findall(r"`(tests/[\w/]+\.py)`", PAGE):
        assert (ROOT / path).is_file(), path
    for link in re.findall(r"\]\(([\w./]+\.md)(?:#[\w-]+)?\)", PAGE):
        assert (ROOT / "docs" / link).is_file(), link


def test_others_lead_here() -> None:
    assert "(docs/threats.md)" in (ROOT / "README.md").read_text()
    assert "(threats.md)" in (ROOT / "docs/swarm.md").read_text()
