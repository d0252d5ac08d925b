"""Words for values that an option does not accept.

Typer passes on the words of its validator ("Input should be a valid integer, unable to parse string
as an integer"), which name types and not what a user has to write.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from typer import BadParameter


class Problem(NamedTuple):
    """A problem that a validator reports."""

    kind: str
    value: object
    limits: dict[str, Any]


_WORDS: dict[str, Callable[[Problem], str]] = {
    "int_parsing": lambda _: "must be a whole number",
    "int_from_float": lambda _: "must be a whole number",
    "int_parsing_size": lambda _: "has too many digits",
    "float_parsing": lambda _: "must be a number",
    "finite_number": lambda _: "must be a finite number",
    "greater_than_equal": lambda problem: f"must be {_number(problem.limits['ge'])} or more",
    "less_than_equal": lambda problem: f"must be {_number(problem.limits['le'])} or less",
}
"""The words for each kind of problem, by the validator's name of it."""


def worded(error: BadParameter) -> BadParameter:
    """Return the error with words for users, where the validator's own words were given."""
    problem = _problem_of(error)
    if problem is not None and problem.kind in _WORDS:
        error.message = f"{_WORDS[problem.kind](problem)}; it is {problem.value!s}"
    else:
        error.message = error.message.removeprefix("Value error, ")
    return error


def _number(limit: float) -> str:
    return f"{limit:,}".removesuffix(".0")


def _problem_of(error: BadParameter) -> Problem | None:
    """Return the first problem of the validator's error that caused this one, if one did."""
    found: Any = getattr(error.__cause__, "errors", None)
    if not callable(found) or not (problems := found()):
        return None
    first: dict[str, Any] = problems[0]
    return Problem(first["type"], first["input"], first.get("ctx", {}))
