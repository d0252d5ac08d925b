"""Rewords errors about the values of options: Typer's own messages name Python types."""

import math
import re

from typer import BadParameter

_KINDS = {"int": "a whole number", "float": "a number"}
_NOT_VALID = re.compile(r"is not a valid (int|float)( range)?\.")


def worded(error: BadParameter) -> BadParameter:
    """Return the error, reworded to say what the user has to write."""
    error.message = _NOT_VALID.sub(lambda found: f"is not {_KINDS[found[1]]}", error.message)
    return error


def a_number(value: float) -> float:
    """Return the value of an option; BadParameter for NaN, which passes every check of a range."""
    if math.isnan(value):
        raise BadParameter("nan is not a number")
    return value
