"""`giaann swarm`: starts, shows, disturbs and ends a swarm that runs on this machine."""

import asyncio
import shlex
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.text import Text

from giaann_p2p.cli import swarm_view
from giaann_p2p.cli.arrival import usual_folder
from giaann_p2p.cli.manner import ColumnSegments, Profile
from giaann_p2p.cli.pictures.option import Picture
from giaann_p2p.cli.swarm_map import Elsewhere, show_map
from giaann_p2p.cli.through_gateway import NoGateway
from giaann_p2p.cli.wrong_values import a_number
from giaann_p2p.errors import GiaannError, UsageError
from giaann_p2p.exit_codes import EXPLAINED, FAILED, INTERRUPTED
from giaann_p2p.machine import check_capacity, memory
from giaann_p2p.model.spec import CHUNK, MOST_CHUNK
from giaann_p2p.terminal import complain, errors, readable, remark, say, say_json
from giaann_p2p.units import nbytes

if TYPE_CHECKING:
    from giaann_p2p.local.control import Answer
    from giaann_p2p.local.remote import Remote
    from giaann_p2p.local.roles import Spec
    from giaann_p2p.local.swarm import LocalSwarm

app = typer.Typer(
    help="A swarm on this machine, to try one: many peers, each a process, in one folder.",
    epilog=EXPLAINED,
    no_args_is_help=True,
)

_LOOK_EVERY = 0.2
"""Seconds between two looks at a swarm."""
_LINES_BESIDE = 4
"""Lines of the terminal that the table of peers leaves free for other output."""


def _directory(name: str) -> Path:
    if not name:
        raise typer.BadParameter("a folder's name cannot be empty")
    return Path(name)


Dir = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        envvar="GIAANN_SWARM",
        metavar="FOLDER",
        parser=_directory,
        help="The swarm's folder. \\[default: ~/.local/state/giaann/swarm]",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]
Storage = Annotated[
    int | None, typer.Option(min=0, help="Minimum number of storage peers. \\[default: 3]")
]
Compute = Annotated[
    int | None, typer.Option(min=0, help="Minimum number of compute peers. \\[default: 0]")
]
Bootstrap = Annotated[
    int | None, typer.Option(min=1, help="Minimum number of bootstrap peers. \\[default: 1]")
]
Replicas = Annotated[
    int | None, typer.Option(min=1, help="How many peers hold each shard. \\[default: 2]")
]
Shards = Annotated[int | None, typer.Option(min=1, help="Shards, a power of two. \\[default: 256]")]
Redundancy = Annotated[
    int | None,
    typer.Option(
        min=1, max=8, help="Compute peers that have to agree on each chunk. \\[default: 1]"
    ),
]
Reads = Annotated[
    Profile | None,
    typer.Option(help="How the model reads: words, or subwords. \\[default: subwords]"),
]
Chunk = Annotated[
    int | None,
    typer.Option(
        min=CHUNK, max=MOST_CHUNK, help=f"Sentences in a chunk of a text. \\[default: {CHUNK}]"
    ),
]

CutNamed = Annotated[
    str | None,
    typer.Option(
        "--cut",
        metavar="WORD=PARTS,...",
        help="Columns to divide by the words they lead to, and into how many parts, such as "
        "day=16,sea=4. \\[default: none]",
    ),
]
CutLike = Annotated[
    Path | None,
    typer.Option(
        "--cut-like",
        metavar="FILE",
        help="Choose these columns by a text like those that will be learned.",
    ),
]


class Reshard(StrEnum):
    """The values of `--reshard`: whether the swarm's rules are raised automatically."""

    OFF = "off"
    AUTO = "auto"


Resharding = Annotated[
    Reshard | None,
    typer.Option(
        "--reshard",
        help="auto: double the shards, and enlarge the chunks, as the swarm grows. "
        "\\[default: off]",
    ),
]
Serve = Annotated[
    bool, typer.Option("--serve", help="Also serve it over HTTP, as `giaann serve` does.")
]
Training = Annotated[
    bool, typer.Option("--allow-training", help="With --serve: let clients also teach texts.")
]
Capacity = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Memory of each storage peer. \\[default: 1GiB]")
]
Grace = Annotated[
    float,
    typer.Option(
        min=0,
        callback=a_number,
        help="Seconds that peers have to shut down before they are killed.",
    ),
]
Names = Annotated[
    list[str], typer.Argument(metavar="NAME...", help="Peers, for example storage-1.")
]


@app.command()
def up(
    folder: Dir = None,
    storage: Storage = None,
    compute: Compute = None,
    bootstrap: Bootstrap = None,
    replicas: Replicas = None,
    redundancy: Redundancy = None,
    shards: Shards = None,
    chunk: Chunk = None,
    cut: CutNamed = None,
    cut_like: CutLike = None,
    reshard: Resharding = None,
    profile: Reads = None,
    column_segments: ColumnSegments = None,
    capacity: Capacity = None,
    force: Annotated[
        bool, typer.Option("--force", help="Accept a capacity that exceeds this machine's memory.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="The swarm's name. \\[default: local]")] = None,
    serve: Serve = False,
    allow_training: Training = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Restart peers that end by themselves.")
    ] = False,
    grace: Grace = 10.0,
    detach: Annotated[
        bool,
        typer.Option("--detach", help="Return when all are ready; `giaann swarm down` ends them."),
    ] = False,
    json_output: Json = False,
) -> None:
    """Start a swarm, and show its peers until Ctrl-C ends them; a second Ctrl-C kills them.

    If the folder has held a swarm, that one starts again: the same peers, data, ports and link.
    """
    from giaann_p2p.local.swarm import LocalSwarm

    given = {
        **_gateway(serve, allow_training),
        "storages": storage,
        "computes": compute,
        "bootstraps": bootstrap,
        "replicas": replicas,
        "redundancy": redundancy,
        "shards": shards,
        "chunk": chunk,
        "cut": cut,
        "cut_like": str(cut_like.absolute()) if cut_like else None,
        "reshard": reshard,
        "profile": profile,
        "column_segments": column_segments,
        "name": name,
        "capacity": capacity,
        "force": force or None,
    }
    place = _folder(folder)
    spec = _checked_spec(place, given)
    swarm = LocalSwarm(place, spec, restarts=restart, grace=grace, attached=not detach)
    _run(swarm, detach, json_output, folder)


def _gateway(serve: bool, allow_training: bool) -> dict[str, object]:
    """Return the settings of a gateway; UsageError for --allow-training without --serve."""
    if allow_training and not serve:
        raise UsageError("--allow-training is for what --serve starts: give both")
    return {
        "gateways": 1 if serve else None,
        "arguments": {"gateway": ["--allow-training"] * allow_training} if serve else None,
    }


def _checked_spec(folder: Path, given: Mapping[str, object]) -> "Spec":
    """Return the spec of the swarm to start; UsageError if this machine has too little memory."""
    spec = _spec(folder, {key: value for key, value in given.items() if value is not None})
    if spec.capacity and not spec.force:
        check_capacity(nbytes(spec.capacity), memory())
    return spec


def _run(swarm: "LocalSwarm", detach: bool, json_output: bool, folder: Path | None) -> None:
    """Start a swarm and end it on a signal or an error; with `detach`, leave it once ready."""
    from giaann_p2p.local.errors import EndedError

    with _ended_by_signals(swarm) as asked:
        try:
            swarm.start()
            if detach:
                _until_ready(swarm, asked)
                _tell(swarm, json_output, folder)
                swarm.let_go()
            else:
                _show(swarm, asked, json_output, folder)
        except EndedError as end:
            complain(str(end))
        finally:
            if asked:
                complain("ending all peers; Ctrl-C again to kill them")
            swarm.close()
    if asked:
        raise typer.Exit(INTERRUPTED)


@app.command()
def status(folder: Dir = None, json_output: Json = False) -> None:
    """Show the state of each peer; the exit code is 0 if all are ready, else 1."""
    remote = _remote(folder)
    answer = remote.look(memory=True)
    if json_output:
        say_json(swarm_view.swarm_json(answer, remote.folder.path))
    else:
        say(swarm_view.table(answer))
        if answer.link:
            say(f"link: {answer.link}")
    if not _all_ready(answer):
        complain(swarm_view.health(answer))
        raise typer.Exit(FAILED)


@app.command("map")
def map_(
    folder: Dir = None,
    join: Elsewhere = None,
    picture: Picture = None,
    no_gateway: NoGateway = False,
    json_output: Json = False,
) -> None:
    """Show which storage peers hold which shards; `giaann status` says what to do."""
    if join is None:
        join = _remote(folder).look().link
        if not join:
            raise UsageError("the swarm is still starting: it has no join link yet")
    show_map(join, no_gateway, json_output, picture)


@app.command()
def add(
    role: Annotated[
        str,
        typer.Argument(metavar="ROLE", help="The role: storage, compute, bootstrap or gateway."),
    ],
    count: Annotated[
        int, typer.Argument(min=1, metavar="[N]", help="How many peers to start.")
    ] = 1,
    folder: Dir = None,
    json_output: Json = False,
) -> None:
    """Start more peers, and print their names."""
    names = _remote(folder).add(role, count)
    say_json(names) if json_output else say("\n".join(names))


@app.command()
def kill(
    names: Names,
    folder: Dir = None,
    signal_name: Annotated[
        str,
        typer.Option(
            "--signal", metavar="SIGNAL", help="The signal: KILL, TERM, USR1, ... or a number."
        ),
    ] = "KILL",
) -> None:
    """Kill peers as a power cut would, or send them another signal.

    KILL, STOP and CONT reach the processes that a peer has started, too.
    """
    from giaann_p2p.local.linux import signal_named

    number, remote = signal_named(signal_name), _remote(folder)
    for name in names:
        remote.kill(name, number)


@app.command()
def stop(names: Names, folder: Dir = None) -> None:
    """Freeze peers, like a machine that hangs."""
    remote = _remote(folder)
    for name in names:
        remote.stop(name)


@app.command()
def cont(names: Names, folder: Dir = None) -> None:
    """Let frozen peers continue."""
    remote = _remote(folder)
    for name in names:
        remote.cont(name)


@app.command()
def restart(names: Names, folder: Dir = None) -> None:
    """Restart peers with the same data and ports; those that run are ended first."""
    remote = _remote(folder)
    for name in names:
        remote.restart(name)


@app.command()
def down(
    folder: Dir = None,
    now: Annotated[bool, typer.Option("--now", help="Kill the peers instead of waiting.")] = False,
    erase: Annotated[
        bool, typer.Option("--erase", help="Also remove the folder, with all data.")
    ] = False,
) -> None:
    """End a swarm; return when none of its processes runs any more."""
    from giaann_p2p.local.errors import NotRunningError

    remote = _remote(folder)
    with suppress(NotRunningError) if erase else nullcontext():
        try:
            remote.down(now)
        except KeyboardInterrupt:
            remote.down(now=True)
            raise typer.Exit(INTERRUPTED) from None
    if erase:
        remote.folder.erase()


@app.command()
def logs(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of a peer; or supervisor, or zygote.")
    ],
    folder: Dir = None,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="Number of lines to show.")
    ] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show new lines until Ctrl-C.")
    ] = False,
) -> None:
    """Show the end of a peer's log."""
    from giaann_p2p.local.logs import Log

    log = Log(_remote(folder).folder, name)
    for line in log.last(lines):
        say(line)
    while follow:
        time.sleep(_LOOK_EVERY)
        say(log.news(), end="")


def _folder(given: Path | None) -> Path:
    return usual_folder() if given is None else given


def _remote(folder: Path | None) -> "Remote":
    from giaann_p2p.local.remote import Remote

    return Remote(_folder(folder))


def _spec(folder: Path, given: dict[str, object]) -> "Spec":
    """Return the settings of the swarm in a folder, or else the defaults, with `given` changes."""
    import msgspec

    from giaann_p2p.local.folder import Folder
    from giaann_p2p.local.roles import Spec

    record = Folder(folder).record()
    return msgspec.structs.replace(Spec() if record is None else record.spec, **given)


def _all_ready(answer: "Answer") -> bool:
    return bool(answer.peers) and all(peer.state == "ready" for peer in answer.peers)


@contextmanager
def _ended_by_signals(swarm: "LocalSwarm") -> Iterator[list[int]]:
    """Yield a list that collects the signals that ask for the end; the second kills the peers."""
    asked: list[int] = []

    def ask(number: int, _frame: object) -> None:
        asked.append(number)
        if len(asked) > 1:
            swarm.hurry()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _until_ready(swarm: "LocalSwarm", asked: list[int]) -> None:
    """Wait until all peers are ready; LocalSwarmError if they make no progress, or one ends."""
    from giaann_p2p.cli.swarm_seen import until_seen

    if swarm.wait_ready(gives_up=lambda: bool(asked)):
        with suppress(GiaannError):  # the swarm is up all the same; `giaann status` says more
            storages = sum(peer.role == "storage" for peer in swarm.peers())
            asyncio.run(until_seen(swarm.link, storages, lambda: bool(asked)))
    if asked:
        raise typer.Exit(INTERRUPTED)


def _show(swarm: "LocalSwarm", asked: list[int], json_output: bool, folder: Path | None) -> None:
    """Show the peers until a signal asks for the end; print the link once all are ready."""
    told = False
    with Live(
        console=errors(),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:
        while not asked:
            answer = swarm.look()
            if errors().is_terminal:
                screen = Text(_screen(answer), no_wrap=True, overflow="ellipsis")
                live.update(screen, refresh=True)
            if not told and _all_ready(answer):
                told = True
                live.stop()  # the table makes way for lines that stay on the screen
                _tell(swarm, json_output, folder)
                live.start()
            time.sleep(_LOOK_EVERY)


def _screen(answer: "Answer") -> str:
    rest = "Ctrl-C ends the swarm"
    if not answer.peers:
        return f"importing the peers' modules; {rest}"
    fits = len(answer.peers) + _LINES_BESIDE <= errors().height
    peers = swarm_view.table(answer) if fits else swarm_view.by_role(answer)
    return f"\n{peers}\n{swarm_view.health(answer)}; {rest}"


def _tell(swarm: "LocalSwarm", json_output: bool, folder: Path | None) -> None:
    answer = swarm.look()
    if json_output:
        say_json(swarm_view.swarm_json(answer, swarm.folder.path))
        return
    say(answer.link)
    option = "" if folder is None else f" --dir {shlex.quote(str(folder))}"
    remark(readable(swarm_view.what_next(answer, swarm.folder.path, option)))
