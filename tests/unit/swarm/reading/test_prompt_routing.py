"""Who is asked to go on from a prompt: whatever fails, the tokens are the same."""

import random
import struct
from collections.abc import Mapping
from math import inf

import pytest

from giaann_p2p.model.manner import Manner
from giaann_p2p.model.rows import Name
from giaann_p2p.model.said import Token
from giaann_p2p.model.tier import Tier
from giaann_p2p.swarm.reading.prompt_routing import (
    Failed,
    Failure,
    News,
    Over,
    PromptAction,
    PromptRouting,
)
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal
from giaann_p2p.swarm.wire.prompt_messages import Ask, Continued, Cost
from giaann_p2p.swarm.wire.training_messages import BeatAck

NUMBER = b"a prompt's no. 1"
A, B, C = (Peer(letter * 32) for letter in (b"A", b"B", b"C"))
MANNER = Manner(max_tokens=50)
WORDS = [Token(f" w{n}", f"w{n}", Name("bee", f"w{n}"), Tier.EXACT, 1.0, 1, 1.0) for n in range(20)]


class Around:
    """Compute peers, as a test says."""

    def __init__(self, *peers: Peer, **loads: int) -> None:
        self.there: dict[Peer, int] = dict.fromkeys(peers, 0)

    def loads(self, now: float) -> Mapping[Peer, int]:
        return self.there


def asking(around: Around, manner: Manner = MANNER, number: bytes = NUMBER) -> PromptRouting:
    return PromptRouting(number, "Bees", manner, around)


def said(tokens: list[Token]) -> bytes:
    return b"".join(struct.pack("<2Q", *token.name.neuron) for token in tokens)


def told(ask: Message, count: int, words: list[Token] = WORDS) -> Continued:
    """Return what an honest peer says: so many tokens more, and the end with the last."""
    assert isinstance(ask, Ask)
    at = len(ask.said) // 16
    assert ask.said == said(words[:at])
    tokens = words[at : at + count]
    stopped = "end" if at + len(tokens) == len(words) else None
    return Continued(" civil", ["zorp"], tokens, stopped, [Cost(1)] * len(tokens), Cost(2))


def call(acts: list[PromptAction]) -> Call:
    (found,) = [act for act in acts if isinstance(act, Call)]
    return found


def test_an_answer_comes_in_pieces_from_one_peer() -> None:
    one = asking(Around(A, B, C))
    acts = one.begin(0.0)
    peer, tokens = call(acts).peer, list[Token]()
    for number in range(100):
        asked = call(acts)
        assert asked.peer == peer
        assert asked.timeout == 1.0
        acts = one.answered(asked.number, told(asked.message, 3 if number % 2 else 0), number / 9)
        tokens += [token for act in acts if isinstance(act, News) for token in act.tokens]
        if Over("end") in acts:
            break
    assert tokens == WORDS
    assert (one.completion, one.unknown, one.begun) == (" civil", ["zorp"], Cost(2))
    assert one.peers == [peer]
    assert one.next_tick == inf
    assert one.tick(1e9) == one.answered(asked.number, Refusal("late"), 1e9) == []
    assert repr(one) == "<PromptRouting: 20 tokens, 1 peers asked>"


def test_the_least_busy_is_asked_and_of_equals_each_now_and_then() -> None:
    around = Around(A, B, C)
    around.there[A] = 100
    first = [call(asking(around, number=bytes([n] * 16)).begin(0)).peer for n in range(60)]
    assert A not in first
    assert 10 < first.count(B) < 50
    again = [call(asking(around, number=bytes([n] * 16)).begin(0)).peer for n in range(60)]
    assert again == first


def test_who_is_silent_is_left_at_once_and_the_next_gets_all_that_was_said() -> None:
    one = asking(Around(A, B))
    asked = call(one.begin(0.0))
    asked = call(one.answered(asked.number, told(asked.message, 5), 0.1))
    other = call(one.answered(asked.number, None, 1.1))
    assert other.peer != asked.peer
    assert isinstance(other.message, Ask)
    assert other.message.said == said(WORDS[:5])
    assert one.answered(asked.number, told(asked.message, 3), 1.2) == []  # too late: twice said


def test_a_single_peer_is_asked_again_after_a_pause_and_shunned_longer_each_time() -> None:
    one = asking(Around(A))
    asked = call(one.begin(0.0))
    assert one.answered(asked.number, None, 1.0) == []
    assert one.next_tick == 1.5
    assert one.tick(1.4) == []
    assert call(one.tick(1.5)).peer == A


def test_a_shunned_peer_is_preferred_again_once_its_time_is_over() -> None:
    around = Around(A, B)
    one = asking(around)
    first = call(one.begin(0.0))
    second = call(one.answered(first.number, None, 1.0))
    assert {first.peer, second.peer} == {A, B}
    around.there[second.peer] = 1000  # is busy by now, but the only one that is not shunned
    third = call(one.answered(second.number, told(second.message, 1), 1.1))
    assert third.peer == second.peer
    fourth = call(one.answered(third.number, None, 3.5))
    assert fourth.peer == first.peer


def test_busy_peers_are_asked_until_the_patience_ends() -> None:
    one, now = asking(Around(A, B)), 0.0
    acts, refusals = one.begin(now), 0
    while not any(isinstance(act, Failed) for act in acts):
        for act in acts:
            assert isinstance(act, Call)
        if acts:
            refusals += 1
            acts = one.answered(call(acts).number, Refusal("busy: later"), now)
        else:
            now = max(now, one.next_tick)
            acts = one.tick(now)
        assert now < 60
    assert acts == [Failed(Failure.IN_VAIN, "busy: later")]
    assert now > 45
    assert 80 < refusals < 200


def test_when_all_refuse_twice_it_ends() -> None:
    one, now, refusals = asking(Around(A, B)), 0.0, 0
    acts = one.begin(now)
    while not acts or isinstance(acts[0], Call):
        if acts:
            refusals += 1
            acts = one.answered(call(acts).number, Refusal("the beam is too large"), now)
        else:
            now = one.next_tick
            acts = one.tick(now)
    assert acts == [Failed(Failure.IN_VAIN, "the beam is too large")]
    assert refusals >= 4
    assert now < 10


def test_who_goes_away_is_left_and_nobody_is_waited_for() -> None:
    around = Around(A)
    one = asking(around)
    asked = call(one.begin(0.0))
    around.there = {}
    acts = one.answered(asked.number, told(asked.message, 2), 0.2)
    assert [type(act) for act in acts] == [News]
    assert one.next_tick == 0.7
    assert one.tick(0.7) == []
    around.there = {B: 0}
    assert call(one.tick(1.2)).peer == B


def test_nobody_computes() -> None:
    acts = asking(Around()).begin(0.0)
    assert acts == [Failed(Failure.NOBODY, "there is no compute peer")]


def test_the_prompts_own_fault_ends_it() -> None:
    one = asking(Around(A, B))
    asked = call(one.begin(0.0))
    acts = one.answered(asked.number, Continued("", [], [], None, fault="it names no concept"), 0.1)
    assert acts == [Failed(Failure.PROMPT, "it names no concept")]


def test_who_says_nothing_new_for_long_is_left() -> None:
    one, now = asking(Around(A, B)), 0.0
    asked = call(one.begin(now))
    first = asked.peer
    while asked.peer == first:
        now += 0.3
        asked = call(one.answered(asked.number, Continued("", [], [], None), now))
        assert now < 20
    assert now > 16


@pytest.mark.parametrize(
    "wrong",
    [
        BeatAck([]),
        Continued("", [], WORDS * 3, None, [Cost()] * 60, Cost()),
        Continued("", [], WORDS[:2], None, [Cost()], Cost()),
        Continued("", [], WORDS[:1], None, [Cost()]),
        Continued("", [], [], "end"),
    ],
    ids=["something else", "too many tokens", "too few costs", "not begun", "an end without begin"],
)
def test_who_makes_no_sense_is_left(wrong: Message) -> None:
    one = asking(Around(A, B))
    asked = call(one.begin(0.0))
    other = call(one.answered(asked.number, wrong, 0.1))
    assert other.peer != asked.peer
    assert isinstance(other.message, Ask)
    assert other.message.said == b""


@pytest.mark.parametrize("seed", range(200))
def test_whatever_fails_the_tokens_are_the_same(seed: int) -> None:
    chance = random.Random(seed)
    words = WORDS[: chance.randrange(len(WORDS) + 1)]
    around = Around(A, B, C)
    one, now = asking(around, number=chance.randbytes(16)), 0.0
    acts, tokens = one.begin(now), list[Token]()
    costs = list[Cost]()
    for _ in range(10_000):
        for act in acts:
            if isinstance(act, News):
                tokens += act.tokens
                costs += act.costs
        if Over("end") in acts:
            break
        assert not any(isinstance(act, Failed) for act in acts), acts
        asked = next((act for act in acts if isinstance(act, Call)), None)
        if chance.random() < 0.1:
            around.there = {
                peer: chance.randrange(9) for peer in (A, B, C) if chance.random() < 0.8
            }
        if asked is None:
            now = one.next_tick
            acts = one.tick(now)
            continue
        now += chance.random() / 3
        happens = chance.random()
        answer: Message | None = told(asked.message, chance.randrange(4), words)
        if happens < 0.15:
            answer, now = None, now + 1.0
        elif happens < 0.25:
            answer = Refusal("busy: too much")
        elif happens < 0.3:
            answer = BeatAck([])
        acts = one.answered(asked.number, answer, now)
    assert tokens == words
    assert len(costs) == len(words)


def test_refusals_count_only_since_there_was_something_new() -> None:
    one, now = asking(Around(A)), 0.0
    acts = one.begin(now)
    for _ in range(5):
        acts = one.answered(call(acts).number, Refusal("it failed here"), now)
        now = one.next_tick
        asked = call(one.tick(now))
        acts = one.answered(asked.number, told(asked.message, 1), now)
    assert call(acts).peer == A


def test_who_is_silent_again_is_shunned_for_twice_as_long() -> None:
    around = Around(A)
    one = asking(around)
    assert one.answered(call(one.begin(0.0)).number, None, 1.0) == []  # shunned until 3
    again = call(one.tick(1.5))
    assert one.answered(again.number, None, 2.5) == []  # until 6.5
    around.there = {A: 0, C: 1 << 20}
    assert call(one.tick(5.0)).peer == C
