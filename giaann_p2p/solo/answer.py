"""The answer of a brain to a prompt, generated token by token."""

from collections.abc import Callable, Iterator

from giaann_p2p.model.manner import Manner
from giaann_p2p.model.profile import AnyProfile
from giaann_p2p.model.rows import Abandoned, Rows, never, run
from giaann_p2p.model.said import AnyToken, Generation


class Answer:
    """An iterator over the tokens of an answer; each is generated when it is requested."""

    def __init__(
        self,
        prompt: str,
        rows: Rows,
        profile: AnyProfile,
        manner: Manner,
        should_stop: Callable[[], bool] = never,
    ) -> None:
        if should_stop():
            raise Abandoned("the answer is no longer wanted")
        self.prompt, self._should_stop = prompt, should_stop
        self._rows, self._tokens = rows, list[AnyToken]()
        self._going_on = profile.minds().continuation(prompt, manner)
        (parsed,) = profile.parsed([prompt])
        run(self._going_on.begin(parsed), rows, should_stop)

    def __iter__(self) -> Iterator[AnyToken]:
        return self

    def __next__(self) -> AnyToken:
        token = run(self._going_on.next(), self._rows, self._should_stop)
        if token is None:
            raise StopIteration
        self._tokens.append(token)
        return token

    @property
    def completion(self) -> str:
        """The missing rest of the prompt's last word, such as ` civil war` after "the Spanish"."""
        return self._going_on.completion

    @property
    def unknown(self) -> list[str]:
        """The names of the prompt's neurons that were never learned; see `Generation`."""
        return self._going_on.unknown

    @property
    def stopped(self) -> str | None:
        """Why the answer ended: `limit` or `end` (see `Generation`); None until it ends."""
        return self._going_on.stopped

    def all(self) -> Generation:
        """Generate the rest; return the whole answer, including tokens that were iterated over."""
        for _ in self:
            pass
        stopped = self._going_on.stopped or "end"
        return Generation(self.prompt, self._tokens, self.completion, self.unknown, stopped)
