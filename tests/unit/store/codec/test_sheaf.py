"""Many rows as bytes: there and back, and whatever a stranger makes of them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.rows import Name, Neuron, Question, Row
from giaann_p2p.store.codec import sheaf
from giaann_p2p.store.codec.arrays import pack, unpack
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.codec.sheaf import MAGIC, Sheaf, decode, encode
from giaann_p2p.store.cuts import MARK
from tests.unit.store.memory.test_columns import assert_row

BRANCHES, SEGMENTS = 3, 4
LIMITS = Limits(BRANCHES, SEGMENTS, neurons=400, connections=3000, text=300)
WORDS = ["beelike", "wasp", "é", "ü", "elkish", "cow", "owl", "fox", "cat", "dog"]
ARRAYS = 14
HEAD = len(MAGIC) + sheaf._SIZES.size

NAMES = {word_id(word): word for word in WORDS}
HERE = [Neuron(concept, feature) for concept in NAMES for feature in [PRIME, *NAMES]]


@dataclass
class Link:
    """All connections to one neuron."""

    target: Neuron
    places: list[int]
    strengths: list[int]


def drawn(seed: int) -> dict[Neuron, tuple[int, list[Link]]]:
    """Draw rows: how often each neuron occurred, and its links."""
    rng = random.Random(seed)
    foreign = [Neuron(rng.getrandbits(64) | 1, rng.choice([0, 5])) for _ in range(9)]
    rows = {}
    for neuron in rng.sample(HERE, rng.randint(0, 40)):
        links = []
        for target in rng.sample([*HERE, *foreign], rng.randint(0, 9)):
            places = sorted(rng.sample(range(BRANCHES * SEGMENTS), rng.randint(1, 4)))
            most = rng.choice([3, 1 << 20, 1 << 50])
            links.append(Link(target, places, [rng.randint(1, most) for _ in places]))
        rows[neuron] = rng.randint(1, 1 << 40), links
    return rows


def bound(rows: dict[Neuron, tuple[int, list[Link]]], seed: int = 0) -> Sheaf:
    """Bind rows to a sheaf, its neurons in an order that is drawn."""
    used = sorted({*rows, *(link.target for _, links in rows.values() for link in links)})
    random.Random(seed).shuffle(used)
    index = {neuron: at for at, neuron in enumerate(used)}
    chains = [sorted(links, key=lambda link: index[link.target]) for _, links in rows.values()]
    flat = [link for links in chains for link in links]
    lengths = [sum(len(link.places) for link in links) for links in chains]
    named = {word for neuron in rows for word in neuron} - {PRIME}
    words = sorted({PRIME, *(word for neuron in used for word in neuron)})
    number = {word: at for at, word in enumerate(words)}
    return Sheaf(
        np.array(words, np.uint64),
        np.array([number[neuron.concept] for neuron in used], np.int64),
        np.array([number[neuron.feature] for neuron in used], np.int64),
        {word: NAMES[word] for word in named},
        np.array([index[neuron] for neuron in rows], np.int64),
        np.array([count for count, _ in rows.values()], np.int64),
        np.cumsum([0, *lengths]),
        np.repeat([index[link.target] for link in flat], [len(link.places) for link in flat])
        if flat
        else np.empty(0, np.int64),
        np.array([place for link in flat for place in link.places], np.uint8),
        np.array([units for link in flat for units in link.strengths], np.int64),
    )


def row_of(neuron: Neuron, count: int, links: Sequence[Link]) -> Row:
    """Return the row as the dumbest way would."""
    places = [place for link in links for place in link.places]
    concept, feature = neuron
    return Row(
        neuron,
        Name(NAMES[concept], None if feature == PRIME else NAMES[feature]),
        count,
        np.array([link.target.concept for link in links], np.uint64),
        np.array([link.target.feature for link in links], np.uint64),
        np.array([at for at, link in enumerate(links) for _ in link.places], np.int64),
        np.array([place // SEGMENTS for place in places], np.uint8),
        np.array([place % SEGMENTS for place in places], np.uint8),
        np.array([units for link in links for units in link.strengths], np.int64),
    )


@pytest.mark.parametrize("seed", range(40))
def test_rows_come_back(seed: int) -> None:
    rows = drawn(seed)
    found = decode(encode(bound(rows, seed), BRANCHES, SEGMENTS), LIMITS)
    assert found.neurons == rows.keys()
    for neuron, told in zip(HERE, found.read(Question(HERE)), strict=True):
        assert_row(told, row_of(neuron, *rows[neuron]) if neuron in rows else None)


def test_sizes_are_told_first() -> None:
    sizes = sheaf.sizes_of(WHOLE)
    assert (sizes.rows, sizes.neurons, sizes.connections, sizes.words) == (2, 3, 6, 3)


def test_none_are_rows_too() -> None:
    data = encode(bound({}), BRANCHES, SEGMENTS)
    assert not decode(data, LIMITS).neurons
    assert not decode(data, Limits(BRANCHES, SEGMENTS, 0, 0, 0)).neurons


BEE, WASP, ELK = (Neuron(word_id(word), PRIME) for word in ("beelike", "wasp", "elkish"))
ROWS = {
    BEE: (7, [Link(BEE, [0, 5], [4, 4]), Link(WASP, [1], [9]), Link(ELK, [2, 3], [1, 2])]),
    WASP: (1, [Link(ELK, [11], [1 << 40])]),
}
SHEAF = bound(ROWS)
WHOLE = encode(SHEAF, BRANCHES, SEGMENTS)
FIELDS = ["known", "ids", "lengths", "texts", "concepts", "features", "rows", "counts"]
FIELDS += ["links", "skips", "steps", "table", "numbers", "rest"]


def forged(field: str, values: Sequence[int], **sizes: int) -> bytes:
    """Put other values, of the same type, in the place of one array."""
    told = sheaf.Sizes(*sheaf._SIZES.unpack_from(WHOLE, len(MAGIC)))._replace(**sizes)
    arrays: list[npt.NDArray[Any]] = unpack(WHOLE, ARRAYS, 1000, HEAD)
    at = FIELDS.index(field)
    arrays[at] = np.array(values, arrays[at].dtype)
    return MAGIC + sheaf._SIZES.pack(*told) + pack(arrays)


def values_of(field: str) -> list[int]:
    return unpack(WHOLE, ARRAYS, 1000, HEAD)[FIELDS.index(field)].tolist()


LIES = {
    "ids do not ascend": forged("ids", [5, (1 << 64) - 2, 9]),
    "some word has no length": forged("known", [5]),
    "a neuron has no concept": forged("concepts", [0, 1, 2]),
    "word of a concept does not exist": forged("concepts", [1, 2, 4]),
    "word of a feature does not exist": forged("features", [0, 0, 4]),
    "a neuron is listed twice": forged("concepts", [1, 1, 2]),
    "texts do not have the stated length": forged("lengths", [9, 9, 9]),
    "a row belongs to no neuron": forged("rows", [0, 3]),
    "a neuron has two rows": forged("rows", [1, 1]),
    "a row's count is below 0": forged("counts", [-1, 1]),
    "length of counts is 1, not 2": forged("counts", [1]),
    "length of rows is 3, not 2": forged("rows", [0, 1, 2]),
    "steps do not match": forged("links", [1, 1]),
    "target of a link does not exist": forged("skips", [0, 0, 1, 2]),
    "a step is out of range": forged("steps", [255, *values_of("steps")[1:]]),
    "a connection belongs to no link": forged("steps", [12, *values_of("steps")[1:]]),
    "places of a link do not ascend": forged("steps", [6, *values_of("steps")[1:]]),
    "a strength is below 1": forged("table", [0, *values_of("table")[1:]]),
    "one strength for each place": forged("numbers", values_of("numbers")[1:]),
    "number of neurons does not fit": forged("rows", values_of("rows"), neurons=1, words=2),
    "more words": forged("rows", values_of("rows"), words=7),
    "connections: 3001 is above the limit": forged("rows", values_of("rows"), connections=3001),
    "neurons: 401 is above the limit": forged("rows", values_of("rows"), neurons=401),
    "text: 301 is above the limit": forged("rows", values_of("rows"), text=301),
    "branches: 4 is above the limit": forged("rows", values_of("rows"), branches=4),
    "segments: 5 is above the limit": forged("rows", values_of("rows"), segments=5),
    "0 branches": forged("rows", values_of("rows"), branches=0),
    "only 27 bytes": WHOLE[:27],
    "starts with other bytes": b"GIAr" + WHOLE[4:],
    "data too short": WHOLE[:-1],
    "surplus bytes": WHOLE + b"\0",
}


@pytest.mark.parametrize("why", LIES)
def test_what_no_rows_are_does_not_pass(why: str) -> None:
    with pytest.raises(DamagedError, match=why):
        decode(LIES[why], LIMITS)


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        ({"strength": np.array([4, 4, 9, 1, 2, (1 << 63) - 1])}, "63 bits"),
        ({"counts": np.array([(1 << 63) - 1, 1])}, "63 bits"),
        ({"names": {word_id("beelike"): "beelike"}}, "words of a row have no text"),
        ({"names": NAMES | {word_id("beelike"): "cow"}}, "is not that of 'cow'"),
    ],
)
def test_what_encodes_and_is_no_row_does_not_pass(lie: dict[str, Any], why: str) -> None:
    with pytest.raises(DamagedError, match=why):
        decode(encode(SHEAF._replace(**lie), BRANCHES, SEGMENTS), LIMITS)


def test_a_part_of_a_cut_column_counts_nothing_but_leads_somewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(DamagedError, match="a row never occurred"):
        decode(encode(SHEAF._replace(counts=np.array([0, 1])), BRANCHES, SEGMENTS), LIMITS)
    part = Neuron(word_id(f"beelike{MARK}3"), PRIME)
    monkeypatch.setitem(NAMES, part.concept, f"beelike{MARK}3")
    some = bound({part: ROWS[BEE], WASP: ROWS[WASP]})._replace(counts=np.array([0, 1]))
    (row,) = decode(encode(some, BRANCHES, SEGMENTS), LIMITS).read(Question([part]))
    assert row is not None
    assert (row.count, len(row.strength)) == (0, 5)
    empty = bound({BEE: (1, []), WASP: ROWS[WASP]})._replace(counts=np.array([0, 1]))
    with pytest.raises(DamagedError, match="a row is empty"):
        decode(encode(empty, BRANCHES, SEGMENTS), LIMITS)


def test_a_number_of_connections_that_are_not_there_asks_for_no_memory() -> None:
    most = (1 << 31) - 1
    sizes = sheaf.Sizes(most, most, most, most, most, BRANCHES, SEGMENTS)
    with pytest.raises(DamagedError):
        decode(
            MAGIC + sheaf._SIZES.pack(*sizes) + WHOLE[HEAD:],
            Limits(BRANCHES, SEGMENTS, most, most, most),
        )


def test_any_bytes_are_rows_or_damage() -> None:
    rng, whole = random.Random(1), encode(bound(drawn(3)), BRANCHES, SEGMENTS)
    read = 0
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        cut = bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        try:
            found = decode(cut, LIMITS)
        except DamagedError:
            continue
        read += 1
        for row in found.read(Question([Neuron(*one) for one in found.neurons])):
            assert row is not None
            assert row.count > 0 or len(row.strength)
            assert row.strength.min(initial=1) > 0
            assert len(row.target) == len(row.branch) == len(row.segment) == len(row.strength)
            targets = [*zip(row.target_concept.tolist(), row.target_feature.tolist(), strict=True)]
            assert len({*targets}) == len(targets) == len({*row.target.tolist()})
    assert 0 < read < 1500
