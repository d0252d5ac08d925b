"""What the choice of a token rests on."""

from enum import StrEnum


class Basis(StrEnum):
    """What a choice rests on, from what was learned word for word to a mere guess."""

    RECALL = "recall"
    """All five own rows: it was learned like this."""
    OWN = "own rows"
    """The row of the last token in its column."""
    ANY = "any column"
    """The row of the last token in any column."""
    NONE = "no evidence"
    """Nothing but how frequent tokens are."""
