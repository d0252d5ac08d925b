"""Ends an answer at a text, as OpenAI's `stop` does, in tokens of any size.

Nothing of a stop is ever sent: what may be the beginning of one is held back until the next token
shows whether it is.
"""

from collections.abc import Sequence


class Stops:
    """Passes an answer through, up to the first of some texts."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.met = False
        """Whether one of the texts has come; then nothing more passes."""

    def feed(self, text: str) -> str:
        """Return what may be sent after this piece of the answer."""
        if self.met:
            return ""
        whole = self._held + text
        ends = [at for stop in self._stops if (at := whole.find(stop)) >= 0]
        if ends:
            self.met, self._held = True, ""
            return whole[: min(ends)]
        held = max((_begun(whole, stop) for stop in self._stops), default=0)
        self._held = whole[len(whole) - held :]
        return whole[: len(whole) - held]

    def flush(self) -> str:
        """Return what was held back, at the end of the answer."""
        held, self._held = self._held, ""
        return held


def _begun(text: str, stop: str) -> int:
    """Return how many letters at the end of a text are the beginning of a stop."""
    return next(
        (n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0
    )
