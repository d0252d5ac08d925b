"""What many tests share: the reference's texts, learned once, and hypothesis's settings."""

import logging
import os
import signal
from collections.abc import Iterator

# There are as many workers as cores, so further threads would only wait for one another, busily.
# Libraries read this when they are imported; the processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import HealthCheck, settings

from giaann_p2p.model import activation
from giaann_p2p.model.arrays import TorchArrays
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import Parser
from giaann_p2p.model.rows import DeltaRows
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.spec import ModelSpec
from tests import deadline
from tests.helpers import DATA, sequences_of

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# What scripts/test takes alone; CI, and scripts/test --all, takes "ci".
settings.register_profile("quick", settings.get_profile("ci"), max_examples=30)
# HYPOTHESIS_PROFILE=soak: other examples each time, and many more.
settings.register_profile("soak", settings.get_profile("ci"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is for whatever a script starts with `&`, and for all that is started by that in turn.
    # Tests send Ctrl-C to themselves and to processes of theirs, which would not hear it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


pytest_addoption = deadline.add_option
pytest_configure = deadline.configure


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what is slow: begun last, it would keep one core while the others idle."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """Undo what a program of the test did to the log of its process, which later tests read."""
    loggers = [logging.getLogger(name) for name in ("giaann", "giaann_p2p")]
    before = [(one.handlers[:], one.level, one.propagate) for one in loggers]
    yield
    for one, (handlers, level, propagate) in zip(loggers, before, strict=True):
        one.handlers[:], one.propagate = handlers, propagate
        one.setLevel(level)


DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.fixture(scope="session", params=DEVICES)
def device(request: pytest.FixtureRequest) -> torch.device:
    """Every device there is: all must come to the same."""
    return torch.device(request.param)


@pytest.fixture(scope="session", params=["tensors", *DEVICES])
def mind_device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """Every device there is; and the processor with tensors, as on a GPU, instead of numpy."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "tensors":
            patch.setattr(activation, "arrays_on", TorchArrays)
        yield torch.device("cpu" if request.param == "tensors" else request.param)


@pytest.fixture(scope="session")
def spec() -> ModelSpec:
    return ModelSpec()


@pytest.fixture(scope="session")
def parser(spec: ModelSpec) -> Parser:
    return Parser(spec)


@pytest.fixture(scope="session")
def wiki(parser: Parser) -> Sequences:
    return sequences_of((DATA / "wiki.txt").read_text(), parser)


@pytest.fixture(scope="session")
def quick(parser: Parser) -> Sequences:
    return sequences_of((DATA / "quick.txt").read_text(), parser)


@pytest.fixture(scope="session")
def wiki_delta(wiki: Sequences, spec: ModelSpec) -> Delta:
    return learn(wiki, spec)


@pytest.fixture(scope="session")
def quick_delta(quick: Sequences, spec: ModelSpec) -> Delta:
    return learn(quick, spec)


@pytest.fixture(scope="session")
def wiki_rows(wiki_delta: Delta) -> DeltaRows:
    return DeltaRows(wiki_delta)
