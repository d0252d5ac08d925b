"""A bootstrap peer's options."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal, Self

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.model.spec import CHUNK, MOST_CHUNK, MOST_COLUMN_SEGMENTS
from giaann_p2p.model.usual import check_column_segments
from giaann_p2p.store.cut_choice import check_choice
from giaann_p2p.store.disk.small_file import is_there
from giaann_p2p.swarm.wire.manifest import MOST_REDUNDANCY, MOST_REPLICAS
from peers.options import Options, flag, told

SHAPING = (
    "shards",
    "replicas",
    "quorum",
    "redundancy",
    "blocks",
    "chunk",
    "cut",
    "cut_like",
    "profile",
    "column_segments",
    "open",
)
"""The options that shape a new swarm; they have no effect on one that exists."""


class BootstrapOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bootstrap peer's options. Those that shape a new swarm cannot be changed afterwards."""

    summary = "Found a swarm, print its join link, and introduce its peers."

    new: Annotated[
        str,
        told(
            "Found a swarm with this name; if this folder has founded it before, serve it again.",
            "NAME",
        ),
    ] = ""
    join: Annotated[
        str,
        told("Serve as one more bootstrap peer of the swarm with this link or saved name.", "LINK"),
    ] = ""
    shards: Annotated[
        int,
        told(
            "Parts that the columns are divided into; a power of two. More shards spread more "
            "evenly over more peers, and each costs a little.",
            ge=1,
        ),
    ] = 256
    replicas: Annotated[int, told("Peers that hold each shard.", ge=1, le=MOST_REPLICAS)] = 3
    quorum: Annotated[
        int,
        told(
            "Replicas that must have an update on disk before it counts; 0 for a majority.",
            ge=0,
            le=MOST_REPLICAS,
        ),
    ] = 0
    blocks: Annotated[
        int,
        told(
            "Parts that each column is divided into; a power of two. Needed if a column is "
            "larger than a peer. 0: 1, and 16 with subwords, whose largest column holds half of "
            "all connections.",
            ge=0,
        ),
    ] = 0
    cut: Annotated[
        str,
        told(
            "Columns that are divided by the words they lead to, and into how many parts, such as "
            "day=16,sea=4. For columns whose longest row is large beside a shard; such a row is "
            "read with a request for each peer that has a part.",
            "WORD=PARTS,...",
        ),
    ] = ""
    cut_like: Annotated[
        str,
        told(
            "Choose the columns to divide in this way by a text like those that will be learned; "
            "16,384 of its sentences are learned for that.",
            "FILE",
        ),
    ] = ""
    chunk: Annotated[
        int,
        told(
            "Sentences, or texts with subwords, that are learned and sent together. Larger chunks "
            "cost large swarms less; smaller ones spread a short text over more compute peers.",
            ge=CHUNK,
            le=MOST_CHUNK,
        ),
    ] = CHUNK
    profile: Annotated[
        Literal["words", "subwords"], told("How the swarm's model reads: words, or subwords.")
    ] = "subwords"
    column_segments: Annotated[
        int,
        told(
            "Also learn connections by distance in columns, of this many distances; with subwords "
            "only. The public reference has 4. Prompts do not use them, and they take more memory "
            "than all else.",
            ge=0,
            le=MOST_COLUMN_SEGMENTS,
        ),
    ] = 0
    redundancy: Annotated[
        int,
        told(
            "Compute peers that must learn a chunk independently, with the same result, "
            "before it counts.",
            ge=1,
            le=MOST_REDUNDANCY,
        ),
    ] = 1
    reshard: Annotated[
        Literal["off", "auto"],
        told(
            "auto: double the shards and enlarge the chunks as the swarm grows, with the founder's "
            "key in this folder. Nobody can take that back."
        ),
    ] = "off"
    open: Annotated[
        bool,
        told(
            "Serve every peer that has the join link. Without it the new swarm serves only members "
            "with a token from its founder (giaann token issue)."
        ),
    ] = False
    given: frozenset[str] = frozenset()
    """The names of the options that were given, on the command line or in the file."""

    def __post_init__(self) -> None:
        if self.new and self.join:
            raise UsageError("give --new to found a swarm, or --join to serve one, not both")
        if self.join and self.reshard == "auto":
            raise UsageError(
                "--reshard auto is for the peer that founded the swarm, which has the founder's "
                "key; it cannot be given with --join"
            )
        check_choice(self.cut, self.cut_like)
        if self.join and (shaping := [flag(name) for name in SHAPING if name in self.given]):
            raise UsageError(
                f"with --join, the swarm exists already: {', '.join(shaping)} can only be given "
                "for a new swarm"
            )
        check_column_segments(self.profile, self.column_segments or None)
        self.watch  # noqa: B018  (raises UsageError for values that cannot be used)

    def knowing(self, given: Collection[str]) -> Self:
        """Return the options, with the names of those that were given.

        UsageError if one of them shapes a new swarm, but another one is served.
        """
        return msgspec.structs.replace(self, given=frozenset(given))

    def check(self) -> None:
        """Raise UsageError if neither an option nor the data folder names a swarm to serve.

        DiskError if the folder cannot be looked into.
        """
        founded = self.data_dir and is_there(Path(self.data_dir) / "manifest.json")
        if not (self.new or self.join or founded):
            before = f"{self.data_dir} has founded no swarm yet: " if self.data_dir else ""
            raise UsageError(
                f"{before}give --new NAME to found a swarm, or --join LINK to serve one"
            )
