"""What can be set of a bootstrap peer."""

from typing import Annotated

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.manifest import MOST_REDUNDANCY, MOST_REPLICAS
from peers.options import Options, told


class BootstrapOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new swarm's shape counts only once: it can't be changed afterwards."""

    new: Annotated[
        str,
        told(
            "Found a swarm of this name; if this folder has founded it before, go on with it.",
            "NAME",
        ),
    ] = ""
    join: Annotated[
        str,
        told("Be one more bootstrap peer of the swarm with this join link, instead.", "LINK"),
    ] = ""
    shards: Annotated[
        int,
        told(
            "Parts that the columns are cut into; a power of two. More let more peers "
            "share them evenly, and cost each a little.",
            ge=1,
        ),
    ] = 256
    replicas: Annotated[int, told("Peers that hold each shard.", ge=1, le=MOST_REPLICAS)] = 3
    quorum: Annotated[
        int,
        told(
            "How many of them must have an update on their disks before it counts; "
            "0 for the majority.",
            ge=0,
            le=MOST_REPLICAS,
        ),
    ] = 0
    blocks: Annotated[
        int,
        told(
            "Parts that each column is cut into; a power of two. For columns that are "
            "larger than a peer.",
            ge=1,
        ),
    ] = 1
    redundancy: Annotated[
        int,
        told(
            "Compute peers that have to learn a chunk, each by itself, and to come to the "
            "same, before it counts.",
            ge=1,
            le=MOST_REDUNDANCY,
        ),
    ] = 1
    token: Annotated[bool, told("Serve only those who have a token of this swarm's founder.")] = (
        False
    )

    def __post_init__(self) -> None:
        if self.new and self.join:
            raise UsageError("give --new to found a swarm, or --join to serve one, not both")
