"""`giaann chat`: answers prompts line by line, until the input ends."""

import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, aclosing, closing, suppress
from typing import TYPE_CHECKING

import msgspec

from giaann_p2p.cli import present
from giaann_p2p.cli.arrival import LossWarning, arrived
from giaann_p2p.cli.link_option import Join
from giaann_p2p.cli.manner import Device, MaxTokens, Timing, TimingName, manner_of
from giaann_p2p.cli.prompt import Local, Stats, show_more, streamed
from giaann_p2p.cli.through_gateway import NoGateway, answers, gateway_to, oracle_at
from giaann_p2p.cli.verified import Verify, complain_of, settled, share_of
from giaann_p2p.errors import GiaannError
from giaann_p2p.gateway.asking import Away
from giaann_p2p.model.manner import MOST_TOKENS
from giaann_p2p.terminal import complain, joining, say, typed
from giaann_p2p.units import whole_number

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from giaann_p2p.client.oracle import Oracle
    from giaann_p2p.client.portal import Portal

_HELP = """\
Each line is a prompt; its answer is written after it.
Ctrl-C stops an answer, Ctrl-D ends the chat.
/timing NAME  how strictly memory must match: auto, exact, seq, none, biased
/max N        stop each answer after N tokens
/stats        show what each token cost, or stop showing it
/help         show this help
/quit         end the chat"""


class _Settings(msgspec.Struct):
    timing: str
    max_tokens: int
    stats: bool
    lies: int = 0
    """Number of lies reported so far."""


def chat(
    join: Join,
    max_tokens: MaxTokens = 80,
    timing: Timing = TimingName.AUTO,
    stats: Stats = False,
    local: Local = False,
    verify: Verify = False,
    device: Device = "auto",
    no_gateway: NoGateway = False,
) -> None:
    """Answer prompts line by line from what a swarm has learned; /help lists the commands."""
    settings = _Settings(timing.value, max_tokens, stats)
    if sys.stdin.isatty():
        with suppress(ImportError):  # without readline, lines cannot be edited
            import readline  # noqa: F401
    with ExitStack() as held:
        with joining():
            from giaann_p2p.cli.visiting import oracle_of
            from giaann_p2p.client.portal import Portal

            portal = held.enter_context(closing(Portal()))
            source = _Source(portal, lambda: oracle_of(join, local, device, share_of(verify)))
            where = gateway_to(join, no_gateway or local or verify or device != "auto")
            if where is None or not portal.run(answers(where)):
                source.join()
            else:
                source.ask = oracle_at(where)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            _talk(source, settings)
            with suppress(KeyboardInterrupt):
                portal.run(settled(source.ask.visiting))
            complain_of(source.ask.visiting, settings.lies)
        finally:
            signal.signal(signal.SIGINT, before)
            source.leave()


class _Source:
    """Answers a chat: through a gateway until it fails or refuses a prompt, then from the swarm."""

    ask: "Oracle"

    def __init__(
        self, portal: "Portal", joins: "Callable[[], AbstractAsyncContextManager[Oracle]]"
    ) -> None:
        self._portal, self._joins = portal, joins
        self._stack = AsyncExitStack()
        self._warning: LossWarning | None = None
        """Warns of data loss once the swarm is joined; a gateway reports it with each answer."""

    def join(self) -> None:
        """Join the swarm, which then answers; GiaannError if that fails."""
        self.ask = self._portal.run(self._stack.enter_async_context(self._joins()))
        self._warning = arrived(self.ask.visiting)

    def leave(self) -> None:
        """Leave the swarm, if it was joined."""
        self._portal.run(self._stack.aclose())

    def answer(self, line: str, settings: _Settings) -> None:
        """Answer a prompt, and print the answer."""
        if self._warning is not None:
            self._warning.look()
        try:
            self._portal.run(_answered(self.ask, line, settings))
        except Away as error:  # raised before anything is printed
            complain(f"{error}; joining the swarm")
            self.join()
            self._portal.run(_answered(self.ask, line, settings))


def _talk(source: _Source, settings: _Settings) -> None:
    while True:
        try:
            line = typed("> " if sys.stdin.isatty() else "").strip()
        except EOFError:
            return
        except KeyboardInterrupt:
            say("")
            continue
        if line == "/quit":
            return
        if not line:
            continue
        try:
            if line.startswith("/"):
                _order(line, settings)
            else:
                source.answer(line, settings)
        except KeyboardInterrupt:
            say("")
        except GiaannError as error:
            complain(str(error))


async def _answered(ask: "Oracle", line: str, settings: _Settings) -> None:
    manner = manner_of(settings.max_tokens, settings.timing, None, False, False)
    async with aclosing(ask(line, manner)) as answer:
        await streamed(answer, as_json=False)
        done = await answer.all()
    show_more(answer, done, explain=False, stats=settings.stats)
    settings.lies = complain_of(ask.visiting, settings.lies, at_last=False)
    if not done.text:
        complain(present.nothing_line(done, settings.timing))


def _order(line: str, settings: _Settings) -> None:
    """Carry out a command of the chat, a line that begins with /."""
    word, _, argument = line.partition(" ")
    if word == "/help":
        say(_HELP)
    elif word == "/stats":
        settings.stats = not settings.stats
        say(f"the cost of each token is {'shown' if settings.stats else 'not shown'}")
    elif word == "/timing" and argument in set(TimingName):
        settings.timing = argument
    elif word == "/max" and (most := whole_number(argument, MOST_TOKENS)):
        settings.max_tokens = most
    elif word == "/max":
        complain(f"/max takes a number of tokens, 1 to {MOST_TOKENS:,}")
    else:
        complain(f"{line[:80]!r} is not a command; /help lists all commands")
