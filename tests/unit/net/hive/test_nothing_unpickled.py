"""Nothing that a peer receives is unpickled: not by this project, not by hivemind below it."""

import ast
import asyncio
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import bootstrap
import giaann_p2p
import peers
from giaann_p2p.errors import MessageError
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.clock import Clock
from giaann_p2p.swarm.wire.messages import decode
from tests.unit.net.hive.helpers import Place, echo, hosts, until
from tests.unit.net.hive.helpers_board import board, record

CLOCK = Clock()
HOSTILE = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml"}

_heard: list[list[str]] = []
"""Where to write down what is unpickled now, innermost last."""


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if _heard and event == "pickle.find_class":
        _heard[-1].append(str(arguments))


sys.addaudithook(_hear)  # for good: there is no way to take one back


@contextmanager
def listening() -> Iterator[list[str]]:
    _heard.append([])
    try:
        yield _heard[-1]
    finally:
        _heard.pop()


class Trap:
    """It does something when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return sys.exit, ("unpickled",)


def test_the_trap_would_be_heard() -> None:
    with listening() as seen, pytest.raises(SystemExit):
        pickle.loads(pickle.dumps(Trap()))  # noqa: S301
    assert len(seen) == 1


def test_what_hosts_and_boards_receive_is_not_unpickled() -> None:
    trap = pickle.dumps(Trap())

    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(2)]
        await until(lambda: all(one.nodes for one in boards))
        mine = record(place.hosts[0].identity, CLOCK())
        await boards[0].post("storage", mine, 30)
        assert [mine] in await boards[1].look("storage")
        with pytest.raises(Unreachable, match="no node would take this record"):
            await boards[0].post("storage", trap, 30)
        transports = [place.transport(host) for host in place.hosts]
        transports[1].serve(echo)
        assert await transports[0].call(transports[1].me, trap, timeout=60) == trap
        await asyncio.gather(*[one.close() for one in (*transports, *boards)])

    with listening() as seen:
        hosts(story)
        with pytest.raises(MessageError):
            decode(trap)
    assert seen == []


def modules() -> Iterator[Path]:
    for package in (giaann_p2p, peers, bootstrap):
        yield from Path(package.__path__[0]).rglob("*.py")


def only_pickles(tree: ast.AST) -> bool:
    """Tell whether a module uses of `pickle` nothing but what writes pickles."""
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    of_pickle = {
        use.attr for use in uses if isinstance(use.value, ast.Name) and use.value.id == "pickle"
    }
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "pickle"]
    return of_pickle == {"dumps"} and len(named) == sum(use.value in named for use in uses)


@pytest.mark.parametrize(
    ("code", "only"),
    [
        ("import pickle\npickle.dumps({})", True),
        ("import pickle\npickle.dumps({})\npickle.loads(b'')", False),
        ("import pickle\nread = pickle", False),
    ],
)
def test_what_only_pickles_is_told_apart(code: str, only: bool) -> None:
    assert only_pickles(ast.parse(code)) is only


@pytest.mark.slow
def test_no_module_imports_what_unpickles() -> None:
    found = set()
    for path in modules():
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names = [node.func.id] if node.func.id in ("eval", "exec") else []
            if names == ["pickle"] and isinstance(node, ast.Import) and only_pickles(tree):
                continue
            if {name.split(".")[0] for name in names} & {*HOSTILE, "eval", "exec"}:
                found.add(str(path))
    assert found == set()
