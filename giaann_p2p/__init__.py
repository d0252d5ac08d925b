"""giaann_p2p: a sparse language model of concept columns that learns in any order.

    from giaann_p2p import Brain

    brain = Brain()
    brain.train("Bees make honey from the nectar that they collect from flowers in the summer.")
    print(brain.generate("Bees make honey from the nectar").text)

The names in this package are the public interface. Each is imported when it is first used, because
importing torch and spaCy takes seconds, and `giaann --help` should be fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from giaann_p2p.release import RELEASE

if TYPE_CHECKING:
    from giaann_p2p.client.column import Column
    from giaann_p2p.client.lies import Lie
    from giaann_p2p.client.swarm import AsyncSwarm, Swarm
    from giaann_p2p.client.trained import LackingPeers, TrainProgress, TrainReport
    from giaann_p2p.errors import (
        DamagedError,
        DeviceError,
        DiskError,
        GiaannError,
        NobodyComputes,
        PeerError,
        PipelineError,
        PromptError,
        SpecError,
        StoreError,
        StoreFull,
        TextError,
        UsageError,
        WorkerError,
    )
    from giaann_p2p.model.delta import Delta
    from giaann_p2p.model.evaluate import Score
    from giaann_p2p.model.manner import Beam, Sampling, Timing, Variant
    from giaann_p2p.model.said import Generation, Token
    from giaann_p2p.model.spec import ModelSpec
    from giaann_p2p.model.subwords.said import SubwordToken
    from giaann_p2p.model.subwords.spec import subword_spec
    from giaann_p2p.net.errors import Unreachable
    from giaann_p2p.solo.answer import Answer
    from giaann_p2p.solo.brain import Brain
    from giaann_p2p.solo.jobs import Job
    from giaann_p2p.solo.recall import Recalled
    from giaann_p2p.solo.reports import Connection, Info, Trained
    from giaann_p2p.store.fsck import Checked
    from giaann_p2p.swarm.members.checkup import Report
    from giaann_p2p.swarm.members.overview import Overview

__version__ = RELEASE

__all__ = [
    "Answer",
    "AsyncSwarm",
    "Beam",
    "Brain",
    "Checked",
    "Column",
    "Connection",
    "DamagedError",
    "Delta",
    "DeviceError",
    "DiskError",
    "Generation",
    "GiaannError",
    "Info",
    "Job",
    "LackingPeers",
    "Lie",
    "ModelSpec",
    "NobodyComputes",
    "Overview",
    "PeerError",
    "PipelineError",
    "PromptError",
    "Recalled",
    "Report",
    "Sampling",
    "Score",
    "SpecError",
    "StoreError",
    "StoreFull",
    "SubwordToken",
    "Swarm",
    "TextError",
    "Timing",
    "Token",
    "TrainProgress",
    "TrainReport",
    "Trained",
    "Unreachable",
    "UsageError",
    "Variant",
    "WorkerError",
    "__version__",
    "subword_spec",
]

_HOMES = {
    "errors": [
        "DamagedError",
        "DeviceError",
        "DiskError",
        "GiaannError",
        "NobodyComputes",
        "PeerError",
        "PipelineError",
        "PromptError",
        "SpecError",
        "StoreError",
        "StoreFull",
        "TextError",
        "UsageError",
        "WorkerError",
    ],
    "model.delta": ["Delta"],
    "model.evaluate": ["Score"],
    "model.manner": ["Beam", "Sampling", "Timing", "Variant"],
    "model.said": ["Generation", "Token"],
    "model.spec": ["ModelSpec"],
    "model.subwords.said": ["SubwordToken"],
    "model.subwords.spec": ["subword_spec"],
    "solo.answer": ["Answer"],
    "solo.brain": ["Brain"],
    "solo.jobs": ["Job"],
    "solo.recall": ["Recalled"],
    "store.fsck": ["Checked"],
    "client.swarm": ["AsyncSwarm", "Swarm"],
    "client.trained": ["LackingPeers", "TrainProgress", "TrainReport"],
    "client.column": ["Column"],
    "client.lies": ["Lie"],
    "net.errors": ["Unreachable"],
    "swarm.members.overview": ["Overview"],
    "swarm.members.checkup": ["Report"],
    "solo.reports": ["Connection", "Info", "Trained"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
