"""The first word of an answer where activation leads to none: who speaks, and how sure it is."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

from giaann_p2p.errors import PromptError
from giaann_p2p.model.activation import Batch
from giaann_p2p.model.answer import Continuation
from giaann_p2p.model.back_off import Guess, guessed
from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.learn import learn
from giaann_p2p.model.manner import Beam, Manner
from giaann_p2p.model.parse import Parser
from giaann_p2p.model.rows import DeltaRows, Name, Neuron, Question, Row, Rows, noun_rows, run
from giaann_p2p.model.said import Token
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import text_sentences
from giaann_p2p.model.tier import Tier
from tests.benchmarks.model import store_of
from tests.helpers import DATA, SMALL, built, row_of

LEARNED = ["the/ bee/N flies/ to/ old/ hill/N ./", "a/ bee/N flies/ to/ new/ sea/N ./"]
ROWS = DeltaRows(learn(built(*LEARNED, "a/ bee/N flies/ to/ new/ sky/N ./"), SMALL))
BEE = Name("bee", None)
PROMPTS = (DATA / "prompts.txt").read_text().splitlines()


def guess(own: Sequence[Name], *words: str, rows: Rows = ROWS) -> Guess:
    return run(guessed([row_of(rows, name) for name in own], words, SMALL), rows)


def test_the_own_column_speaks_first_and_says_how_sure_it_is() -> None:
    flies = Name("bee", "flies")
    assert guess([BEE], "bee") == Guess(flies.neuron, Tier.OWN, 1, 1.0)
    found = guess([Name("bee", "to")], "to")
    assert found.probability == 2 / 3  # new, not old; by its stronger neuron
    assert (found.tier, found.candidates) == (Tier.OWN, 2)
    assert found.neuron in {Name("sea", "new").neuron, Name("sky", "new").neuron}
    assert found.neuron == min(Name("sea", "new").neuron, Name("sky", "new").neuron)


def test_a_word_that_was_never_learned_leaves_it_to_the_one_before() -> None:
    to = Name("bee", "to").neuron
    assert guess([Name("bee", "zorp"), BEE], "zorp", "bee") == Guess(to, Tier.OWN, 1, 1.0)


def test_without_a_column_the_most_frequent_ones_speak() -> None:
    found = guess([], "to")
    assert (found.tier, found.candidates, found.probability) == (Tier.ANY, 2, 2 / 3)
    assert guess([], "hill") == Guess(Name("hill", ".").neuron, Tier.ANY, 1, 1.0)  # as a noun
    # The nearest word speaks first: in any column, before the one before it in its own.
    assert guess([Name("zorp", "flies"), BEE], "flies", "bee").tier is Tier.ANY


def test_where_nothing_ever_followed_the_most_frequent_noun_speaks() -> None:
    assert guess([], "zorp", "zap") == Guess(BEE.neuron, Tier.FREQUENT, 4, 3 / 6)
    assert guess([]).neuron == BEE.neuron


def test_nothing_learned_at_all_is_an_error() -> None:
    with pytest.raises(PromptError, match="nothing was learned yet"):
        guess([BEE], "bee", rows=DeltaRows(EMPTY))


def test_a_word_that_nobody_sees_is_not_said() -> None:
    sequences = built("the/ bee/N flies/ far/", *["the/ bee/N flies/ off/"] * 2)
    sequences.feature[sequences.feature == word_id("off")] = word_id("  ")
    rows = DeltaRows(learn(sequences, SMALL))
    found = guess([Name("bee", "flies")], "flies", rows=rows)
    assert found == Guess(Name("bee", "far").neuron, Tier.OWN, 1, 1.0)


def test_equally_frequent_nouns_are_in_the_order_of_their_names() -> None:
    rows = noun_rows([("bee", 2), ("sea", 3), ("ant", 2), ("cat", 1)], 3)
    assert [(row.name.word, row.count) for row in rows if row] == [
        ("sea", 3),
        ("ant", 2),
        ("bee", 2),
    ]


def test_all_holders_of_rows_name_the_same_nouns(wiki_delta: Delta, spec: ModelSpec) -> None:
    question = Question((), frequent=20)
    found = DeltaRows(wiki_delta).read(question)
    assert [row.name.word for row in found if row][:2] == ["anarchism", "anarchist"]
    there = store_of(wiki_delta, spec).read(question)
    assert [_noun(row) for row in there] == [_noun(row) for row in found]


def _noun(row: Row | None) -> tuple[Neuron, Name, int]:
    assert row is not None
    assert not len(row.target)
    return row.neuron, row.name, row.count


class Plain:
    """The same choice from dictionaries, of what a text taught."""

    def __init__(self, delta: Delta, spec: ModelSpec) -> None:
        self.spec = spec
        neurons = [
            Neuron(*one) for one in zip(delta.concept.tolist(), delta.feature.tolist(), strict=True)
        ]
        self.followers = defaultdict[tuple[Neuron, int], Counter[Neuron]](Counter)
        fields = delta.source, delta.target, delta.segment, delta.strength
        for source, target, segment, units in zip(*(one.tolist() for one in fields), strict=True):
            self.followers[neurons[source], segment][neurons[target]] += units
        counted = zip(neurons, delta.count.tolist(), strict=True)
        self.nouns = Counter(
            {one: count for one, count in counted if one.feature == PRIME and count}
        )
        self.names = delta.names

    def guess(self, own: Sequence[Neuron], words: Sequence[str]) -> tuple[Neuron, Tier]:
        by_name = sorted(self.nouns, key=lambda one: (-self.nouns[one], self.names[one.concept]))
        for at in range(4):
            segment = self.spec.segments - 1 - at
            if at < len(own) and (best := self._best([own[at]], segment)):
                return best, Tier.OWN
            if at < len(words):
                feature = word_id(words[at])
                any_ = [Neuron(noun.concept, feature) for noun in by_name[:16]]
                if best := self._best([*any_, Neuron(feature, PRIME)], segment):
                    return best, Tier.ANY
        return by_name[0], Tier.FREQUENT

    def _best(self, sources: Sequence[Neuron], segment: int) -> Neuron | None:
        found = sum((self.followers[one, segment] for one in set(sources)), Counter[Neuron]())
        words = Counter[int]()
        for one, units in found.items():
            words[one.feature or one.concept] += units
        order = sorted(words, key=lambda word: (-words[word], word))
        named = [one for one in found if order[0] == (one.feature or one.concept)]
        return min(named, key=lambda one: (-found[one], one), default=None)


def test_counts_choose_as_plain_dictionaries_do(
    wiki_delta: Delta, parser: Parser, spec: ModelSpec
) -> None:
    rows, plain = DeltaRows(wiki_delta), Plain(wiki_delta, spec)
    tiers = Counter[Tier]()
    for prompt in PROMPTS:
        (sentence,) = parser.parse_prompt(list(text_sentences(prompt, 10_000)))[-1:]
        words = [word.text for word, _ in sentence.words][::-1][:4]
        names = [name for _, name in sentence.words if name][::-1][:4]
        own = [row_of(rows, name) for name in names]
        found = run(guessed(own, words, spec), rows)
        assert (found.neuron, found.tier) == plain.guess([name.neuron for name in names], words)
        tiers[found.tier] += 1
    assert len(tiers) == 3, tiers


@pytest.fixture(scope="module")
def teller(parser: Parser, spec: ModelSpec) -> "Teller":
    return Teller(parser, spec)


class Teller:
    """Asks rows for answers."""

    def __init__(self, parser: Parser, spec: ModelSpec) -> None:
        self._parser, self._batch = parser, Batch(spec)

    def __call__(
        self, prompt: str, rows: Rows, manner: Manner, said: Sequence[Neuron] = ()
    ) -> tuple[str, list[Token]]:
        going = Continuation(prompt, self._batch, manner)
        run(
            going.begin(self._parser.parse_prompt(list(text_sentences(prompt, 10_000))), said), rows
        )
        tokens = list(iter(lambda: run(going.next(), rows), None))
        going.close()
        return going.completion + "".join(token.text for token in tokens), tokens


def test_all_ordinary_prompts_are_answered(wiki_delta: Delta, teller: Teller) -> None:
    assert len(PROMPTS) == 200
    rows, spoke = DeltaRows(wiki_delta), Counter[Tier]()
    for prompt in PROMPTS:
        text, tokens = teller(prompt, rows, Manner(max_tokens=2))
        assert text.strip(), prompt
        assert all(0 < token.probability <= 1 for token in tokens)
        assert not any(token.timing in GUESSES for token in tokens[1:])  # then it may end
        spoke.update(token.timing for token in tokens[:1])
    assert spoke.keys() >= GUESSES
    assert sum(spoke[tier] for tier in GUESSES) > 150


@pytest.mark.parametrize(
    "manner",
    [Manner(max_tokens=8), Manner(max_tokens=3, timing="exact"), Manner(max_tokens=2, beam=Beam())],
    ids=["auto", "exact", "beam"],
)
def test_a_guess_is_the_same_elsewhere_and_any_peer_can_go_on_from_it(
    wiki_delta: Delta, teller: Teller, spec: ModelSpec, manner: Manner
) -> None:
    store, rows = store_of(wiki_delta, spec), DeltaRows(wiki_delta)
    guesses = 0
    for prompt in PROMPTS[:8]:
        text, tokens = teller(prompt, rows, manner)
        assert teller(prompt, store, manner) == (text, tokens)
        assert teller(prompt, rows, manner, [tokens[0].name.neuron])[1] == tokens[1:]
        guesses += tokens[0].timing in GUESSES
    assert guesses > 4


GUESSES = {Tier.OWN, Tier.ANY, Tier.FREQUENT}
