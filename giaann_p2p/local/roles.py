"""The roles of peers in a swarm on this machine: their entry points, counts and command lines."""

from pathlib import Path

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.local.suggest import nearest
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.model.usual import USUAL_PROFILE, check_column_segments

BOOTSTRAP, STORAGE, COMPUTE, GATEWAY = "bootstrap", "storage", "compute", "gateway"
ROLES = (BOOTSTRAP, STORAGE, COMPUTE, GATEWAY)
ENTRIES = {
    BOOTSTRAP: "bootstrap.daemon:main",
    STORAGE: "peers.storage.daemon:main",
    COMPUTE: "peers.compute.daemon:main",
    GATEWAY: "giaann_p2p.cli.serve:main",
}
LISTEN = "/ip4/127.0.0.1/tcp/0"
_SERVE_AT = "127.0.0.1:0"
_MOST_PEERS = 500
"""Maximum number of peers of one role."""
_PATIENCE = "4"
"""Seconds for the option `--patience` of storage peers. It is short because the peers of a machine
start together: a peer that comes back at all comes back at once."""
_SAMPLE_WITHIN = 900.0
"""Seconds that the founding peer may take to learn a sample of a text."""


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a swarm; only the first bootstrap peer gets the first ten."""

    name: str = "local"
    shards: int = 256
    replicas: int = 2
    redundancy: int = 1
    profile: str = USUAL_PROFILE
    """How the model reads: `words` or `subwords`."""
    column_segments: int = 0
    """The number of distances in columns that a model of subwords also learns."""
    chunk: int = CHUNK
    """The number of sentences in a chunk."""
    cut: str = ""
    """The columns that are cut by target, with the number of parts of each: day=16,sea=4."""
    cut_like: str = ""
    """The path of a text that shows which columns to cut."""
    reshard: str = "off"
    """Whether the founding bootstrap peer raises the swarm's rules by itself: `off` or `auto`."""
    capacity: str = ""
    """The memory that each storage peer offers, such as 1GiB; empty for the default."""
    force: bool = False
    """Whether the capacity may exceed what this machine has."""
    entries: dict[str, str] = msgspec.field(default_factory=ENTRIES.copy)
    """The entry point of each role: module:function, called with a list of arguments."""
    arguments: dict[str, list[str]] = {}
    """Additional command-line arguments of peers, by role."""
    environment: dict[str, str] = {}
    """Additional environment variables of all peers."""
    bootstraps: int = 1
    storages: int = 3
    computes: int = 0
    gateways: int = 0
    """The number of gateways: processes that serve the swarm over HTTP, and are not peers."""
    restarts: bool = False
    """Whether peers that end by themselves are restarted, with exponential backoff."""
    grace: float = 10.0
    """Seconds that peers have to shut down before they are killed."""
    start_within: float = 60.0
    """Seconds that the zygote's imports may take, that the first peer may take to report the link,
    and that may pass without progress of any peer until all are ready."""
    temporary: bool = False
    """Whether the folder is removed when the swarm ends."""
    attached: bool = True
    """Whether the swarm ends when the process that started it ends."""

    def __post_init__(self) -> None:
        check_column_segments(self.profile, self.column_segments or None)
        if self.cut or self.cut_like:
            from giaann_p2p.store.cut_choice import check_choice  # imports numpy

            check_choice(self.cut, self.cut_like)
        if self.bootstraps < 1:
            raise UsageError(
                "a swarm needs at least one bootstrap peer, through which the others join"
            )
        for role, count in self.counts.items():
            if not 0 <= count <= _MOST_PEERS:
                raise UsageError(f"{count} {role} peers are not possible: give 0 to {_MOST_PEERS}")
        for role, entry in self.entries.items():
            if not all(entry.partition(":")):
                raise UsageError(f"the entry of {role} must be module:function, not {entry!r}")

    @property
    def link_within(self) -> float:
        """Seconds that the first peer may take to report the link; longer if it learns a sample."""
        return self.start_within + (_SAMPLE_WITHIN if self.cut_like else 0)

    @property
    def counts(self) -> dict[str, int]:
        """The number of peers to start, by role, in the order in which they start."""
        return {
            BOOTSTRAP: self.bootstraps,
            STORAGE: self.storages,
            COMPUTE: self.computes,
            GATEWAY: self.gateways,
        }

    def entry(self, role: str) -> str:
        """Return the entry point of a role; the spec of an earlier release may lack it."""
        return self.entries.get(role, ENTRIES[role])

    @property
    def modules(self) -> list[str]:
        """The modules that the zygote imports before it forks peers."""
        entries = [self.entry(role) for role, count in self.counts.items() if count]
        return list(dict.fromkeys(entry.partition(":")[0] for entry in entries))


def role_named(name: str) -> str:
    """Return the name if it is a role's; otherwise raise UsageError."""
    if name not in ROLES:
        raise UsageError(
            f"there is no role {name!r}{nearest(name, ROLES)}; give {' or '.join(ROLES)}"
        )
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
    """Return the command-line arguments of a peer; with an empty `link` it founds the swarm."""
    if role == GATEWAY:
        at = _SERVE_AT if listen == LISTEN else listen
        own = ["--join", link, "--listen", at, "--status-file", str(status_file)]
        return [*own, *spec.arguments.get(role, ())]
    found = ["--data-dir", str(data), "--listen", listen, "--status-file", str(status_file)]
    if link:
        found = ["--join", link, *found]
    else:
        sizes = ["--shards", str(spec.shards), "--replicas", str(spec.replicas)]
        agreed = ["--redundancy", str(spec.redundancy), "--profile", spec.profile]
        agreed += ["--chunk", str(spec.chunk)]
        if spec.reshard != "off":
            agreed += ["--reshard", spec.reshard]
        if spec.cut:
            agreed += ["--cut", spec.cut]
        if spec.cut_like:
            agreed += ["--cut-like", spec.cut_like]
        if spec.column_segments:
            agreed += ["--column-segments", str(spec.column_segments)]
        found = ["--new", spec.name, "--open", *sizes, *agreed, *found]
    if role != BOOTSTRAP:
        found += ["--metrics-port", str(metrics_port)]
    if role == STORAGE:
        found += ["--patience", _PATIENCE]
        found += ["--capacity", spec.capacity] if spec.capacity else []
        found += ["--force"] if spec.force else []
    return [*found, *spec.arguments.get(role, ())]
