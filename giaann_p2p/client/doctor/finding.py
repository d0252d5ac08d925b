"""What a check comes to."""

from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """See the module."""

    check: str
    """What was looked at."""
    verdict: Literal["ok", "note", "problem"]
    """A note may explain trouble, or come to be some; a problem keeps this peer from joining."""
    said: str
    remedy: str = ""


def ok(check: str, said: str) -> Finding:
    """Nothing is wrong."""
    return Finding(check, "ok", said)


def note(check: str, said: str, remedy: str = "") -> Finding:
    """It may be right as it is, but should be known."""
    return Finding(check, "note", said, remedy)


def problem(check: str, said: str, remedy: str) -> Finding:
    """It is wrong, and this helps."""
    return Finding(check, "problem", said, remedy)


def softened(finding: Finding) -> Finding:
    """Return a problem as a note: there is a way round it."""
    if finding.verdict != "problem":
        return finding
    return msgspec.structs.replace(finding, verdict="note")
