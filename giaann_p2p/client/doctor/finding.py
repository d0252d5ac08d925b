"""The result of one check of `giaann doctor`."""

from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """The result of one check, in words, with a remedy if one is needed."""

    check: str
    """The name of the check."""
    verdict: Literal["ok", "note", "problem"]
    """The severity: `problem` keeps this peer from joining; `note` may explain trouble, or become a
    problem."""
    said: str
    """The result of the check, as a phrase that follows the name of the check."""
    remedy: str = ""


def ok(check: str, said: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(check, "ok", said)


def note(check: str, said: str, remedy: str = "") -> Finding:
    """Return a finding that is worth knowing, but may be intended."""
    return Finding(check, "note", said, remedy)


def problem(check: str, said: str, remedy: str) -> Finding:
    """Return a finding that keeps this peer from joining, with its remedy."""
    return Finding(check, "problem", said, remedy)


def softened(finding: Finding) -> Finding:
    """Turn a problem into a note, because another address or peer works; return others as is."""
    if finding.verdict != "problem":
        return finding
    return msgspec.structs.replace(finding, verdict="note")
