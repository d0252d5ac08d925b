"""Reads a token as given on a command line: its text, or a file that contains it."""

from pathlib import Path

MOST_TEXT = 1 << 12
"""Maximum length of a token's text, in characters."""


def text_of(text: str) -> str:
    """Return a token's text: `text` itself, or the content of the file that it names."""
    path = Path(text)
    try:
        if len(text) < MOST_TEXT and path.is_file():
            return path.read_text(errors="replace")[:MOST_TEXT]
    except OSError:
        return text
    return text
