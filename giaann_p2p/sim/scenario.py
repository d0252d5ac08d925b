"""Plays a history from a script of commands, with the expected result below each one.

    storages 5
    client push 0-9
    run 60
    > client0 has 10 chunks of 10 committed
    crash peer2
    > peer2 crashes
    status

Only the faults that the script names happen. The output of a command is taken from the trace,
without the times; the same script prints the same, so that a change of the peers' decisions shows
as a change of these lines. `#` begins a comment; lines with `> ` are expected output.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from itertools import islice

from giaann_p2p.errors import UsageError
from giaann_p2p.sim import liar
from giaann_p2p.sim.client import Client
from giaann_p2p.sim.network import Weather
from giaann_p2p.sim.node import Node
from giaann_p2p.sim.storage import QUICK_DISK, Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.store.undisturbed import undisturbed
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.units import whole_number

_EXPECTED = ">"
_LOOK_EVERY = 5.0
_MOST_SECONDS = 100_000.0
_MOST_PEERS = 200
_NAMELESS = "name a node, such as peer0 or client0, or all for all storage peers"
_MOST_TOLD = 4
"""The most problems that `check` prints."""
_SUMMED_UP = ("INFO: ", "pushes chunk", "chunk ")
"""The beginnings of trace lines that are left out, because `run` and `status` sum them up."""
_LASTING = ("run", "settle")
"""The commands that let time pass; Ctrl-C may interrupt them between two steps."""

Words = list[str]
Command = Callable[["Scenario", Words], Iterable[str] | None]


def play(script: str, seed: int = 0, name: str = "script") -> str:
    """Play a script; return it with the output of each command below it.

    UsageError names the line that cannot be played.
    """
    scenario, lines = Scenario(seed), list[str]()
    with closing(scenario.swarm):
        for number, line in enumerate(script.splitlines(), 1):
            if line.startswith(_EXPECTED):
                continue
            lines.append(line)
            try:
                lines += [f"{_EXPECTED} {told}" for told in scenario.do(line)]
            except UsageError as error:
                raise UsageError(f"{name}:{number}: {line!r}: {error}") from None
    return "".join(line + "\n" for line in lines)


def expects(script: str) -> bool:
    """Return whether a script has expected output."""
    return any(line.startswith(_EXPECTED) for line in script.splitlines())


class Scenario:
    """A swarm in which only the faults of a script happen."""

    def __init__(self, seed: int = 0, settings: Settings | None = None) -> None:
        self.swarm = Swarm(seed, everything=True, settings=settings)
        self._told = 0

    def do(self, line: str) -> list[str]:
        """Carry out one line of a script; return the lines that it prints."""
        words = line.partition("#")[0].split()
        if not words:
            return []
        if words[1:2] == ["push"]:
            self._push(words[0], words[2:])
            return self._news()
        for name, command in COMMANDS.items():
            size = len(name.split())
            if words[:size] == name.split():
                with nullcontext() if name in _LASTING else undisturbed():
                    said = list(command(self, words[size:]) or ())
                return [*self._news(), *said]
        raise UsageError(f"there is no such command; name one of {', '.join([*COMMANDS, 'push'])}")

    def _news(self) -> list[str]:
        """Return the trace lines since the last call, except those that other commands sum up."""
        told = self.swarm.trace.told
        new = list(islice(told, self._told, None))
        self._told = len(told)
        return [f"{one.who} {one.what}" for one in new if not one.what.startswith(_SUMMED_UP)]

    def storages(self, words: Words) -> None:
        """Add storage peers, all at the same moment."""
        for _ in range(_whole(words, _MOST_PEERS - len(self.swarm.storages))):
            self.swarm.add_storage()

    def join(self, words: Words) -> None:
        """Add a storage peer."""
        _none(words)
        self.swarm.add_storage()

    def liars(self, words: Words) -> None:
        """Add strangers that claim all shards, and hold none."""
        for _ in range(_whole(words, _MOST_PEERS - len(self.swarm.hostiles))):
            liar.join(self.swarm)

    def _push(self, name: str, words: Words) -> None:
        """Have a client push chunks; naming the next unused client creates it."""
        first, last = _range(words)
        wanted = range(first, last + 1)
        name = "client0" if name == "client" else name
        clients = self.swarm.clients
        for other in clients:
            if other.name != name and set(wanted) & set(other.chunks):
                raise UsageError(
                    f"{other.name} pushes some of these; give each client other chunks"
                )
        if name == f"client{len(clients)}":
            job = random.Random(f"{self.swarm.seed} job {len(clients)}").randbytes(16)
            clients.append(Client(self.swarm, name, job, [], self.swarm.skew()))
        client = self._node(name)
        if not isinstance(client, Client):
            raise UsageError(f"{name} is a storage peer; clients push")
        client.push(list(wanted))

    def run(self, words: Words) -> Iterator[str]:
        """Let the given seconds pass."""
        seconds = _number(words, _MOST_SECONDS)
        left = {client: client.left for client in self.swarm.clients}
        self.swarm.run_until(self.swarm.clock.now + seconds)
        for client, before in left.items():
            if before:
                yield _committed(client)

    def settle(self, words: Words) -> Iterator[str]:
        """Let time pass until all promises hold, or for at most the given seconds."""
        begun, most = self.swarm.clock.now, _number(words, _MOST_SECONDS)
        problems = self.swarm.problems()
        while problems and self.swarm.clock.now < begun + most:
            self.swarm.run_until(min(self.swarm.clock.now + _LOOK_EVERY, begun + most))
            problems = self.swarm.problems()
        took = self.swarm.clock.now - begun
        yield f"not settled within {most:g} s" if problems else f"settled within {took:g} s"

    def crash(self, words: Words) -> None:
        """Kill processes at once; unsynced data may be lost."""
        for node in self._running(words):
            if isinstance(node, Storage):
                node.crash()
            else:
                node.say("crashes")
                node.die()

    def torn_crash(self, words: Words) -> None:
        """Kill storage peers in the middle of a write."""
        for node in self._running_storages(words):
            node.crash(in_the_middle=True)

    def lose(self, words: Words) -> None:
        """Kill storage peers, and destroy their disks."""
        for node in self._running_storages(words):
            node.crash(lost=True)

    def restart(self, words: Words) -> None:
        """Restart dead processes, with their disks."""
        for node in self._some(words):
            if node.alive:
                raise UsageError(f"{node.name} is running; it cannot restart")
            if isinstance(node, Storage) and (node.lost or node.left):
                raise UsageError(f"{node.name} is gone for ever; it cannot restart")
            if isinstance(node, Storage | Client):
                node.restart()

    def stop(self, words: Words) -> None:
        """Stop processes, as by SIGSTOP."""
        for node in self._running(words):
            node.say("stands still")
            node.stop()

    def go_on(self, words: Words) -> None:
        """Continue stopped processes."""
        for node in self._some(words):
            if not node.stopped:
                raise UsageError(f"{node.name} does not stand still; it cannot go on")
            node.say("goes on")
            node.go_on()

    def leave(self, words: Words) -> None:
        """Have storage peers hand over all shards and leave."""
        for node in self._running_storages(words):
            node.leave()

    def partition(self, words: Words) -> None:
        """Cut the links between groups, in both directions."""
        groups, named = [], set[str]()
        for part in " ".join(words).split("|"):
            groups.append(self._some(part.split()))
            names = {node.name for node in groups[-1]}
            if twice := names & named:
                raise UsageError(f"{min(twice)} is in two groups")
            named |= names
        if len(groups) < 2:
            raise UsageError("name groups with | between them: peer0 peer1 | peer2")
        for one in groups:
            for other in groups:
                if one is not other:
                    self.swarm.network.cut |= {(a.peer, b.peer) for a in one for b in other}

    def one_way(self, words: Words) -> None:
        """Cut the link from one node to another."""
        one, other = self._two(words)
        self.swarm.network.cut.add((one.peer, other.peer))

    def weather(self, words: Words) -> None:
        """Set the faults of all links: `weather lost 0.1 twice 0.05 latency 0.2`."""
        known = ("lost", "twice", "latency")
        if len(words) % 2 or not words or not set(words[::2]) <= set(known):
            raise UsageError("name some of lost, twice and latency, each with a number")
        for name, value in zip(words[::2], words[1::2], strict=True):
            most = 60.0 if name == "latency" else 1.0
            setattr(self.swarm.network.weather, name, _number([value], most))

    def slow(self, words: Words) -> None:
        """Make everything from and to a node slower by a factor."""
        node = self._node(words[0] if words else "")
        self.swarm.network.slow[node.peer] = _number(words[1:], 10_000.0)

    def mend(self, words: Words) -> None:
        """Restore the network."""
        _none(words)
        network = self.swarm.network
        network.cut.clear()
        network.slow.clear()
        network.weather = Weather()

    def slow_disk(self, words: Words) -> None:
        """Make each write of a disk take the given seconds."""
        self._storage(words[:1]).disk_delay = _number(words[1:], 600.0)

    def quick_disk(self, words: Words) -> None:
        """Restore a disk's usual speed."""
        self._storage(words).disk_delay = QUICK_DISK

    def full_disk(self, words: Words) -> None:
        """Limit a disk to the given number of bytes more than it holds."""
        disk = self._storage(words[:1]).disk
        used = sum(disk.size(name) for name in disk.names())
        disk.capacity = used + int(_number(words[1:] or ["0"], 1e12))

    def free_disk(self, words: Words) -> None:
        """Remove a disk's limit."""
        self._storage(words).disk.capacity = None

    def status(self, words: Words) -> Iterator[str]:
        """Print the state of every node."""
        _none(words)
        yield f"{'peer':<8} {'is':<9} {'syncing':>7} {'ready':>5} {'draining':>8}"
        for node in self.swarm.storages:
            if not node.alive:
                yield f"{node.name:<8} {'lost' if node.lost else 'gone' if node.left else 'dead'}"
                continue
            kinds = (ReplicaState.SYNCING, ReplicaState.READY, ReplicaState.DRAINING)
            syncing, ready, draining = (len(node.core.replicas.all(kind)) for kind in kinds)
            what = "stopped" if node.stopped else "leaving" if node.core.leaving else "running"
            yield f"{node.name:<8} {what:<9} {syncing:>7} {ready:>5} {draining:>8}"
        for client in self.swarm.clients:
            what = "running" if client.alive else "dead"
            yield (
                f"{client.name:<8} {what}; {len(client.chunks) - client.left} of "
                f"{len(client.chunks)} chunks committed; reads: {client.answered} answered, "
                f"{client.unanswered} not in time"
            )

    def check(self, words: Words) -> list[str]:
        """Print the promises that are not kept."""
        _none(words)
        found = self.swarm.problems()
        more = [f"... and {len(found) - _MOST_TOLD} more"] if len(found) > _MOST_TOLD else []
        return [*found[:_MOST_TOLD], *more] or ["all promises kept"]

    def _node(self, name: str) -> Node:
        for node in self.swarm.nodes:
            if node.name == name:
                return node
        raise UsageError(f"there is no {name}" if name else _NAMELESS)

    def _some(self, names: Words) -> list[Node]:
        if names == ["all"]:
            return list(self.swarm.storages)
        if not names:
            raise UsageError(_NAMELESS)
        return [self._node(name) for name in names]

    def _running(self, names: Words) -> list[Node]:
        nodes = self._some(names)
        for node in nodes:
            if not node.alive or node.stopped:
                raise UsageError(f"{node.name} is not running")
        return nodes

    def _running_storages(self, names: Words) -> list[Storage]:
        return [_storage(node) for node in self._running(names)]

    def _storage(self, names: Words) -> Storage:
        _none(names[1:])
        return _storage(self._node(names[0] if names else ""))

    def _two(self, names: Words) -> tuple[Node, Node]:
        if len(names) != 2:
            raise UsageError("name two nodes")
        return self._node(names[0]), self._node(names[1])


COMMANDS: dict[str, Command] = {
    "storages": Scenario.storages,
    "join": Scenario.join,
    "liars": Scenario.liars,
    "run": Scenario.run,
    "settle": Scenario.settle,
    "torn crash": Scenario.torn_crash,
    "crash": Scenario.crash,
    "lose": Scenario.lose,
    "restart": Scenario.restart,
    "stop": Scenario.stop,
    "go on": Scenario.go_on,
    "leave": Scenario.leave,
    "partition": Scenario.partition,
    "one way": Scenario.one_way,
    "weather": Scenario.weather,
    "slow disk": Scenario.slow_disk,
    "slow": Scenario.slow,
    "mend": Scenario.mend,
    "quick disk": Scenario.quick_disk,
    "full disk": Scenario.full_disk,
    "free disk": Scenario.free_disk,
    "status": Scenario.status,
    "check": Scenario.check,
}


def _storage(node: Node) -> Storage:
    if not isinstance(node, Storage):
        raise UsageError(f"{node.name} is no storage peer")
    return node


def _committed(client: Client) -> str:
    done = len(client.chunks) - client.left
    return f"{client.name} has {done} chunks of {len(client.chunks)} committed"


def _none(words: Words) -> None:
    if words:
        raise UsageError(f"{words[0]!r} is one word too many here")


def _number(words: Words, most: float) -> float:
    try:
        (text,) = words
        value = float(text)
    except ValueError:
        raise UsageError(f"give one number, not {' '.join(words)!r}") from None
    if not 0 <= value <= most:
        raise UsageError(f"{text} is not between 0 and {most:g}")
    return value


def _whole(words: Words, most: int) -> int:
    value = _number(words, most)
    if value != int(value):
        raise UsageError(f"give a whole number, not {value:g}")
    return int(value)


def _range(words: Words) -> tuple[int, int]:
    text = words[0] if len(words) == 1 else ""
    low, high = (whole_number(end, 999_999) for end in text.partition("-")[::2])
    if low is None or high is None or low > high:
        raise UsageError("say which chunks: push 0-9")
    return low, high
