"""The result of a check."""

from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """The result of one check, in words, with a remedy where one is needed."""

    check: str
    """The name of the check."""
    verdict: Literal["ok", "note", "problem"]
    """Severity: a note may explain trouble, or become a problem; a problem keeps this peer from
    joining."""
    said: str
    remedy: str = ""


def ok(check: str, said: str) -> Finding:
    """Return a finding without a fault."""
    return Finding(check, "ok", said)


def note(check: str, said: str, remedy: str = "") -> Finding:
    """Return a finding that may be intended, but is worth knowing."""
    return Finding(check, "note", said, remedy)


def problem(check: str, said: str, remedy: str) -> Finding:
    """Return a fault, with its remedy."""
    return Finding(check, "problem", said, remedy)


def softened(finding: Finding) -> Finding:
    """Return a problem as a note, because there is another way."""
    if finding.verdict != "problem":
        return finding
    return msgspec.structs.replace(finding, verdict="note")
