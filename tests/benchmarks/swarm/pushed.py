"""Bytes that it takes to bring what is learned to its owners, for both policies."""

from collections.abc import Iterator
from statistics import median

from giaann_p2p.client.session import Session
from giaann_p2p.client.training import PolicyName, Trainer
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import chunks, max_chars, parse_chunks
from giaann_p2p.model.spec import CHUNK, ModelSpec
from giaann_p2p.model.text import document_sentences
from giaann_p2p.solo.corpus import opened
from giaann_p2p.store.codec.parcel import encode
from tests.benchmarks.network.figures import Figure
from tests.benchmarks.swarm.group import Group
from tests.benchmarks.swarm.taught import Taught, taught
from tests.benchmarks.swarm.texts import made_up

_POLICIES: tuple[PolicyName, ...] = ("overlap", "random")
_CHUNKS = 20
_SEED = 1


async def pushes(
    trainer: Trainer, visiting: Session, swarm: LocalSwarm, texts: Iterator[int], rounds: int
) -> Group:
    """Have one long made-up text learned with each policy, in turns."""
    text = made_up(_CHUNKS * CHUNK, _SEED)
    found: dict[PolicyName, list[Taught]] = {policy: [] for policy in _POLICIES}
    for _ in range(rounds):
        for policy in _POLICIES:
            number = next(texts)
            found[policy].append(await taught(trainer, swarm, text + "\n" * number, 1, policy))
    slots = sum(visiting.around.workers(visiting.lookout.time()).values())
    each = {policy: median(one.bytes_each for one in found[policy]) for policy in _POLICIES}
    figures = [Figure("chunks in flight at most", min(slots, _CHUNKS), "chunks")]
    for policy in _POLICIES:
        rate = median(one.rate for one in found[policy])
        figures += [
            Figure(f"{policy}: sent by the learner", each[policy], "bytes a sentence"),
            Figure(f"{policy}: through the swarm", rate, "sentences/s"),
        ]
    ratio = each["overlap"] / each["random"]
    figures.append(Figure("overlap, of random: bytes pushed", ratio, "x"))
    title = f"bytes pushed: a made-up text of {_CHUNKS} chunks, learned as one job"
    return Group(title, figures, _bound(text, visiting, median(each.values())))


def _bound(text: str, visiting: Session, pushed: float) -> str:
    """Say what copies for all owners come to, if each goes in one piece."""
    copy = _bytes_each(text, visiting.manifest.spec)
    replicas = min(visiting.manifest.replicas, len(visiting.storage_peers()))
    return (
        f"a chunk's delta packed in one piece is {copy:,.0f} bytes a sentence; {replicas} copies"
        f" are {replicas * copy:,.0f}, of which the learner sent {pushed / (replicas * copy):.2f}"
    )


def _bytes_each(text: str, spec: ModelSpec) -> float:
    with opened(text) as corpus:
        parts = list(
            parse_chunks(
                chunks(document_sentences(corpus.blocks(), corpus.name, max_chars(spec))), spec
            )
        )
    size = sum(len(encode(learn(part.sequences, spec))) for part in parts)
    return size / sum(part.sentences for part in parts)
