"""Seals from anywhere: the root that was signed, another one, or refused."""

import numpy as np
from hypothesis import given

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.store.seal import Seal, told
from giaann_p2p.swarm.wire.voucher import authors_of, vouched, words_of
from tests.helpers_hostile import hostile
from tests.helpers_swarm import AUTHORS, JOB, LAYOUT, LESSONS, SWARM_ID, shards, vouch

TREE = LESSONS.tree(1)
SOME = shards(2)
BESIDE = TREE.beside([2])
WORDS = [
    words_of([vouch(JOB, 1, TREE.root)]),
    words_of([vouched(author, SWARM_ID, JOB, 1, TREE.root, b"t" * 9) for author in AUTHORS]),
]
SHAPES = [LESSONS.tree(chunk).shape for chunk in range(8)]


@given(hostile(*WORDS))
def test_whose_word_it_is_can_be_read_or_is_refused(data: bytes) -> None:
    try:
        authors = authors_of(Seal(data))
    except MessageError:
        return
    assert 1 <= len(authors) <= 8
    assert all(len(author) == 32 for author in authors)


@given(hostile(BESIDE))
def test_what_is_beside_some_shards_leads_to_the_root_if_nothing_is_changed(data: bytes) -> None:
    try:
        root = told(LESSONS.delta(1), SOME, LAYOUT, Seal(b"", TREE.shape, data)).root
    except DamagedError:
        assert data != BESIDE
        return
    assert (root == TREE.root) == (data == BESIDE)


@given(hostile(*SHAPES))
def test_another_shape_is_another_root_or_none(data: bytes) -> None:
    everything = np.arange(LAYOUT.shards, dtype=np.uint16)
    try:
        tree = told(LESSONS.delta(1), everything, LAYOUT, Seal(b"", data))
    except DamagedError:
        return
    assert (tree.root == TREE.root) == (tree.shape == TREE.shape)
