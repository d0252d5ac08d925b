"""What a swarm of the profile "subwords" learns and answers: the same as one machine."""

import asyncio
import struct
from collections.abc import Sequence

import numpy as np
import pytest

from giaann_p2p.client.scoring import scored_over
from giaann_p2p.errors import UsageError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.digest import digest
from giaann_p2p.model.evaluate import Feed
from giaann_p2p.model.ids import word_id
from giaann_p2p.model.manner import Manner, Sampling
from giaann_p2p.model.profile import AnyProfile, Measure
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.rows import Answer, DeltaRows, Name, Neuron, Question, run
from giaann_p2p.model.said import AnyToken, Token
from giaann_p2p.model.spec import CHUNK, ModelSpec
from giaann_p2p.model.subwords.basis import Basis
from giaann_p2p.model.subwords.columns import Delimiter
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.said import Rival, SubwordToken
from giaann_p2p.model.subwords.sequence import TokenSequences
from giaann_p2p.model.subwords.spec import subword_spec
from giaann_p2p.model.tier import Tier
from giaann_p2p.model.traits import traits_of
from giaann_p2p.net import clock
from giaann_p2p.node.reading.prompting import Prompting, PromptOptions
from giaann_p2p.node.reading.row_cache import RowCache
from giaann_p2p.node.reading.thinking import Thinking
from giaann_p2p.node.training.learner import Learner, Task
from giaann_p2p.solo.answer import Answer as OwnAnswer
from giaann_p2p.solo.corpus import opened
from giaann_p2p.store.codec.parcel import decode, encode
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.reading.known_rows import Known
from giaann_p2p.swarm.wire import messages, prompt_messages
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import of_chunk
from giaann_p2p.swarm.wire.prompt_messages import Ask, Cost, Told
from tests.helpers import DATA, no_nouns
from tests.helpers_subwords import RECOMMENDED, sequences_named

ME = Peer(b"M" * 32)
PROMPTS = (DATA / "prompts.txt").read_text().splitlines()[:20]
MANNER = Manner(max_tokens=12)
WIKI = DATA / "wiki.txt"


@pytest.fixture(scope="module")
def rows() -> DeltaRows:
    return DeltaRows(learn_tokens(sequences_named("wiki"), RECOMMENDED))


@pytest.fixture(scope="module")
def profile() -> AnyProfile:
    return profile_of(RECOMMENDED)


class Owners:
    """Whoever has rows."""

    def __init__(self, rows: DeltaRows) -> None:
        self.rows = rows

    async def read(self, neurons: Sequence[Neuron], known: Known) -> Answer:
        await asyncio.sleep(0.001)
        return self.rows.read(Question(neurons))


def alone(rows: DeltaRows, profile: AnyProfile, prompt: str, manner: Manner) -> list[AnyToken]:
    return list(OwnAnswer(prompt, rows, profile, manner).all().tokens)


async def answer(
    peer: Prompting, prompt: str, said: Sequence[AnyToken] = (), manner: Manner = MANNER
) -> Told:
    """Return the answer of a peer, when it is complete, to a prompt that others began to answer."""
    packed = b"".join(struct.pack("<2Q", *token.name.neuron) for token in said)
    found, costs, number = list[AnyToken](), list[Cost](), prompt.encode()[:16].ljust(16)
    while True:
        told = await peer.answer(ME, Ask(number, prompt, manner, packed))
        assert isinstance(told, Told), told
        told = messages.decode(messages.encode(told))
        assert isinstance(told, Told)
        found += told.tokens
        costs += told.costs
        packed += b"".join(struct.pack("<2Q", *token.name.neuron) for token in told.tokens)
        if told.stopped is not None:
            return prompt_messages.continued(
                told.completion, told.unknown, found, told.stopped, costs, told.begun, told.fault
            )


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=1.5, seed=3, repetition_penalty=1.3),
        Sampling(stop=(" the", " pol")),
    ],
)
def test_peers_answer_as_one_machine_does_and_take_over_from_each_other(
    rows: DeltaRows, profile: AnyProfile, sampling: Sampling
) -> None:
    manner = Manner(max_tokens=12, sampling=sampling)

    async def main() -> None:
        peer = Prompting(Owners(rows).read, profile, PromptOptions(), frequent=no_nouns)
        whole = await asyncio.gather(*[answer(peer, prompt, (), manner) for prompt in PROMPTS])
        for prompt, told in zip(PROMPTS, whole, strict=True):
            wanted = alone(rows, profile, prompt, manner)
            assert told.tokens == wanted
            assert len(wanted) == MANNER.max_tokens or told.stopped == "end"
        other = Prompting(Owners(rows).read, profile, PromptOptions(), frequent=no_nouns)
        for prompt, told in zip(PROMPTS, whole, strict=True):
            rest = await answer(other, prompt, told.tokens[:5], manner)
            assert rest.tokens == told.tokens[5:]
        for one in (peer, other):
            await one.close()

    clock.run(main())


def test_what_nobody_can_have_said_is_refused(rows: DeltaRows, profile: AnyProfile) -> None:
    async def main() -> None:
        peer = Prompting(Owners(rows).read, profile, PromptOptions(), frequent=no_nouns)
        said = struct.pack("<2Q", word_id("no token, surely"), 7)
        told = await peer.answer(ME, Ask(b"n" * 16, "I think", MANNER, said))
        assert "is no token" in str(told)
        manner = Manner(timing="exact")
        told = await peer.answer(ME, Ask(b"n" * 16, "I think", manner, b""))
        assert "this model has subwords" in str(told)
        await peer.close()

    clock.run(main())


def test_a_recalled_text_costs_less_than_a_read_a_token(
    rows: DeltaRows, profile: AnyProfile
) -> None:
    async def main() -> None:
        peer = Prompting(Owners(rows).read, profile, PromptOptions(), frequent=no_nouns)
        told = await answer(peer, "The government of the United")
        assert len(told.tokens) == len(told.costs) == MANNER.max_tokens
        assert sum(cost.trips for cost in told.costs) <= len(told.tokens) / 2
        assert sum(cost.trips for cost in told.costs) < len(told.tokens) / 2
        await peer.close()

    clock.run(main())


def test_a_chunk_is_learned_and_cut_as_alone() -> None:
    profile, layout = profile_of(RECOMMENDED), Layout(shards=16, blocks=16)
    chunk = list(profile.texts([WIKI.read_bytes()], "wiki"))[:CHUNK]
    everything = np.arange(16, dtype=np.uint16)
    owned = [everything.tobytes(), everything[:5].tobytes()]
    made = Learner(RECOMMENDED, "cpu").learn(Task([one.text for one in chunk], owned, layout))
    whole = decode(made.whole, of_chunk(RECOMMENDED, CHUNK))
    assert digest(whole) == digest(profile.learn(chunk).delta)
    homes = layout.shards_of(whole.concept, whole.feature)
    part = decode(made.parcels[owned[1]], of_chunk(RECOMMENDED, CHUNK))
    assert digest(part) == digest(whole.only(np.isin(homes, everything[:5])))
    assert made.sequences == len(chunk)


@pytest.mark.parametrize("segments", [0, 4])
def test_the_largest_chunk_is_within_the_limits_for_unpacking_it(segments: int) -> None:
    """All tokens of all texts are distinct, each a delimiter, and every pair is connected."""
    spec = subword_spec(column_segments=segments)
    delta = _largest(spec)
    assert digest(decode(encode(delta), of_chunk(spec, CHUNK))) == digest(delta)


def _largest(spec: ModelSpec) -> Delta:
    size = spec.max_tokens
    token = np.arange(CHUNK * size)
    start = token // size * size
    return learn_tokens(
        TokenSequences(
            starts=np.arange(CHUNK + 1) * size,
            token=token,
            home=start,
            column=np.zeros_like(token),
            named_at=np.zeros_like(token),
            delimiter=np.full(len(token), Delimiter.DETERMINISTIC, np.uint8),
        ),
        spec,
    )


@pytest.mark.parametrize("readout", [None, "lif-test"])
def test_a_swarm_is_evaluated_as_a_brain_is(
    rows: DeltaRows, profile: AnyProfile, readout: str | None
) -> None:
    measure = Measure(seed_tokens=8, feed=Feed.TRUE, readout=readout)
    with opened(DATA / "quick.txt") as corpus:
        evaluation = profile.minds().evaluation(measure)
        steps = evaluation.of(list(profile.texts(corpus.blocks(), "quick"))).steps
        run(steps, rows)

    async def main() -> object:
        cache = RowCache(Owners(rows).read, 1 << 24)
        thinking = Thinking(cache, profile, frequent=no_nouns)
        with opened(DATA / "quick.txt") as corpus:
            score = await scored_over(thinking, corpus, measure)
        await cache.close()
        await thinking.close()
        score.seconds = 0
        return score

    assert asyncio.run(main()) == evaluation.score
    assert evaluation.score.predicted > 200


def test_an_evaluation_asks_for_all_rows_of_a_text_at_once(
    rows: DeltaRows, profile: AnyProfile
) -> None:
    asked: list[Question] = []

    class Noting:
        def read(self, question: Question) -> Answer:
            asked.append(question)
            return rows.read(question)

    evaluation = profile.minds().evaluation(Measure(seed_tokens=8, feed=Feed.TRUE))
    with opened(DATA / "quick.txt") as corpus:
        steps = evaluation.of(list(profile.texts(corpus.blocks(), "quick"))).steps
    run(steps, Noting())
    assert len(asked) == evaluation.score.sentences == 4


def test_answers_of_either_profile_travel() -> None:
    word = Token(" bee", "bee", Name("bee", None), Tier.EXACT, 1.0, 2, 0.5)
    token = SubwordToken("be", "be", Name("b", "e"), Basis.RECALL, 1.0, 2, 0.5)
    told_more = token._replace(rivals=(Rival("be", 0.5), Rival("by", 0.25)))
    for tokens in ([], [word], [token], [told_more]):
        told = prompt_messages.continued("", [], tokens, "end", [], None, "")
        assert messages.decode(messages.encode(told)) == told
        assert list(told.tokens) == tokens


@pytest.mark.parametrize(
    ("spec", "noun", "names"),
    [
        (ModelSpec(), "Civil War", ["civil_war"]),
        (RECOMMENDED, "war", [" war", "war", " War", "War"]),
        (RECOMMENDED, " war", [" war"]),
        (RECOMMENDED, "anarchism", [" anarch", "an", " An", "An"]),
    ],
)
def test_the_names_that_a_column_may_have(spec: ModelSpec, noun: str, names: list[str]) -> None:
    assert traits_of(spec.profile).column_names(noun, spec) == names


@pytest.mark.parametrize(("profile", "most"), [("words", 1), ("subwords", 16)])
def test_only_a_column_of_subwords_is_spread_over_shards(profile: str, most: int) -> None:
    """One of them, that of rows in any column, has half of all connections."""
    layout = Layout(shards=256, blocks=traits_of(profile).blocks)
    shards = {layout.shard_of(word_id("bee"), word_id(f"{at}")) for at in range(1000)}
    assert len(shards) == most


def test_a_client_refuses_options_of_the_other_profile_at_once() -> None:
    with pytest.raises(UsageError, match="this model has subwords"):
        profile_of(RECOMMENDED).minds().continuation("I think", Manner(timing="seq"))
