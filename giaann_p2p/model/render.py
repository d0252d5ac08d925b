"""Words to text that reads like text: the inverse of tokenising, as far as it can be told."""

from collections.abc import Iterable

_NO_SPACE_BEFORE = frozenset(",.;:?!)]}%…’”'\"") - {'"', "'"}
_NO_SPACE_AFTER = frozenset("([{$£€#“‘")
_JOINED = frozenset("-–—/")
_CLITICS = (
    "'s",
    "’s",
    "n't",
    "n’t",
    "'re",
    "’re",
    "'ve",
    "’ve",
    "'ll",
    "’ll",
    "'d",
    "’d",
    "'m",
    "’m",
)


class Renderer:
    """Writes words one after another; tells for each what to append to the text so far."""

    def __init__(self, text: str = "") -> None:
        """Go on from a text."""
        self._glue = not text or text[-1].isspace() or text[-1] in _NO_SPACE_AFTER | _JOINED
        self._quoted = text.count('"') % 2 == 1
        if text.endswith('"') and self._quoted:
            self._glue = True

    def append(self, word: str) -> str:
        """Return the word as it is to be appended."""
        if word.isspace():
            return ""
        glued = self._glue or word in _NO_SPACE_BEFORE or word in _JOINED or word in _CLITICS
        self._glue = word in _NO_SPACE_AFTER or word in _JOINED
        if word == '"':
            glued = glued or self._quoted
            self._quoted = not self._quoted
            self._glue = self._quoted
        elif word == "'":  # after a plural; an opening one is rarer
            glued = True
        return ("" if glued else " ") + word.replace("_", " ")


def render(words: Iterable[str]) -> str:
    """Write words as a text."""
    renderer = Renderer()
    return "".join(map(renderer.append, words))
