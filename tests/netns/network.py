"""A network on this machine: hosts with addresses of their own, and a switch that can be broken.

Each host is a network namespace with one interface, at 10.77.0.x; all hang on a bridge in one more
namespace, the switch. What is broken is broken in the switch, as on a wire: hosts notice nothing
but what does not arrive. The rules:

1. No namespace has a name, and no link is outside of them: a namespace lasts as long as the process
   that holds it, which the kernel kills with this one. So nothing is left behind, whatever happens,
   and the machine's own network is never touched.
2. All harm is a state of the `Network`; each change writes the switch's rules anew, at once.
3. What is lost is lost in silence: nobody is told, no connection is refused.

It takes root, iproute2 and nftables, and a kernel with veth, bridge, nft and tbf.
"""

import ctypes
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
_HOLD = (*_DIES_WITH_US, "unshare", "--net", "sleep", "infinity")
_BEGINS_WITHIN = 10.0
_FIRST, _MASK = 11, 24
_SWITCH = "10.77.0.254"
_BURST, _QUEUE = "16kb", "300ms"
_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A network namespace, and the process that holds it."""

    def __init__(self) -> None:
        self._holder = subprocess.Popen(_HOLD, stdin=subprocess.DEVNULL)
        self.path = Path(f"/proc/{self._holder.pid}/ns/net")
        until = time.monotonic() + _BEGINS_WITHIN
        while _of(self.path) in ("", _of(Path("/proc/self/ns/net"))):
            if self._holder.poll() is not None or time.monotonic() > until:
                self.close()
                raise OSError("no network namespace can be made here")
            time.sleep(0.005)
        self._name = _of(self.path)

    @property
    def holder(self) -> int:
        """The process by which the namespace is found."""
        return self._holder.pid

    def command(self, command: Sequence[str]) -> list[str]:
        """Return a command line that runs a command in here; it dies with this process."""
        return [*_DIES_WITH_US, "nsenter", f"--net={self.path}", "--", *command]

    def run(self, *command: str, given: str = "") -> str:
        """Run a command to its end; OSError with its own words if it fails."""
        done = subprocess.run(
            self.command(command), input=given, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def enter(self) -> None:
        """Have this thread, and what it starts from now on, be in here."""
        with self.path.open() as file:
            if _LIBC.setns(file.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "this thread cannot enter a namespace")

    def processes(self) -> list[int]:
        """Return all that are in here, but for the one that holds it."""
        there = (int(one.name) for one in Path("/proc").iterdir() if one.name.isdecimal())
        return [
            pid
            for pid in there
            if pid != self.holder and _of(Path(f"/proc/{pid}/ns/net")) == self._name
        ]

    def close(self) -> None:
        """Let go of it: it is gone with the last process in it."""
        self._holder.kill()
        self._holder.wait()


class Host(Namespace):
    """A machine of the network."""

    def __init__(self, number: int, switch: Namespace) -> None:
        super().__init__()
        self.port, self.address = f"port{number}", f"10.77.0.{_FIRST + number}"
        self._switch = switch
        try:
            self._plug_in()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<Host {self.address} at {self.port}>"

    def change_address(self, address: str) -> None:
        """Be at another address; the old one is nobody's from now on."""
        self.run("ip", "addr", "del", f"{self.address}/{_MASK}", "dev", "eth0")
        self.address = address
        self._take_address()

    def bandwidth(self, rate: str) -> None:
        """Let no more pass in each direction, as `2mbit`."""
        limit = ("root", "tbf", "rate", rate, "burst", _BURST, "latency", _QUEUE)
        self.run("tc", "qdisc", "replace", "dev", "eth0", *limit)
        self._switch.run("tc", "qdisc", "replace", "dev", self.port, *limit)

    @property
    def received(self) -> int:
        """How many bytes have come to it over its line."""
        return self._passed("rx")

    @property
    def sent(self) -> int:
        """How many bytes have left it over its line."""
        return self._passed("tx")

    def _passed(self, way: str) -> int:
        (interface,) = json.loads(self.run("ip", "-s", "-j", "link", "show", "eth0"))
        return int(interface["stats64"][way]["bytes"])

    def _plug_in(self) -> None:
        peer = ("peer", "name", "eth0", "netns", str(self.holder))
        self._switch.run("ip", "link", "add", self.port, "type", "veth", *peer)
        self._switch.run("ip", "link", "set", self.port, "master", "br0", "up")
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "link", "set", "eth0", "up")
        self._take_address()

    def _take_address(self) -> None:
        self.run("ip", "addr", "add", f"{self.address}/{_MASK}", "dev", "eth0")
        self.run("ip", "route", "add", "default", "via", _SWITCH)


class Network:
    """See the module."""

    def __init__(self) -> None:
        self.hosts: list[Host] = []
        self._cut: set[tuple[str, str]] = set()
        self._lossy: dict[str, float] = {}
        self._half_open: set[str] = set()
        self._switch = Namespace()
        try:
            self._switch.run("ip", "link", "add", "br0", "type", "bridge")
            self._switch.run("ip", "addr", "add", f"{_SWITCH}/{_MASK}", "dev", "br0")
            self._switch.run("ip", "link", "set", "br0", "up")
            self._break()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<Network of {self.hosts}>"

    def host(self) -> Host:
        """Plug in one more."""
        host = Host(len(self.hosts), self._switch)
        self.hosts.append(host)
        return host

    def cut(self, these: Iterable[Host], those: Iterable[Host]) -> None:
        """Let nothing pass between two sides."""
        these, those = list(these), list(those)
        self.cut_one_way(these, those)
        self.cut_one_way(those, these)

    def cut_one_way(self, these: Iterable[Host], those: Iterable[Host]) -> None:
        """Let nothing pass from one side to the other; but back."""
        those = list(those)
        self._cut |= {(one.port, other.port) for one in these for other in those if one != other}
        self._break()

    def loss(self, host: Host, percent: float) -> None:
        """Lose so many of the packets to a host and from it."""
        self._lossy[host.port] = percent
        self._break()

    def half_open(self, host: Host) -> None:
        """Lose all that tells of a connection's end, to a host and from it."""
        self._half_open.add(host.port)
        self._break()

    def heal(self) -> None:
        """Let everything pass again; a host's bandwidth stays what it is."""
        self._cut.clear()
        self._lossy.clear()
        self._half_open.clear()
        self._break()

    def close(self) -> None:
        """Take all of it away."""
        for host in self.hosts:
            host.close()
        self._switch.close()

    def _break(self) -> None:
        rules = [f'iifname "{one}" oifname "{other}" drop' for one, other in sorted(self._cut)]
        for port in sorted(self._half_open):
            rules += [f"{way} tcp flags & (fin | rst) != 0 drop" for way in _both_ways(port)]
        for port, percent in sorted(self._lossy.items()):
            chance = f"numgen random mod 1000 < {round(10 * percent)}"
            rules += [f"{way} {chance} drop" for way in _both_ways(port)]
        chain = ["type filter hook forward priority 0; policy accept;", *rules]
        table = ["chain forward {", *chain, "}"]
        lines = ["table bridge harm", "delete table bridge harm", "table bridge harm {", *table]
        self._switch.run("nft", "-f", "-", given="\n".join([*lines, "}", ""]))


def lacking() -> str:
    """Say what this machine lacks to make such a network; nothing if it can."""
    if os.geteuid() != 0:
        return "network namespaces take root"
    programs = ("setpriv", "unshare", "nsenter", "ip", "tc", "nft")
    if missing := [name for name in programs if shutil.which(name) is None]:
        names = ", ".join(missing)
        return f"{names} not found: is /usr/sbin in PATH? apt-get install iproute2 nftables"
    try:
        _tried()
    except OSError as error:
        return f"this kernel lacks something: {error}"
    return ""


def _tried() -> None:
    """Do once all that the tests do; OSError where that cannot be done."""
    network = Network()
    try:
        host = network.host()
        host.bandwidth("10mbit")
        network.cut([host], [network.host()])
        network.loss(host, 10.0)
        network.half_open(host)
    finally:
        network.close()


def _both_ways(port: str) -> tuple[str, str]:
    return f'iifname "{port}"', f'oifname "{port}"'


def _of(path: Path) -> str:
    """Return which namespace a process is in; empty if there is no such process."""
    try:
        return str(path.readlink())
    except OSError:
        return ""
