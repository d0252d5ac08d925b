"""A brain whose columns are cut, as one that was pulled from such a swarm, is like any other."""

from pathlib import Path

from giaann_p2p import Brain
from giaann_p2p.gateway.brain_columns import BrainNouns, column_of
from giaann_p2p.model.digest import digest
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.cuts import MARK, Cut
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from tests.helpers import DATA

QUICK = (DATA / "quick.txt").read_text()
PROMPTS = [" ".join(line.split()[:6]) for line in QUICK.splitlines() if len(line.split()) > 8][:6]


def test_a_brain_with_cut_columns_is_like_any_other(tmp_path: Path) -> None:
    with Brain.open(tmp_path / "whole", ModelSpec()) as brain:
        brain.train(QUICK)
        frequent = sorted(brain.store.nouns(), key=lambda noun: -noun.occurrences)
        nouns = [noun.name for noun in frequent[:8]]
        layout = Layout(shards=256, cuts=tuple(Cut(noun, 8) for noun in nouns))
        Store.at(tmp_path / "cut", ModelSpec(), layout).close()
        with Brain.open(tmp_path / "cut", ModelSpec()) as cut:
            cut.train(QUICK)
            compare(cut, brain, nouns)


def sizes(brain: Brain) -> tuple[int, ...]:
    info = brain.info()
    return info.columns, info.neurons, info.connections, info.occurrences, info.words


def compare(cut: Brain, brain: Brain, nouns: list[str]) -> None:
    parts = [name for name in cut.store.names().values() if MARK in name]
    assert len(parts) > len(nouns)
    assert digest(cut.knowledge) == digest(brain.knowledge)
    assert cut.knowledge.names == brain.knowledge.names
    assert {*cut.connections()} == {*brain.connections()}
    for prompt in PROMPTS:
        assert cut.generate(prompt, max_tokens=8) == brain.generate(prompt, max_tokens=8)
    told, wanted = (one.evaluate(QUICK) for one in (cut, brain))
    assert (told.right_words, told.predicted) == (wanted.right_words, wanted.predicted)
    assert told.predicted > 100
    assert sizes(cut) == sizes(brain)
    for noun in nouns[:3]:
        assert column_of(cut.store, noun, 9, 4) == column_of(brain.store, noun, 9, 4)
    assert BrainNouns(cut.store).search("", 50) == BrainNouns(brain.store).search("", 50)
