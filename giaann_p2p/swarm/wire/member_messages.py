"""The messages about a swarm itself: its manifest, who belongs to it, its rules, and its directory.

Every peer answers them, whatever its role (see `node.members.gate`).
"""

from typing import Annotated, Literal

import msgspec

from giaann_p2p.swarm.wire.message import Amount, Message

PAGE_BYTES = 1 << 20
"""Maximum size of the records in one page of the directory, in bytes."""
MOST_PAGES = 8
"""Maximum number of pages of the directory's records of one role, which has room for some 16,000
records of usual size. A larger directory is cut; only the DHT has all of it."""
MOST_LISTED = 1 << 14
"""Maximum number of records in one page."""


class AskManifest(Message, frozen=True, tag="manifest?"):
    """Request for the swarm's manifest."""


class ManifestIs(Message, frozen=True, tag="manifest"):
    """Answer to `AskManifest`: the encoded manifest, whose hash is the swarm's id."""

    manifest: bytes


class AskRelease(Message, frozen=True, tag="release?"):
    """Question to a peer: which release does it run, and for how long has it been running?"""


class ReleaseIs(Message, frozen=True, tag="release"):
    """Answer to `AskRelease`. It is the peer's own unverified claim, meant for people only."""

    version: Annotated[str, msgspec.Meta(max_length=40)]
    seconds: Amount
    """For how long the peer has been running."""


class AskRevoked(Message, frozen=True, tag="revoked?"):
    """Request for the founder's list of revoked peers, if the receiver's is newer than `number`."""

    number: Annotated[int, msgspec.Meta(ge=0)]


class RevokedIs(Message, frozen=True, tag="revoked"):
    """The founder's list of revoked peers, encoded (see `swarm.wire.revoked`).

    It answers `AskRevoked`, and is empty if the sender has no newer list. It is also sent unasked.
    """

    revoked: bytes


class AskEdition(Message, frozen=True, tag="edition?"):
    """Request for the newest edition of the swarm's rules, if it is newer than `number`."""

    number: Annotated[int, msgspec.Meta(ge=0)]


class EditionIs(Message, frozen=True, tag="edition"):
    """An edition of the swarm's rules, encoded (see `swarm.wire.edition`).

    It answers `AskEdition`, and is empty if the sender has no newer one. It is also sent unasked.
    """

    edition: bytes


class AskRecords(Message, frozen=True, tag="records?"):
    """Request for the directory's records of one role, for a client that is not a DHT node."""

    role: Literal["storage", "compute"]
    """The `record.Role` whose records are requested."""
    page: Annotated[int, msgspec.Meta(ge=0, lt=MOST_PAGES)] = 0


class AskPulses(Message, frozen=True, tag="pulses?"):
    """Request like `AskRecords`, from a client that has the records already.

    In the answer, bare pulses replace the records that the answering peer knew 12 seconds ago.
    """

    role: Literal["storage", "compute"]
    """The `record.Role` whose pulses are requested."""
    page: Annotated[int, msgspec.Meta(ge=0, lt=MOST_PAGES)] = 0


class RecordsAre(Message, frozen=True, tag="records"):
    """Answer to `AskRecords` or `AskPulses`: one page of the live records of one role.

    The records are signed by their own peers, so the receiver verifies them, and the sender can
    only leave some out.
    """

    pages: Annotated[int, msgspec.Meta(ge=1, le=MOST_PAGES)]
    """Number of pages of records, this one included."""
    records: Annotated[list[bytes], msgspec.Meta(max_length=MOST_LISTED)]
