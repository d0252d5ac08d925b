"""Texts and prompts, and what daemons are told of where they are."""

from giaann_p2p.model.parse import Parsed, Parser, max_chars
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import document_sentences, text_sentences
from giaann_p2p.solo.corpus import opened
from tests.benchmarks.swarm.far import told
from tests.benchmarks.swarm.texts import WIKI, WORDS, again, made_up, noun, prompts

SPEC = ModelSpec()


def test_a_text_is_another_one_each_time_and_says_the_same() -> None:
    digests, said = set(), []
    for number in range(3):
        with opened(again(number)) as corpus:
            digests.add(corpus.digest)
            said.append(
                [
                    one.text
                    for one in document_sentences(corpus.blocks(), corpus.name, max_chars(SPEC))
                ]
            )
    assert len(digests) == 3
    assert said[0] == said[1] == said[2]


def test_prompts_begin_sentences_of_the_text() -> None:
    text = " ".join(WIKI.read_text().split())
    assert len(prompts()) == len(set(prompts())) > 60
    assert all(prompt in text and len(prompt.split()) == WORDS for prompt in prompts())


def test_nouns_differ() -> None:
    found = [noun(number) for number in range(40_000)]
    assert len(set(found)) == len(found)
    assert found[0] == "bament"
    assert all(word.isalpha() and word.islower() for word in found)


def test_what_is_made_up_is_the_same_each_time_and_parsed_as_what_was_written() -> None:
    text = made_up(150, 3)
    assert text == made_up(150, 3) != made_up(150, 4)
    assert len(text.splitlines()) == 150
    new, old = parsed(text), parsed(WIKI.read_text())
    assert len(new.sequences) > 140
    assert 0.8 < tokens_a_concept(new) / tokens_a_concept(old) < 1.25
    concepts = set(new.sequences.concept.tolist())
    assert len(concepts) > 300
    assert len(concepts & set(old.sequences.concept.tolist())) < len(concepts) / 3


def parsed(text: str) -> Parsed:
    (found,) = Parser(SPEC).parse([list(text_sentences(text, max_chars(SPEC)))])
    return found


def tokens_a_concept(found: Parsed) -> float:
    return len(found.sequences.concept) / int((found.sequences.feature == 0).sum())


def test_a_daemon_listens_at_one_port_and_says_that_it_is_at_another() -> None:
    before = ["--data-dir", "x", "--listen", "/ip4/127.0.0.1/tcp/0", "--join", "y"]
    assert told(before, 4100, 4200) == [
        *("--data-dir", "x", "--listen", "/ip4/127.0.0.1/tcp/4100", "--join", "y"),
        *("--announce", "/ip4/127.0.0.1/tcp/4200"),
    ]
