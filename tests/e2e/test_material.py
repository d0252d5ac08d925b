"""What the tests of swarms compare with is what one machine learns."""

import pytest

from giaann_p2p.model.digest import readable
from giaann_p2p.model.rows import Question
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.brain import Brain
from giaann_p2p.store.layout import Layout
from tests.e2e.material import WIKI, Wiki

EPOCHS = 2


@pytest.mark.slow
def test_the_twin_holds_what_solo_learns() -> None:
    wiki = Wiki(ModelSpec(), Layout(shards=8))
    brain = Brain(ModelSpec())
    brain.train(WIKI, epochs=EPOCHS)
    for epoch in range(1, EPOCHS + 1):
        job = wiki.job(epoch)
        for chunk in range(len(wiki.deltas)):
            wiki.committed(job, chunk, chunk)
        assert brain._store.applied(0, job) == wiki.twin.applied(0, job)
    assert readable(brain._store.digest()) == wiki.digest


def test_a_row_tells_how_often_each_chunk_went_into_it() -> None:
    wiki = Wiki(ModelSpec(), Layout(shards=8))
    for epoch, chunk in enumerate([0, 1, 1, 2, 2, 2]):
        wiki.committed(wiki.job(epoch), chunk, chunk)
    telling = wiki.telling()
    assert len(telling) > 0.9 * len(wiki.neurons())
    for neuron, row in zip(telling, wiki.twin.read(Question(telling)), strict=True):
        times = wiki.times(neuron, row)
        assert times is not None
        assert [times[chunk] for chunk in wiki.holds(neuron)] == [
            chunk + 1 for chunk in wiki.holds(neuron)
        ]
