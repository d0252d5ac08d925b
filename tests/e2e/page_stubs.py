"""A backend that shows the page what a small swarm does not have: a vast column."""

from giaann_p2p.gateway.views import (
    ShownColumn,
    ShownLead,
    ShownWord,
)
from tests.unit.gateway.serving import Stub

SIZE = 100_000
"""Words of the vast column."""
LONG = "pneumonoultramicroscopicsilicovolcanoconiosis"
WIDE = "WMW" * 20
"""A name of the widest letters."""


class Vast(Stub):
    """A backend whose every column has 100,000 words with long names."""

    async def column(self, noun: str, words: int, leads: int) -> ShownColumn | None:
        """Return a column of long words, which lead to columns with long names."""
        shown = [
            ShownWord(
                feature=None if at == 0 else f"{(LONG, WIDE, 'by')[at % 3]}{at or ''}",
                occurrences=10_000_000 - at,
                connections=SIZE - at,
                leads=[_lead(at, lead) for lead in range(leads)],
            )
            for at in range(words)
        ]
        return ShownColumn(concept=noun, size=SIZE, words=shown)


def _lead(at: int, lead: int) -> ShownLead:
    return ShownLead(
        concept=f"{(WIDE, LONG)[lead % 2]}_{at + lead}",
        feature=(None, LONG, "by")[lead % 3],
        strength=1e6 / (1 + at + lead),
    )
