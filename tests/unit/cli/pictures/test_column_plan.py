"""Where everything of a column's picture goes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.cli.pictures.column_plan import Plan, plan_of
from giaann_p2p.gateway.views import ShownColumn, ShownWord
from tests.unit.cli.pictures.columns import BEE, lead, word


def drawn(plan: Plan) -> list[tuple[str, str, float]]:
    """Return the connections to other columns: their ends, and their strengths."""
    return [
        (plan.words[one.word].text, plan.targets[one.target].text, one.share) for one in plan.links
    ]


def test_words_keep_their_order_and_connections_lead_to_the_boxes_of_other_columns() -> None:
    plan = plan_of(BEE)
    assert [one.text for one in plan.words] == ["*bee*", "make", "guard"]
    assert [one.share for one in plan.words] == [1.0, 0.5, 0.25]
    assert [box.concept for box in plan.boxes] == ["honey", "nectar", "hive"]
    assert drawn(plan) == [
        ("guard", "the", 1.0),
        ("make", "sweet", 0.5),
        ("*bee*", "*honey*", 2 / 6),
        ("make", "*nectar*", 1 / 6),
    ]


def test_a_connection_within_the_column_is_shown_if_both_words_are() -> None:
    (inner,) = plan_of(BEE).inner
    assert (inner.word, inner.target, inner.share) == (0, 1, 4 / 6)


def test_only_the_strongest_connections_are_shown_and_the_others_are_counted() -> None:
    plan = plan_of(BEE, most=2)
    assert [target for _, target, _ in drawn(plan)] == ["the", "sweet"]
    assert [box.concept for box in plan.boxes] == ["honey", "hive"]
    assert plan.left_out == 2


def test_a_column_that_leads_nowhere_has_a_plan() -> None:
    plan = plan_of(ShownColumn(concept="bee", size=1, words=[word(None, 0)]))
    assert (plan.links, plan.boxes, plan.height) == ([], [], 1.0)
    assert [one.y for one in plan.words] == [0.5]


NAMES = st.sampled_from(["bee", "honey", "hive", "wasp", "nectar"])
FEATURES = st.none() | st.sampled_from(["the", "make", "sweet"])
WORDS = st.lists(
    st.builds(
        lambda feature, occurrences, leads: word(feature, occurrences, *leads),
        FEATURES,
        st.integers(0, 9),
        st.lists(st.builds(lead, NAMES, FEATURES, st.integers(0, 5).map(float)), max_size=6),
    ),
    max_size=5,
    unique_by=lambda one: one.feature,
)


@given(WORDS, st.integers(1, 9))
def test_nothing_lies_upon_anything_else_or_outside_of_the_picture(
    words: list[ShownWord], most: int
) -> None:
    plan = plan_of(ShownColumn(concept="bee", size=9, words=words), most)
    for spots in (plan.words, plan.targets):
        heights = [spot.y for spot in spots]
        assert all(other - one > 0.999 for one, other in pairwise(heights))
        assert all(0 < height < plan.height for height in heights)
    edges = [edge for box in plan.boxes for edge in (box.top, box.bottom)]
    assert edges == sorted(edges)
    assert len(plan.links) <= most
    assert all(0 <= one.share <= 1 for one in (*plan.links, *plan.inner))
