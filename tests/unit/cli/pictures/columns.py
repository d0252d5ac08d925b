"""A column for the tests of its picture."""

from giaann_p2p.gateway.views import ShownColumn, ShownLead, ShownWord


def lead(concept: str, feature: str | None, strength: float) -> ShownLead:
    return ShownLead(concept=concept, feature=feature, strength=strength)


def word(feature: str | None, occurrences: int, *leads: ShownLead) -> ShownWord:
    return ShownWord(
        feature=feature, occurrences=occurrences, connections=len(leads), leads=[*leads]
    )


BEE = ShownColumn(
    concept="bee",
    size=12,
    words=[
        word(None, 8, lead("bee", "make", 4.0), lead("honey", None, 2.0)),
        word("make", 4, lead("honey", "sweet", 3.0), lead("nectar", None, 1.0)),
        word("guard", 2, lead("hive", "the", 6.0), lead("bee", "away", 5.0)),
    ],
)
