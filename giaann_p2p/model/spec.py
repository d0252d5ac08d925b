"""The frozen parameters that all peers of a swarm share, and their digest.

Two brains may be added together, and a peer may compute for a swarm, exactly when their digests
are equal. The digest covers everything that changes what is learned from a text.
"""

import hashlib

import msgspec

from giaann_p2p.errors import SpecError

UNIT_BITS = 16
"""A strength is a whole number of 2^-16."""

UNITS = 1 << UNIT_BITS

CHUNK = 64
"""Sentences in a chunk, the unit of learning."""

# The official en_core_web_sm 3.8.0 (see `english.digest_of`) and this package's word lists (see
# `lexicon.digest`). A test holds both to what is installed.
EN_CORE_WEB_SM_3_8_0 = "8c858368ae3dc9879671de1b3d4f1d16"
LEXICON_1 = "5619d54d82aa4ae7d437d3a2e5a15a7a"


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a model; hashable, comparable, and equal exactly when the models are.

    Give 0 (the default) for the segments to have them follow from `seed_tokens`.
    """

    rules: int = 1
    """Version of the learning rules themselves."""
    seed_tokens: int = 12
    """S: sizes the segments; the shortest trainable sentence has S + 1 tokens."""
    column_segments: int = 0
    """CS: segments by column distance (0 the farthest kept, CS - 1 the same column); S // 4 + 1."""
    feature_segments: int = 0
    """FS: segments by token distance (the last: the adjacent token); ceil(S / 2) + 1."""
    branches: int = 2
    """B: the n-th repeat of a neuron in one sequence uses branch min(n, B - 1)."""
    max_tokens: int = 80
    """Longer sentences are skipped and counted."""
    pipeline: str = EN_CORE_WEB_SM_3_8_0
    """Digest of the English pipeline that parses the text."""
    lexicon: str = LEXICON_1
    """Digest of the word lists that tell delimiters."""

    def __post_init__(self) -> None:
        if not self.column_segments:
            msgspec.structs.force_setattr(self, "column_segments", self.seed_tokens // 4 + 1)
        if not self.feature_segments:
            msgspec.structs.force_setattr(self, "feature_segments", (self.seed_tokens + 1) // 2 + 1)
        self._validate()

    @property
    def segments(self) -> int:
        """All segments of a branch: column segments first, then feature segments."""
        return self.column_segments + self.feature_segments

    @property
    def digest(self) -> str:
        """64 hex digits that are equal exactly for equal specs."""
        return hashlib.blake2b(b"giaann spec\0" + self.to_bytes(), digest_size=32).hexdigest()

    def to_bytes(self) -> bytes:
        """Return the one canonical encoding: JSON with sorted keys."""
        return msgspec.json.encode(self, order="sorted")

    def differences(self, other: "ModelSpec") -> list[str]:
        """Name each field that differs, with both values, for an error message."""
        return [
            f"{name}: {getattr(self, name)} and {getattr(other, name)}"
            for name in self.__struct_fields__
            if getattr(self, name) != getattr(other, name)
        ]

    def _validate(self) -> None:
        rules = {
            "rules must be 1": self.rules == 1,
            "seed_tokens must be 1 to 1000": 1 <= self.seed_tokens <= 1000,
            "column_segments must be 1 to 100": 1 <= self.column_segments <= 100,
            "feature_segments must be 2 to 100": 2 <= self.feature_segments <= 100,
            "branches must be 1 to 100": 1 <= self.branches <= 100,
            "max_tokens must be more than seed_tokens and at most 1000": (
                self.seed_tokens < self.max_tokens <= 1000
            ),
        }
        for rule, kept in rules.items():
            if not kept:
                raise SpecError(f"{rule}; it is {getattr(self, rule.split()[0])}")
