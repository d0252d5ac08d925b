"""Who is who in a swarm of members with hostile peers, and how each process becomes who it is.

`LocalSwarm` starts them all, by the entries here, so all end with it. Who is to be a member gives
itself a token first, with the key of the founder, whose folder is beside its own. Hostile ones are
the daemons that honest ones are, with another node, or programs of their own. They do no harm
before they get BEGIN: until then they seem honest, and get what is theirs to hold.

A shard has three replicas, and an update counts with two: of those one may be a liar, so one honest
owner has it at least; with three a liar could stop all updates. What two compute peers come to
counts, and two of them are honest.
"""

import time
from pathlib import Path

import peers.compute.daemon
import peers.storage.daemon
from giaann_p2p.local import roles
from giaann_p2p.node.members.membership import Membership, TokenIssuer
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.token import Rights
from tests.e2e.hostile.forger import Forger
from tests.e2e.hostile.liar import Liar
from tests.e2e.hostile.program import run
from tests.e2e.hostile.shirker import Shirker
from tests.e2e.hostile.stranger import Stranger

LIAR, SHIRKER, FORGER, STRANGER = "storage-4", "compute-3", "compute-4", "compute-5"
HOSTILE = LIAR, SHIRKER, FORGER, STRANGER
ARGUMENTS = {"bootstrap": ["--no-open"], "compute": ["--verify", "1"]}
ENTRIES = {**roles.ENTRIES, "storage": f"{__name__}:storage", "compute": f"{__name__}:compute"}
PEERS = {"storages": 4, "computes": 5, "replicas": 3, "redundancy": 2}
HONEST_STORAGES = 3
_HOUR = 3600
_ALL = Rights.STORAGE | Rights.COMPUTE | Rights.CLIENT


def storage(arguments: list[str]) -> int:
    """Be a storage peer."""
    folder = _folder(arguments)
    _admit(folder, Rights.STORAGE)
    if _name(folder) == LIAR:
        vars(peers.storage.daemon)["StorageNode"] = Liar
    return peers.storage.daemon.main(arguments)


def compute(arguments: list[str]) -> int:
    """Be a compute peer, or a program that is taken for one."""
    folder = _folder(arguments)
    name = _name(folder)
    if name == STRANGER:
        return run(Stranger, folder, arguments)
    if name == FORGER:
        _admit(folder, _ALL)
        return run(Forger, folder, arguments)
    _admit(folder, Rights.COMPUTE)
    if name == SHIRKER:
        vars(peers.compute.daemon)["ComputeNode"] = Shirker
    return peers.compute.daemon.main(arguments)


def visitors_token(swarm: Path, session: Peer) -> bytes:
    """Return what a client of the swarm in a folder has to show."""
    giver = TokenIssuer(swarm / "peers" / "bootstrap-1" / "data")
    return giver.given(session, Rights.CLIENT, int(time.time()) + _HOUR).to_bytes()


def _admit(folder: Path, rights: Rights) -> None:
    """Let the peer of a folder be a member."""
    membership = Membership(folder)
    giver = TokenIssuer(folder.parents[1] / "bootstrap-1" / "data")
    until = int(time.time()) + _HOUR
    membership.accept(str(giver.given(membership.identity.peer, rights, until)))


def _folder(arguments: list[str]) -> Path:
    return Path(arguments[arguments.index("--data-dir") + 1])


def _name(folder: Path) -> str:
    return folder.parent.name
