"""One peer's prompts: what it answers at once, later, or not at all, and what is left of it."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence

import pytest

from giaann_p2p.errors import GiaannError, UsageError
from giaann_p2p.model.manner import Beam, Manner
from giaann_p2p.model.parse import Parser
from giaann_p2p.model.rows import Answer, DeltaRows, Neuron, Question
from giaann_p2p.model.said import Token
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.net import clock
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.reading import thinking
from giaann_p2p.node.reading.prompting import Prompting, PromptOptions
from giaann_p2p.swarm.reading.known_rows import Known
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal
from giaann_p2p.swarm.wire.prompt_messages import Ask, Continued
from tests.unit.node.helpers_prompts import expected, profile_with, prompts

ME, YOU = Peer(b"M" * 32), Peer(b"Y" * 32)
NUMBER, OTHER = b"n" * 16, b"o" * 16
PROMPT = prompts(1, words=12)[0]
MANNER = Manner(max_tokens=12)


class Peers:
    """Whoever has rows."""

    def __init__(self, rows: DeltaRows) -> None:
        self.rows, self.takes, self.asked = rows, 0.001, 0
        self.error: Exception | None = None

    async def read(self, neurons: Sequence[Neuron], known: Known) -> Answer:
        self.asked += len(neurons)
        await asyncio.sleep(self.takes)
        if self.error is not None:
            raise self.error
        return self.rows.read(Question(neurons))

    async def frequent(self, most: int) -> Answer:
        return self.rows.read(Question((), frequent=most))


Story = Callable[[Prompting, Peers], Awaitable[None]]


class Play:
    """Lets a peer live in made-up time, and sees that nothing is left of it."""

    def __init__(self, rows: DeltaRows, parser: Parser, spec: ModelSpec) -> None:
        self.rows, self.parser, self.spec = rows, parser, spec

    def __call__(self, story: Story, **options: float) -> None:
        async def main() -> None:
            peers = Peers(self.rows)
            chosen = PromptOptions(**options)  # type: ignore[arg-type]
            profile = profile_with(self.parser, self.spec)
            peer = Prompting(peers.read, profile, chosen, frequent=peers.frequent)
            await story(peer, peers)
            await peer.close()
            assert len(asyncio.all_tasks()) == 1
            assert len(peer) == 0

        clock.run(main())

    def whole(self, prompt: str = PROMPT, manner: Manner = MANNER) -> list[Token]:
        """Return what one machine says."""
        return expected(self.rows, self.parser, prompt, manner, self.spec).tokens


@pytest.fixture(scope="module")
def play(wiki_rows: DeltaRows, parser: Parser, spec: ModelSpec) -> Play:
    return Play(wiki_rows, parser, spec)


def ask(
    said: Sequence[Token] = (),
    prompt: str = PROMPT,
    manner: Manner = MANNER,
    number: bytes = NUMBER,
) -> Ask:
    packed = b"".join(struct.pack("<2Q", *token.name.neuron) for token in said)
    return Ask(number, prompt, manner, packed)


async def told(peer: Prompting, question: Ask, sender: Peer = ME) -> Continued:
    found = await peer.answer(sender, question)
    assert isinstance(found, Continued), found
    return found


async def refused(peer: Prompting, question: Ask, sender: Peer = ME) -> str:
    found: Message = await peer.answer(sender, question)
    assert isinstance(found, Refusal), found
    return found.reason


async def all_told(peer: Prompting, said: Sequence[Token] = ()) -> list[Token]:
    tokens = list(said)
    while True:
        found = await told(peer, ask(tokens))
        tokens += found.tokens
        assert len(found.costs) == len(found.tokens)
        if found.stopped is not None:
            assert found.begun is not None
            return tokens


def test_it_tells_all_that_is_new_and_goes_on_from_anywhere(play: Play) -> None:
    whole = play.whole()
    assert len(whole) > 8

    async def story(peer: Prompting, peers: Peers) -> None:
        assert await all_told(peer) == whole
        assert (len(peer), peer.begun) == (0, 1)  # all is told
        for many in range(len(whole) + 1):
            assert await all_told(peer, whole[:many]) == whole
        assert peer.taken_up == len(whole)

    play(story)


def test_what_was_lost_on_its_way_is_told_again(play: Play) -> None:
    whole = play.whole()

    async def story(peer: Prompting, peers: Peers) -> None:
        for many in range(6):
            await told(peer, ask(whole[:many]))
            await asyncio.sleep(1)
        asked = peers.asked
        for many in range(6):
            found = await told(peer, ask(whole[:many]))
            assert found.tokens == whole[many:6]
            assert found.stopped is None
        assert (peers.asked, peer.begun, peer.taken_up) == (asked, 1, 0)

    play(story, ahead=1)


def test_tokens_of_another_answer_begin_anew(play: Play) -> None:
    whole = play.whole()

    async def story(peer: Prompting, peers: Peers) -> None:
        await told(peer, ask())
        other = [whole[1], whole[0]]
        await told(peer, ask(other))
        assert peer.begun == 2
        await told(peer, ask(prompt=PROMPT + " and"))
        await told(peer, ask(manner=Manner(max_tokens=3)))
        assert peer.begun == 4
        await told(peer, ask(number=OTHER))
        await told(peer, ask(), YOU)
        assert peer.begun == 6
        assert len(peer) == 3
        assert repr(peer).startswith("<Prompting: 3 prompts, <RowCache: ")

    play(story, ahead=1)


def test_without_news_it_answers_after_a_moment(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        peers.takes = 0.5
        loop = asyncio.get_running_loop()
        began = loop.time()
        found = await told(peer, ask())
        assert (found.tokens, found.stopped, found.begun) == ([], None, None)
        assert loop.time() - began == 0.3
        while not (await told(peer, ask())).tokens:
            pass
        assert peer.begun == 1

    play(story)


def test_two_may_ask_for_the_same(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        one, other = await asyncio.gather(told(peer, ask()), told(peer, ask()))
        assert one.tokens
        assert other.tokens
        assert peer.begun == 1

    play(story)


def test_it_runs_ahead_only_so_far(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        found = await told(peer, ask())
        await asyncio.sleep(5)
        assert len((await told(peer, ask())).tokens) == 3
        whole = found.tokens
        while len(whole) < 6:
            whole += (await told(peer, ask(whole))).tokens
        await asyncio.sleep(5)
        assert 0 < len((await told(peer, ask(whole))).tokens) <= 3

    play(story, ahead=3)


def test_a_session_that_nobody_asks_about_ends(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        await told(peer, ask())
        for _ in range(5):
            await asyncio.sleep(9)
            await told(peer, ask())
        assert (len(peer), peer.begun) == (1, 1)
        await asyncio.sleep(11)
        assert len(peer) == 0

    play(story, ahead=1)


def test_sessions_are_bounded(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        for number in range(2):
            await told(peer, ask(number=bytes([number] * 16)))
        assert (await refused(peer, ask(number=OTHER))).startswith("busy: this peer answers")
        await told(peer, ask(), YOU)
        assert (await refused(peer, ask(), Peer(b"Z" * 32))).startswith("busy: this peer answers")
        await told(peer, ask(number=bytes(16)))  # who has one goes on
        assert peer.refused == 2
        await asyncio.sleep(11)
        await told(peer, ask(number=OTHER))

    play(story, sessions=3, sessions_each=2, ahead=1)


def test_a_client_with_too_many_prompts_gives_up_the_one_it_left_alone(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        await told(peer, ask(), YOU)
        first = await told(peer, ask())
        await asyncio.sleep(0.1)
        other = await told(peer, ask(number=OTHER))
        assert "busy" in await refused(peer, ask(number=bytes(16)))  # both are in use
        await asyncio.sleep(0.7)
        await told(peer, ask(other.tokens, number=OTHER))
        await told(peer, ask(number=bytes(16)))
        assert (len(peer), peer.begun) == (3, 4)
        assert "busy" in await refused(peer, ask(first.tokens))  # it was given up; none is quiet
        await asyncio.sleep(0.7)
        assert (await told(peer, ask(first.tokens))).tokens == play.whole()[len(first.tokens) :][:1]
        assert (await told(peer, ask(first.tokens), YOU)).tokens  # what others left is theirs
        assert peer.begun == 5

    play(story, sessions=9, sessions_each=2, ahead=1)


@pytest.mark.slow
def test_prompts_one_after_another_are_as_many_as_one_likes(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        for number in range(40):
            found = await told(peer, ask(number=bytes([number] * 16)))
            while found.stopped is None:
                found = await told(peer, ask(found.tokens, number=bytes([number] * 16)))
            assert len(peer) == 0
        assert "is empty" in (await told(peer, ask(prompt=" "))).fault
        assert len(peer) == 0
        peers.error = Unreachable("no rows")
        assert "no rows" in await refused(peer, ask(prompt="Whales are mammals"))
        assert len(peer) == 0

    play(story, sessions=1)


def test_an_answer_that_has_begun_gathers_its_tokens(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        first = await told(peer, ask())
        rest = await told(peer, ask(first.tokens))
        assert rest.stopped is not None
        assert first.tokens + rest.tokens == play.whole()

    play(story)


def test_memory_is_bounded(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        found = await peer.answer(ME, ask())
        while isinstance(found, Continued):
            found = await peer.answer(ME, ask())
        assert isinstance(found, Refusal)
        assert "an answer may take here" in found.reason

    play(story, mind_bytes=400_000)


def test_what_was_said_elsewhere_is_bounded_as_well(play: Play) -> None:
    whole = play.whole(manner=Manner(max_tokens=30))
    said = (whole * 200)[:3000]

    async def story(peer: Prompting, peers: Peers) -> None:
        found = await peer.answer(ME, ask(said, manner=Manner(max_tokens=4000)))
        while isinstance(found, Continued):
            found = await peer.answer(ME, ask(said, manner=Manner(max_tokens=4000)))
        assert isinstance(found, Refusal)
        assert "an answer may take here" in found.reason
        assert peers.asked < 400

    play(story, mind_bytes=1_000_000)


def test_when_the_memory_for_all_is_used_no_more_begin(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        number, found = 0, await peer.answer(ME, ask(number=bytes(16)))
        while isinstance(found, Continued):
            number += 1
            found = await peer.answer(ME, ask(number=bytes([number] * 16)))
        assert isinstance(found, Refusal)
        assert found.reason.startswith("busy: no memory")
        assert number >= 4
        assert peer._thinking.minds.nbytes <= 2_000_000
        await told(peer, ask(number=bytes(16)))  # who has begun goes on

    play(story, ahead=1, mind_bytes=2_000_000)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (ask(prompt="bee " * 5000), "the prompt has 20,000 characters"),
        (ask(manner=Manner(beam=Beam(width=5, depth=20))), "the beam is 5 wide and 20 deep"),
        (Ask(NUMBER, PROMPT, MANNER, bytes(15)), "15 bytes of earlier tokens"),
        (Ask(NUMBER, PROMPT, MANNER, bytes(16 * 13)), "208 bytes of earlier tokens"),
    ],
    ids=["long", "beam", "half a neuron", "more than the limit"],
)
def test_what_is_too_much_is_refused_in_words(play: Play, wrong: Ask, why: str) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        assert why in await refused(peer, wrong)
        assert (len(peer), peers.asked) == (0, 0)

    play(story)


def test_a_prompts_own_fault_is_told(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        for prompt, why in ((" ", "is empty"), ("", "is empty"), ("\x00", "not text")):
            found = await told(peer, ask(prompt=prompt))
            assert why in found.fault
            assert (found.tokens, found.stopped) == ([], None)

    play(story)


def test_words_that_were_never_learned_are_not_gone_on_from(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        assert "never learned" in await refused(peer, Ask(NUMBER, PROMPT, MANNER, b"x" * 16))

    play(story)


def test_rows_that_cannot_be_had_are_a_refusal_and_asking_again_begins_anew(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        peers.error = Unreachable("no peer returned the rows of shard 7")
        assert "shard 7" in await refused(peer, ask())
        peers.error = None
        assert (await told(peer, ask())).tokens
        assert peer.begun == 2

    play(story)


def test_an_error_that_nobody_planned_for_ends_one_prompt_alone(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        loop = asyncio.get_running_loop()
        complaints: list[object] = []
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        peers.error = ZeroDivisionError("secret")
        reason = await refused(peer, ask())
        assert reason == "this peer failed to answer (ZeroDivisionError); ask another peer"
        peers.error = None
        assert (await told(peer, ask())).tokens
        assert complaints
        assert "a prompt failed with an unexpected error" in caplog.text

    play(story)


def test_at_the_end_who_waits_is_told_and_nobody_is_let_in(play: Play) -> None:
    async def story(peer: Prompting, peers: Peers) -> None:
        peers.takes = 100
        waits = asyncio.ensure_future(peer.answer(ME, ask()))
        await asyncio.sleep(0.1)
        await peer.close()
        assert isinstance(await waits, Refusal | Continued)
        assert "is ending" in await refused(peer, ask())

    play(story)


@pytest.mark.parametrize("manner", [MANNER, Manner(max_tokens=5, beam=Beam())], ids=["", "beam"])
def test_large_rows_are_a_threads_work(
    play: Play, manner: Manner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thinking, "_LARGE", 0)
    whole = play.whole(manner=manner)

    async def story(peer: Prompting, peers: Peers) -> None:
        tokens = list[Token]()
        stopped = None
        while stopped is None:
            found = await told(peer, ask(tokens, manner=manner))
            tokens += found.tokens
            stopped = found.stopped
        assert tokens == whole

    play(story)


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="idle must be more than 0"):
        PromptOptions(idle=0)
    assert issubclass(thinking.TooLarge, GiaannError)
