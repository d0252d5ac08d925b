"""The blocks of commands and of Python in README.md and docs/."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SHELL, PYTHON = ("sh", "bash", "console"), ("python",)
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block, where it stands, and what it is written in."""

    page: str
    kind: str
    text: str

    def commands(self) -> list[str]:
        """Return a shell block's commands, each on one line."""
        lines = self._lines()
        if self.kind == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [line for line in lines if line.strip()]

    def output(self) -> str:
        """Return what a console block shows below its commands."""
        shown = [line for line in self._lines() if line and not line.startswith("$ ")]
        return "\n".join(shown) if self.kind == "console" else ""

    def _lines(self) -> list[str]:
        """Return its lines, those that go on in the next one put together."""
        return re.sub(r"\s*\\\n\s*", " ", self.text).splitlines()


def blocks_of(page: str, text: str) -> list[Block]:
    """Return a page's blocks, also those that nothing can run."""
    return [Block(page, kind, body) for kind, body in _FENCED.findall(text)]


@cache
def runnable() -> list[Block]:
    """Return the blocks of all pages that are meant to be typed or copied."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [
        block
        for page in pages
        for block in blocks_of(str(page.relative_to(ROOT)), page.read_text())
        if block.kind in SHELL + PYTHON
    ]
