"""Questions to other peers, over the connection there is or one that is to be made."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from giaann_p2p.errors import PeerError, UsageError
from giaann_p2p.net.errors import Broken, Reason, Refused, Unreachable
from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.node.calls import Calls
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.edition import Edition
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.member_messages import AskEdition, AskManifest, EditionIs, ManifestIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AskDigests, Refusal, encode

PEER = Peer(b"p" * 32)
CALL = Call(1, PEER, AskManifest(), 5.0)
QUESTION = Call(2, PEER, AskDigests(b"\0"), 5.0)
FOUNDER = Identity.from_seed(b"f" * 32)
MANIFEST = Manifest.founded(FOUNDER, "town")
ANSWER = ManifestIs(b"all agreed")


class Line:
    """A transport whose connection is in the test's hands."""

    def __init__(self) -> None:
        self.connected = True
        self.error: Exception | None = None
        self.told: list[OnAnswer] = []
        self.dropped = 0
        self.sent: list[bytes] = []
        self.dialled: list[float] = []
        self.dial: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def ask(
        self, peer: Peer, payload: bytes, *, timeout: float, told: OnAnswer
    ) -> Callable[[], None] | None:
        assert peer == PEER
        self.sent.append(payload)
        if self.error is not None:
            raise self.error
        if not self.connected:
            return None
        self.told.append(told)
        return self._drop

    async def call(self, peer: Peer, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        assert (peer, payload) == (PEER, encode(CALL.message))
        self.dialled.append(timeout)
        return await self.dial

    def _drop(self) -> None:
        self.dropped += 1


class Asking:
    """Calls over a line, and what came of them."""

    def __init__(self) -> None:
        self.line = Line()
        self.failed: list[BaseException] = []
        self.gate = Gate(MANIFEST, None, clock=lambda: 0.0)  # type: ignore[arg-type]
        self.calls = Calls(self.line, self.gate.rules, self.failed.append, self.gate.weigh_edition)  # type: ignore[arg-type]
        self.answers: list[Message | None] = []

    def start(self, call: Call = CALL) -> None:
        self.calls.start(call, self.answers.append)


def play(story: Callable[[Asking], Awaitable[None]]) -> None:
    async def main() -> None:
        asking = Asking()
        await story(asking)
        await asking.calls.end()
        assert len(asking.calls) == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_over_a_connection_no_task_is_needed() -> None:
    async def story(one: Asking) -> None:
        one.start()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert (len(one.calls), one.answers, one.line.sent) == (1, [], [encode(CALL.message)])
        one.line.told[0](encode(ANSWER))
        assert (len(one.calls), one.answers) == (0, [ANSWER])
        one.line.told[0](encode(ANSWER))  # once is enough
        assert one.answers == [ANSWER]
        assert (one.calls.made, one.calls.unanswered) == (1, 0)
        assert one.calls.bytes_out == len(encode(CALL.message))
        assert one.calls.bytes_in == len(encode(ANSWER))

    play(story)


@pytest.mark.parametrize("answer", [b"none", Broken("off"), Refused(Reason.BUSY, "later")])
def test_what_is_no_answer_is_told_as_none(answer: bytes | PeerError) -> None:
    async def story(one: Asking) -> None:
        one.start()
        one.line.told[0](answer)
        assert (one.answers, one.calls.unanswered) == ([None], 1)

    play(story)


def test_what_was_not_sent_goes_over_another_connection() -> None:
    async def story(one: Asking) -> None:
        one.start()
        one.line.told[0](Unreachable("nothing was sent"))
        await asyncio.sleep(0)
        assert (one.answers, len(one.line.dialled)) == ([], 1)
        assert 4 < one.line.dialled[0] <= 5  # the time that is left
        one.line.dial.set_result(encode(ANSWER))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert one.answers == [ANSWER]
        assert one.calls.bytes_out == len(encode(CALL.message))  # sent once

    play(story)


def test_where_there_is_no_connection_a_task_waits_for_one() -> None:
    async def story(one: Asking) -> None:
        one.line.connected = False
        one.start()
        await asyncio.sleep(0)
        one.line.dial.set_exception(Unreachable("nobody there"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (one.answers, one.calls.unanswered) == ([None], 1)
        assert one.calls.bytes_out == len(encode(CALL.message))
        one.start()
        await one.calls.end()
        assert one.answers == [None]

    play(story)


def test_what_cannot_be_asked_is_told_later() -> None:
    async def story(one: Asking) -> None:
        one.line.error = UsageError("it is closed")
        one.start()
        one.start()
        assert one.answers == []
        one.calls.cancel(lambda call: True)
        one.start()
        await asyncio.sleep(0)
        assert one.answers == [None]

    play(story)


def test_who_waits_no_longer_is_not_told() -> None:
    async def story(one: Asking) -> None:
        one.start()
        one.calls.cancel(lambda call: call.number == 2)
        assert len(one.calls) == 1
        one.calls.cancel(lambda call: call.number == 1)
        assert (len(one.calls), one.line.dropped) == (0, 1)
        one.line.told[0](encode(ANSWER))
        one.line.told[0](Unreachable("nothing was sent"))
        assert (one.answers, one.line.dialled) == ([], [])

    play(story)


def test_an_error_that_nobody_planned_for_is_told() -> None:
    async def story(one: Asking) -> None:
        def fails(answer: Message | None) -> None:
            raise KeyError(answer)

        one.calls.start(CALL, fails)
        one.line.told[0](encode(ANSWER))
        assert [str(error) for error in one.failed] == [str(KeyError(ANSWER))]

    play(story)


def edition(number: int) -> bytes:
    shards = MANIFEST.layout.shards << number
    return Edition.signed(FOUNDER, MANIFEST.swarm_id, number, 9, shards=shards).to_bytes()


def test_a_peer_that_counts_more_shards_sends_its_edition() -> None:
    async def story(one: Asking) -> None:
        one.start(QUESTION)
        one.line.told[0](encode(EditionIs(edition(2))))
        (answer,) = one.answers
        assert isinstance(answer, Refusal)
        assert answer.is_busy
        assert one.gate.rules().edition == 2
        one.start(QUESTION)  # this peer counts as many from now on
        assert one.line.sent == [encode(QUESTION.message), encode(QUESTION.message, 2)]

    play(story)


@pytest.mark.parametrize("theirs", [b"", edition(1)])
def test_a_peer_that_counts_fewer_shards_is_told_the_edition(theirs: bytes) -> None:
    async def story(one: Asking) -> None:
        one.gate.learn_edition(edition(2))
        one.start(QUESTION)
        one.line.told[0](encode(EditionIs(theirs)))
        (answer,) = one.answers
        assert isinstance(answer, Refusal)
        assert answer.is_busy
        assert one.line.sent[1:] == [encode(EditionIs(edition(2)), 2)]
        one.line.told[1](encode(EditionIs(b"")))  # its thanks are no answer to a question
        assert (len(one.answers), len(one.line.sent)) == (1, 2)

    play(story)


def test_peers_that_count_alike_tell_each_other_nothing() -> None:
    async def story(one: Asking) -> None:
        for theirs in (b"", edition(2)):  # a peer that is dividing its shards just now
            one.start(QUESTION)
            one.line.told[-1](encode(EditionIs(theirs)))
            assert len(one.line.sent) == len(one.answers)
            one.gate.learn_edition(edition(2))

    play(story)


def test_a_peer_that_divides_its_shards_tells_no_edition() -> None:
    async def story(one: Asking) -> None:
        one.gate.on_division(lambda shards, then: None)
        for _ in range(2):
            one.start(QUESTION)
            one.line.told[-1](encode(EditionIs(edition(2))))
        assert one.line.sent == 2 * [encode(QUESTION.message)]

    play(story)


def test_a_forged_edition_is_no_answer() -> None:
    async def story(one: Asking) -> None:
        one.start(QUESTION)
        one.line.told[0](encode(EditionIs(edition(2)[:-1] + b"!")))
        assert (one.answers, one.gate.rules().edition) == ([None], 0)

    play(story)


def test_an_edition_that_was_asked_for_is_an_answer() -> None:
    async def story(one: Asking) -> None:
        one.start(Call(1, PEER, AskEdition(0), 5.0))
        one.line.told[0](encode(EditionIs(edition(2))))
        assert (one.answers, one.gate.rules().edition) == ([EditionIs(edition(2))], 0)

    play(story)
