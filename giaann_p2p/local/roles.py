"""What peers there are, what each role runs, and its command line: all of it is here."""

from pathlib import Path

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.local.suggest import nearest

BOOTSTRAP, STORAGE, COMPUTE = "bootstrap", "storage", "compute"
ROLES = (BOOTSTRAP, STORAGE, COMPUTE)
ENTRIES = {
    BOOTSTRAP: "bootstrap.daemon:main",
    STORAGE: "peers.storage.daemon:main",
    COMPUTE: "peers.compute.daemon:main",
}
LISTEN = "/ip4/127.0.0.1/tcp/0"
_MOST_PEERS = 500
_PATIENCE = "4"
"""Peers of one machine are started together, so who is to come back is back at once."""


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What swarm to run. The first four are told to the first bootstrap peer alone."""

    name: str = "local"
    shards: int = 256
    replicas: int = 2
    redundancy: int = 1
    entries: dict[str, str] = msgspec.field(default_factory=ENTRIES.copy)
    """What each role calls: module:function, which is given its arguments."""
    arguments: dict[str, list[str]] = {}
    """Further arguments by role."""
    environment: dict[str, str] = {}
    """Variables for all peers."""
    bootstraps: int = 1
    storages: int = 3
    computes: int = 0
    restarts: bool = False
    """Peers that end by themselves are started again, later each time."""
    grace: float = 10.0
    """Seconds that peers have for ending before they are killed."""
    start_within: float = 60.0
    """Seconds that the imports may take, and the first peer until it tells its link."""
    temporary: bool = False
    """The folder goes with the swarm."""
    attached: bool = True
    """The swarm ends with the process that has started it."""

    def __post_init__(self) -> None:
        if self.bootstraps < 1:
            raise UsageError("a swarm has at least one bootstrap peer, which the others join")
        for role, count in self.counts.items():
            if not 0 <= count <= _MOST_PEERS:
                raise UsageError(f"{count} {role} peers are not possible: take 0 to {_MOST_PEERS}")
        for role, entry in self.entries.items():
            if not all(entry.partition(":")):
                raise UsageError(f"{role}: {entry!r} is not module:function")

    @property
    def counts(self) -> dict[str, int]:
        """How many peers there are at first, by role; who comes first stands first."""
        return {BOOTSTRAP: self.bootstraps, STORAGE: self.storages, COMPUTE: self.computes}

    @property
    def modules(self) -> list[str]:
        """What is imported before peers are forked."""
        entries = [self.entries[role] for role, count in self.counts.items() if count]
        return list(dict.fromkeys(entry.partition(":")[0] for entry in entries))


def role_named(name: str) -> str:
    """Check a role."""
    if name not in ROLES:
        raise UsageError(f"there is no role {name!r}{nearest(name, ROLES)}; {', '.join(ROLES)}")
    return name


def arguments_of(
    role: str,
    spec: Spec,
    *,
    link: str,
    data: Path,
    status_file: Path,
    listen: str = LISTEN,
    metrics_port: int = 0,
) -> list[str]:
    """Return the command line of a peer; without a link it is the swarm's first."""
    found = ["--data-dir", str(data), "--listen", listen, "--status-file", str(status_file)]
    if link:
        found = ["--join", link, *found]
    else:
        sizes = ["--shards", str(spec.shards), "--replicas", str(spec.replicas)]
        agreed = ["--redundancy", str(spec.redundancy)]
        found = ["--new", spec.name, *sizes, *agreed, *found]
    if role != BOOTSTRAP:
        found += ["--metrics-port", str(metrics_port)]
    if role == STORAGE:
        found += ["--patience", _PATIENCE]
    return [*found, *spec.arguments.get(role, ())]
