"""The o200k tokeniser: text to token numbers, and the bytes, text and name of each token.

Tokens are part of the model, so the tokeniser is identified by a digest of its ranks, not by the
name of a package; and its tokens of one test line are checked, because ranks do not determine how
it cuts a text into pieces. A token's neuron is named by the token's text, which store and swarm
hash like any word (see `model.ids`). A token that is only part of a character has no text: its name
is the hexadecimal form of its bytes.
"""

import hashlib
import warnings
from base64 import b64encode
from collections.abc import Sequence
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from giaann_p2p.errors import PipelineError
from giaann_p2p.model.ids import word_id
from giaann_p2p.model.sequence import Ids, Ints

O200K = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""SHA-256 of the rank file: a line for each token, its bytes in base64, a space, and its rank."""
VOCABULARY = 200_019
"""The number of token numbers, including special tokens, which occur in no text."""
TOKENS = 199_998
"""The number of tokens that a text can have; they are numbered from 0."""

_PACKAGE, _RELEASE = "bpe_openai", "bpe-openai==0.1.4"
_LINE = "Hello wörld 2015, it's (very) nice… 東京 😀  two"
_ITS_TOKENS = "13225 286 2877 582 220 667 20 11 4275 350 1437 8 7403 1131 185244 88038 220 1920"
_PARTIAL = "bytes "
_SLOT_BITS = 20
"""Bits of the index of a slot: there are five times as many slots as tokens."""
_SLOT_SHIFT = np.uint64(64 - _SLOT_BITS)


class Tokeniser:
    """The tokeniser; the function `tokeniser` makes one per process."""

    def __init__(self, encoding: Any) -> None:  # noqa: ANN401  (bpe_openai has no types)
        self._encoding = encoding
        self.bytes: list[bytes] = encoding.token_byte_values()[:TOKENS]
        """The bytes of each token."""

    def __repr__(self) -> str:
        return f"<Tokeniser of {len(self.bytes):,} tokens>"

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; names of special tokens are text like any other."""
        found: list[int] = self._encoding.encode_ordinary(text)
        return found

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of some tokens; bytes that form no character become U+FFFD."""
        return b"".join(self.bytes[token] for token in tokens).decode(errors="replace")

    @cached_property
    def texts(self) -> list[str | None]:
        """The text of each token; None if it is not whole characters."""
        return [_text(data) for data in self.bytes]

    @cached_property
    def names(self) -> list[str]:
        """The name of each token's neuron: no two tokens share one."""
        named = zip(self.texts, self.bytes, strict=True)
        return [_PARTIAL + data.hex() if text is None else text for text, data in named]

    @cached_property
    def ids(self) -> Ids:
        """The number of each token's name as a concept or feature, of shape [TOKENS]."""
        number = word_id.__wrapped__  # without its cache, which 200,000 names would fill
        return np.array([number(name) for name in self.names], np.uint64)

    def tokens_of(self, ids: Ids) -> Ints:
        """Return the token of each concept or feature; -1 for others, such as PRIME."""
        slots = self._slots
        token = slots.take((ids >> _SLOT_SHIFT).view(np.int64)).astype(np.int64)
        others = (self.ids.take(token) != ids).nonzero()[0]
        if len(others):
            token[others] = self._searched(ids[others])
        return token

    def _searched(self, ids: Ids) -> Ints:
        known, token = self._by_id
        at = known.searchsorted(ids)
        return np.where(known.take(at, mode="clip") == ids, token.take(at, mode="clip"), -1)

    @cached_property
    def _by_id(self) -> tuple[Ids, Ints]:
        order = np.argsort(self.ids)
        return self.ids[order], order

    @cached_property
    def _slots(self) -> npt.NDArray[np.int32]:
        """For each value of an id's first bits the first token with such an id, or 0; shape [2^20].

        Small tokens are the frequent ones, so few of those looked up have to be searched for, which
        takes longer.
        """
        slots = np.zeros(1 << _SLOT_BITS, np.int32)
        slots[(self.ids[::-1] >> _SLOT_SHIFT).view(np.int64)] = np.arange(TOKENS)[::-1]
        return slots


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def digest_of(tokens: Sequence[bytes]) -> str:
    """Return the SHA-256 of the rank file that lists these tokens."""
    lines = (b"%s %d\n" % (b64encode(data), rank) for rank, data in enumerate(tokens))
    return hashlib.sha256(b"".join(lines)).hexdigest()


@cache
def tokeniser(digest: str = O200K) -> Tokeniser:
    """Return the tokeniser with this digest; PipelineError if it is not installed."""
    found = _loaded()
    if found is None:
        raise PipelineError(
            f"the model needs the tokeniser o200k, which is missing; pip install {_RELEASE}"
        )
    here = digest_of(found.bytes)
    if here != digest or found.encode(_LINE) != list(map(int, _ITS_TOKENS.split())):
        raise PipelineError(
            f"the model needs a tokeniser with the ranks {digest}, but the installed one has {here}"
            f", or cuts texts differently; pip install {_RELEASE}"
        )
    return found


@cache
def _loaded() -> Tokeniser | None:
    """Return the installed tokeniser, whichever it is; None if there is none."""
    with warnings.catch_warnings():  # bpe_openai uses what Python 3.11 deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            module = import_module(_PACKAGE)
        except ModuleNotFoundError as error:
            if error.name != _PACKAGE:
                raise
            return None
        return Tokeniser(module.get_encoding("o200k_base"))
