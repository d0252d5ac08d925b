"""Lessons for stores of four shards, and what stores come to that were taught some."""

from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from tests.helpers import SMALL
from tests.helpers_store import Lesson, lessons, names_of, plain_state, plain_store, state_of
from tests.plain import store as plain

LAYOUT = Layout(shards=4)
ALL = range(4)
LESSONS = lessons(40)
NAMES = names_of(LESSONS)


def taught(*chosen: Lesson) -> plain.Store:
    expected = plain_store(LAYOUT)
    expected.hold(ALL)
    for one in chosen:
        expected.apply(one.chunk, ALL, one.rows)
    return expected


def same(store: Store, expected: plain.Store) -> bool:
    return state_of(store) == plain_state(expected, NAMES)


def in_memory(*chosen: Lesson) -> Store:
    store = Store.in_memory(SMALL, LAYOUT)
    store.hold(ALL)
    store.apply([one.update(ALL) for one in chosen])
    return store
