"""What the gateway shows of a swarm or a brain, as plain values for JSON."""

import msgspec


class ShownLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The load that a peer announces; what each number means depends on its role."""

    queue: int = 0
    reads: int = 0
    writes: int = 0
    growth: int = 0


class ShownPeer(msgspec.Struct, frozen=True, kw_only=True):
    """A live peer in one of its roles."""

    name: str
    role: str
    state: str
    room: int | None
    """Bytes that a storage peer has left; None for a compute peer."""
    capacity: int
    used: int
    ready: int
    syncing: int
    owns: int
    load: ShownLoad
    reads_per_s: int
    """Reads per second that a storage peer announces; 0 for a compute peer."""
    writes_per_s: int
    """Writes per second that a storage peer announces; 0 for a compute peer."""
    version: str | None
    """The release that the peer reports; None if it has not reported one."""
    since: int
    """When this run of the peer began, in seconds since 1970, as it reports; if it has not reported
    it, when this gateway first saw the peer."""
    silent: bool
    """Whether it does not answer, though its record is still live."""
    device: str = ""
    slots: int = 0


class PeersNow(msgspec.Struct, frozen=True, kw_only=True):
    """The peers of a swarm, and who holds each shard."""

    peers: list[ShownPeer] = []
    shards: list[list[tuple[str, str]]] = []
    """For each shard the peers that hold it, each with `ready`, `syncing` or `cold`."""


class ShownLead(msgspec.Struct, frozen=True, kw_only=True):
    """A word to which a word of a column has connections."""

    concept: str
    feature: str | None
    strength: float


class ShownWord(msgspec.Struct, frozen=True, kw_only=True):
    """A word of a column; `feature` is None for the noun itself."""

    feature: str | None
    occurrences: int
    connections: int
    leads: list[ShownLead]


class ShownRow(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a row."""

    occurrences: int
    connections: int


class ShownLie(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong row that a storage peer returned, as `giaann column --json` prints it."""

    peer: str
    shard: int
    concept: str
    feature: str | None
    told: ShownRow | None
    true: ShownRow | None
    behind: bool


class ShownColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A noun's column: its most frequent words, and what each leads to."""

    concept: str
    size: int
    words: list[ShownWord]
    at_least: bool = False
    """Whether there may be more words than `size`: storage peers list no more of them at once."""
    lies: list[ShownLie] = []
    """Wrong rows found while the gateway read this column."""
    undecided: int = 0
    """How often owners differed without a majority."""


class FoundNoun(msgspec.Struct, frozen=True, kw_only=True):
    """A noun that the model knows."""

    noun: str
    occurrences: int


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search."""

    found: list[FoundNoun]
    of: int
    """How many nouns match in all."""
    note: str = ""
    """Why the result may be incomplete; empty if it is not."""


class ShownJob(msgspec.Struct, frozen=True, kw_only=True):
    """A text that was or is being learned."""

    id: str
    name: str | None
    """The text's name; None if it was taught elsewhere, because swarms keep no names."""
    chunks: int
    of: int | None
    """Chunks of the whole text; None if unknown."""
    author: str | None = None
    """The peer that signed its chunks; None if unknown, or several did."""
    authors: int = 0
    """How many peers signed its chunks, as far as that is known."""
    rate: float = 0.0
    """Chunks per second in the last half minute; 0 for a brain, and for a text without progress."""
    mine: bool = False
    """Whether this gateway teaches or taught it."""
    foreign: bool = False
    """Whether it came from a database of another program."""


class Contributor(msgspec.Struct, frozen=True, kw_only=True):
    """A peer that learned chunks for the swarm, and how many chunks it has signed."""

    author: str
    chunks: int
    sentences: int | None
    """None if only the chunks are counted; a chunk has up to 64 sentences."""
    texts: int = 0
    """The number of texts of which it learned chunks."""


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """The texts that were learned, and who learned how much."""

    jobs: list[ShownJob]
    contributors: list[Contributor] = []
    note: str = ""
    """Why the lists may be incomplete, in words; empty if they are complete."""
