"""A brain's column of many thousand words: all are counted, the most frequent are shown."""

from giaann_p2p.gateway.brain_columns import column_of
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.layout import Layout
from tests.helpers_store import delta_of_rows, lesson, on_disk
from tests.plain import store as plain

WORDS = 10_000


def test_all_words_of_a_large_column_are_counted() -> None:
    bee, words = word_id("bee"), [f"word{number}" for number in range(WORDS)]
    names = {word_id(word): word for word in words} | {bee: "bee"}
    rows = {(bee, word_id(word)): plain.Row(at + 1) for at, word in enumerate(words)}
    rows[bee, PRIME] = plain.Row(WORDS + 1)
    layout = Layout(shards=4, blocks=4)
    taught, store = on_disk(FakeDisk(), layout), on_disk(FakeDisk(), layout)
    taught.apply([lesson(0, delta_of_rows(rows, names)).update(range(4))])
    store.adopt(taught.content(*range(4)))  # a copy has merged all, so the counts are known
    found = column_of(store, "bee", 3, 1)
    assert found is not None
    assert (found.size, found.at_least) == (WORDS + 1, False)
    assert [word.feature for word in found.words] == [None, words[-1], words[-2]]
