"""Plain words for faults in JSON or MessagePack that does not have the expected form.

msgspec's errors name its own types ("Expected `int | null`, got `str` - at `$.max_tokens`"), and a
user who writes a file or a request by hand need not know these.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

_PLACE = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "bytes": "bytes",
    "array": "a list",
    "object": "an object in braces",
    "null": "null",
}
_UNITS = {"str": "character", "bytes": "byte", "array": "entry", "object": "field"}


class Fault(NamedTuple):
    """A fault in a document, and its place."""

    place: str
    """The field, as in `messages[0].role`; empty for the whole document."""
    words: str

    def __str__(self) -> str:
        if not self.place:
            return self.words
        is_rest = self.words.startswith(("must ", "is "))
        return f"{self.place}{'' if is_rest else ':'} {self.words}"


def fault_of(error: Exception) -> Fault:
    """Return the fault behind an error that decoding JSON or MessagePack has raised."""
    if isinstance(error, RecursionError):
        return Fault("", "it is nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return Fault("", f"it is no text in UTF-8 (byte {error.start:,})")
    text = str(error)
    found = _PLACE.search(text)
    place, text = (_named(found["path"]), text[: found.start()]) if found else ("", text)
    for pattern, worded in _WORDED:
        if match := pattern.fullmatch(text):
            return worded(place, match)
    return Fault(place, text)


def _other_kind(place: str, found: re.Match[str]) -> Fault:
    wanted = [kind for kind in found["wanted"].split(" | ") if kind != "null"] or ["null"]
    kinds = " or ".join(_KINDS.get(kind, kind) for kind in wanted)
    given = _KINDS.get(found["given"], found["given"])
    return Fault(place, f"{_must(place)} be {kinds}, not {given}")


def _number(place: str, found: re.Match[str]) -> Fault:
    limit = found["limit"].removesuffix(".0")
    words = {">=": "{} or more", "<=": "{} or less", ">": "more than {}", "<": "less than {}"}
    return Fault(place, f"{_must(place)} be {words[found['sign']].format(limit)}")


def _length(place: str, found: re.Match[str]) -> Fault:
    count, unit = int(found["limit"]), _UNITS[found["kind"]]
    if found["sign"] == ">=" and count == 1:
        return Fault(place, f"{_must(place)} not be empty")
    many = f"{count:,} {unit}" if count == 1 else f"{count:,} {unit.replace('try', 'trie')}s"
    most = {">=": f"{many} or more", "<=": f"at most {many}"}.get(found["sign"], many)
    return Fault(place, f"{_must(place)} have {most}")


def _missing(place: str, found: re.Match[str]) -> Fault:
    return Fault(_within(place, found["name"]), "is missing")


def _unknown(place: str, found: re.Match[str]) -> Fault:
    return Fault(_within(place, found["name"]), "is not known here")


def _no_choice(place: str, found: re.Match[str]) -> Fault:
    return Fault(place, f"{_must(place)} not be {found['value']}, which is none of the choices")


def _not_base64(place: str, _: re.Match[str]) -> Fault:
    return Fault(place, f"{_must(place)} be a text in base64")


def _cut_off(_: str, __: re.Match[str]) -> Fault:
    return Fault("", "it ends too early")


def _no_json(_: str, found: re.Match[str]) -> Fault:
    return Fault("", f"it is not JSON: {found['why']}")


def _no_msgpack(_: str, found: re.Match[str]) -> Fault:
    return Fault("", f"it is not MessagePack: {found['why']}")


def _named(path: str) -> str:
    """Return the path of a field; say "a value" if msgspec writes `[...]` instead of its key."""
    within, is_value, _ = path.partition("[...]")
    return (f"a value in {within}" if within else "a value") if is_value else path


def _must(place: str) -> str:
    return "must" if place else "it must"


def _within(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


_WORDED: list[tuple[re.Pattern[str], Callable[[str, re.Match[str]], Fault]]] = [
    (re.compile(r"Expected `(?P<wanted>[\w |]+)`, got `(?P<given>\w+)`"), _other_kind),
    (re.compile(r"Expected `(?:int|float)` (?P<sign>[<>]=?) (?P<limit>\S+)"), _number),
    (
        re.compile(
            r"Expected `(?P<kind>str|bytes|array|object)` of length"
            r" (?:(?P<sign>[<>]=) )?(?P<limit>\d+)(?:, got \d+)?"
        ),
        _length,
    ),
    (re.compile(r"Object missing required field `(?P<name>[^`]*)`"), _missing),
    (re.compile(r"Object contains unknown field `(?P<name>[^`]*)`"), _unknown),
    (re.compile(r"Invalid enum value (?P<value>.*)", re.DOTALL), _no_choice),
    (re.compile(r"Invalid base64 encoded string"), _not_base64),
    (re.compile(r"Input data was truncated"), _cut_off),
    (re.compile(r"JSON is malformed: (?P<why>.*)"), _no_json),
    (re.compile(r"MessagePack data is malformed: (?P<why>.*)"), _no_msgpack),
]
