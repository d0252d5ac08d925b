"""Exit code 3 of a prompt: not one of its answers has any text."""

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from giaann_p2p.cli import present, prompt, solo, visiting
from giaann_p2p.gateway.asking import Away
from giaann_p2p.model.said import Generation

EMPTY, HONEY = Generation("Bees", []), Generation("Bees", [], " make honey")
CASES = pytest.mark.parametrize(
    ("answers", "code"),
    [([EMPTY, EMPTY], 3), ([HONEY, EMPTY], 0), ([EMPTY, HONEY], 0), ([HONEY, HONEY], 0)],
)
SEVERAL = {"temperature": 1.0, "answers": 2}


@contextlib.contextmanager
def ends_with(code: int) -> Iterator[None]:
    """Check with which exit code the block ends."""
    found = 0
    try:
        yield
    except typer.Exit as end:
        found = end.exit_code
    assert found == code


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Generation("Bees", [], stopped="end"), "a stop text ended it at once"),
        (Generation("Bees", [], stopped="limit"), "(timing auto)"),  # of a stripped space
    ],
)
def test_a_stop_text_is_blamed_only_if_it_ended_the_answer(answer: Generation, why: str) -> None:
    assert why in present.nothing_line(answer, "auto", ["honey"])


@CASES
def test_a_brains_answers(
    answers: Sequence[Generation],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    left = iter(answers)
    brain = SimpleNamespace(
        stream=lambda *_, **__: SimpleNamespace(all=lambda: next(left)),
    )
    monkeypatch.setattr(solo, "_reading", lambda *_: contextlib.nullcontext(brain))
    with ends_with(code):
        solo.prompt("Bees", Path("brain"), **SEVERAL)  # type: ignore[arg-type]
    shown = capsys.readouterr()
    assert shown.out.count("Bees") == 2
    assert shown.err.count("the answer is empty") == (code == 3)


@CASES
@pytest.mark.parametrize("by_gateway", [0, 1, 2])
def test_a_swarms_answers(
    answers: Sequence[Generation], code: int, by_gateway: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(answers)

    async def answered(_: object, ask: SimpleNamespace, manner: object) -> Generation:
        if ask.visiting is None and len(left) == 2 - by_gateway:
            raise Away("it ended")
        return left.pop(0)

    @contextlib.asynccontextmanager
    async def oracle(*_: object) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(visiting="a swarm")

    monkeypatch.setattr(prompt._How, "answered", answered)
    monkeypatch.setattr(prompt, "gateway_to", lambda *_: "a gateway")
    monkeypatch.setattr(prompt, "oracle_at", lambda _: SimpleNamespace(visiting=None))
    monkeypatch.setattr(visiting, "oracle_of", oracle)
    for done in ("arrived", "complain_of"):
        monkeypatch.setattr(prompt, done, lambda _: None)
    with ends_with(code):
        prompt.prompt("Bees", "a link", **SEVERAL)  # type: ignore[arg-type]
    assert left == []
