"""Which nodes a short look asks, and for what."""

from collections import Counter

import pytest

from giaann_p2p.net.hive.short_look import Search, spread

KEYS = [bytes([number]) for number in range(16)]


@pytest.mark.parametrize("nodes", [1, 2, 5, 40])
def test_each_key_is_asked_for_at_two_of_its_nodes(nodes: int) -> None:
    near = {key: [(key[0] + n) % nodes for n in range(min(nodes, 5))] for key in KEYS}
    asked = spread(near, dict.fromkeys(near, 2), 16)
    told = Counter(key for keys in asked.values() for key in keys)
    assert told == dict.fromkeys(KEYS, min(2, nodes))
    assert all(node in near[key] for node, keys in asked.items() for key in keys)


def test_in_a_small_swarm_two_nodes_are_asked_once_and_not_always_the_same() -> None:
    near = {key: list(range(5)) for key in KEYS}
    looks = [spread(near, dict.fromkeys(near, 2), 16) for _ in range(100)]
    assert {len(asked) for asked in looks} == {2}
    assert {node for asked in looks for node in asked} == set(range(5))


def test_no_node_is_asked_for_too_many_keys() -> None:
    near = {bytes([number]): [0, 1] for number in range(20)}
    assert [len(keys) for keys in spread(near, dict.fromkeys(near, 2), 16).values()] == [16, 16]


def test_a_search_holds_for_a_while_and_until_many_nodes_came() -> None:
    search = Search({KEYS[0]: [1, 2, 3], KEYS[1]: [4]}, 40, 0.0, 60.0)
    assert [search.holds(40, now) for now in (0.0, 59.9, 60.0)] == [True, True, False]
    held = [nodes for nodes in range(100) if search.holds(nodes, 0.0)]
    assert held == list(range(60))
    assert not Search({}, 2, 0.0, 60.0).holds(3, 0.0)
    assert not Search({}, 0, 0.0, 60.0).holds(0, 0.0)


def test_a_search_ends_when_few_of_its_nodes_answer() -> None:
    search = Search({KEYS[0]: [1, 2, 3, 4, 5], KEYS[1]: [6]}, 40, 0.0, 60.0)
    left = search.without({2, 4})
    assert left is not None
    assert left.near == {KEYS[0]: [1, 3, 5], KEYS[1]: [6]}
    assert left.without({1}) is None
    assert search.without({6}) is None


def test_a_search_lasts_longer_the_more_often_it_found_the_same() -> None:
    same, other = {KEYS[0]: [1, 2, 3]}, {KEYS[0]: [1, 2, 4]}
    search = Search(same, 40, 0.0, 60.0).after(None)
    lasted = [search.lasts]
    for number, near in enumerate([same, same, same, other, same]):
        search = Search(near, 40 - number, 100.0 * number, 60.0).after(search)
        assert (search.ended, search.nodes) == (100.0 * number, 40)
        lasted.append(search.lasts)
    assert lasted == [60.0, 120.0, 240.0, 240.0, 60.0, 60.0]
