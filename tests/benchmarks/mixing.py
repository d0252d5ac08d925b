"""How fast `mix` chooses tokens in one process on one core, which ones, and how fast it answers.

    python -m tests.benchmarks.mixing DIRECTORY TEXT [--choices 1500] [--repeat 5]

DIRECTORY has a brain of the profile subwords (`giaann solo train`). The choices are spread over the
TEXT; a token's column is known once its noun was read. The first round makes counts and logarithms
of the rows, and the later ones find them; the best of these counts. Then prompts from all over the
text are answered twice; that is with the parse and with reading rows from the brain, most of which
it still has the second time. Rates are per second of processor time. The digest of the tokens is
the same for the same brain and text, on every machine.
"""

import argparse
import hashlib
import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from giaann_p2p.model.rows import run
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.evidence import CountedRows, Evidence, Place, needed
from giaann_p2p.model.subwords.mix import TokenChoice, mix
from giaann_p2p.model.subwords.parse import TextParser
from giaann_p2p.model.subwords.sequence import TokenSequences
from giaann_p2p.model.subwords.spec import DISTANCES
from giaann_p2p.model.subwords.texts import document_texts
from giaann_p2p.solo.brain import Brain

_EACH = 50
"""So many choices of a text of three sentences, at most."""
_PROMPTS, _WORDS, _ANSWER = 40, 9, 40
"""So many prompts, each of so many words; and the most tokens of an answer."""


def main() -> None:
    """Print the rates, and a digest of the tokens chosen."""
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks.mixing")
    options.add_argument("directory", type=Path, help="of a brain of subwords")
    options.add_argument("text", type=Path, help="a UTF-8 text")
    options.add_argument("--choices", type=int, default=1500)
    options.add_argument("--repeat", type=int, default=5, help="rounds, the best taken")
    given = options.parse_args()
    with Brain.open(given.directory, readonly=True) as brain:
        brain.generate("Load", max_tokens=1)  # the pipeline, and the tables that all choices use
        evidence = Evidence(CountedRows(brain.spec, 1 << 40))
        asked = list(_asked(given.text, brain.spec, given.choices))
        rows = dict.fromkeys(neuron for last in asked for neuron in needed(evidence, last))
        run(evidence.need(list(rows)), brain.store)
        print(f"{brain!r}: {len(asked):,} choices from {evidence!r}")
        seconds, chosen = _timed(evidence, asked)
        best = min(_timed(evidence, asked)[0] for _ in range(given.repeat))
        answers = [_answered(brain, given.text) for _ in range(2)]
    print(f"first round: {len(asked) / seconds:,.0f} tokens/s, then {len(asked) / best:,.0f}")
    print(f"answers: {answers[0]:,.0f} tokens/s, then {answers[1]:,.0f}")
    print(f"mean candidates: {sum(one.candidates for one in chosen) / len(chosen):,.0f}")
    tokens = repr([(one.token, one.candidates, one.basis.value) for one in chosen])
    print(f"digest: {hashlib.blake2b(tokens.encode(), digest_size=16).hexdigest()}")


def _timed(evidence: Evidence, asked: list[list[Place]]) -> tuple[float, list[TokenChoice]]:
    started = time.process_time()
    chosen = [mix(evidence, last) for last in asked]
    return time.process_time() - started, [choice for choice in chosen if choice]


def _answered(brain: Brain, text: Path) -> float:
    """Answer the prompts; return how many tokens a second that made."""
    texts = [one.text for one in document_texts([text.read_bytes()], text.name, brain.spec)]
    prompts = [" ".join(one.split()[:_WORDS]) for one in texts[:: max(1, len(texts) // _PROMPTS)]]
    started = time.process_time()
    said = sum(len(brain.generate(one, max_tokens=_ANSWER).tokens) for one in prompts)
    return said / (time.process_time() - started)


def _asked(text: Path, spec: ModelSpec, choices: int) -> Iterator[list[Place]]:
    """Yield the tokens read last, the nearest first, before each choice."""
    texts = list(document_texts([text.read_bytes()], text.name, spec))
    step = max(1, len(texts) * _EACH // choices)
    (parsed,) = TextParser(spec).parse([texts[::step]])
    yield from islice((last for one in parsed.sequences for last in _before(one, spec)), choices)


def _before(sequence: TokenSequences, spec: ModelSpec) -> Iterator[list[Place]]:
    fields = (sequence.token, sequence.home, sequence.prime)
    places = list(map(Place, *(field.tolist() for field in fields)))
    named_at = sequence.named_at.tolist()
    for at in range(spec.seed_tokens, min(spec.seed_tokens + _EACH, len(places))):
        known = zip(places[at - DISTANCES : at], named_at[at - DISTANCES : at], strict=True)
        last = [place if named < at else place._replace(home=None) for place, named in known]
        yield last[::-1]


if __name__ == "__main__":
    main()
