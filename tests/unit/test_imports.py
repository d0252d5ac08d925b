"""No file of the packages imports itself in a circle, however and wherever it imports."""

import ast
from collections.abc import Iterator, Mapping
from importlib.util import resolve_name
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("giaann_p2p", "peers", "bootstrap")

Graph = Mapping[str, set[str]]


def sources() -> dict[str, str]:
    """Return the source of every file, by the name of its module."""
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = path.read_text()
    return found


def graph_of(files: Mapping[str, str]) -> Graph:
    """Return what each file imports of the others, also in functions and for type checkers.

    A package's `__init__.py` counts where a file imports a name from it, and not where a file
    imports a module inside the package.
    """
    return {
        name: {other for other in imported(ast.parse(text), name, files) if other != name}
        for name, text in files.items()
    }


def imported(tree: ast.Module, name: str, files: Mapping[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom):
            is_package = any(other.startswith(f"{name}.") for other in files)
            package = name if is_package else name.rpartition(".")[0]
            origin = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                if inner in files or origin in files:
                    yield inner if inner in files else origin


def circles(graph: Graph) -> list[list[str]]:
    """Return the groups of files in which each file imports itself by way of all the others."""
    reached = {name: reached_from(name, graph) for name in graph}
    groups = {
        frozenset(other for other in others if name in reached[other])
        for name, others in reached.items()
        if name in others
    }
    return sorted(map(sorted, groups))


def reached_from(name: str, graph: Graph) -> set[str]:
    found, left = set[str](), [name]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


def test_no_files_import_each_other_in_a_circle() -> None:
    files = sources()
    assert {"giaann_p2p.sim.run", "peers.storage.daemon", "bootstrap.daemon"} <= {*files}
    found = circles(graph_of(files))
    assert not found, "these files import each other:\n" + "\n".join(map(" ".join, found))


def test_a_circle_is_found_wherever_its_imports_are() -> None:
    files = {
        "p": "from p.d import name",
        "p.a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.b import B",
        "p.b": "def late():\n    import p.c",
        "p.c": "from p import a, unknown",
        "p.d": "import p.a, json",
        "p.e": "from .f import name",
        "p.f": "from . import e",
    }
    assert circles(graph_of(files)) == [["p", "p.a", "p.b", "p.c", "p.d"], ["p.e", "p.f"]]
    del files["p.b"], files["p.f"]
    assert circles(graph_of(files)) == []
