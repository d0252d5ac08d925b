"""The network of these tests breaks what it is told to break, and nothing else."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.netns.network import Host, Network

pytestmark = pytest.mark.netns
_PORT = 4100
_SERVE = f"""
import socket
door = socket.create_server(("0.0.0.0", {_PORT}))
print("open", flush=True)
while True:
    with door.accept()[0] as one:
        one.sendall(one.recv(1))
"""
_ASK = f"""
import socket, sys
with socket.create_connection((sys.argv[1], {_PORT}), 1.0) as one:
    one.settimeout(1.0)
    one.sendall(b"x")
    assert one.recv(1) == b"x"
    sys.exit(one.recv(1) != b"")
"""


@contextmanager
def serving(host: Host) -> Iterator[None]:
    """Have somebody on a host who sends back a byte and hangs up."""
    command = host.command([sys.executable, "-c", _SERVE])
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"open\n"
            yield
        finally:
            process.kill()


def reaches(host: Host, address: str) -> bool:
    """Tell whether somebody on a host is answered, and told of the end."""
    try:
        host.run(sys.executable, "-c", _ASK, address)
    except OSError:
        return False
    return True


def test_a_cut_is_between_two_sides_only(network: Network) -> None:
    one, other, third = network.host(), network.host(), network.host()
    with serving(one), serving(third):
        assert reaches(other, one.address)
        network.cut([other], [one])
        assert not reaches(other, one.address)
        assert reaches(other, third.address)
        network.heal()
        assert reaches(other, one.address)


@pytest.mark.parametrize("there", [True, False])
def test_what_is_cut_one_way_is_of_no_use_the_other_way(network: Network, there: bool) -> None:
    one, other = network.host(), network.host()
    with serving(one):
        network.cut_one_way([one if there else other], [other if there else one])
        assert not reaches(other, one.address)
        network.heal()
        assert reaches(other, one.address)


def test_of_a_half_open_connection_the_end_is_not_seen(network: Network) -> None:
    one, other = network.host(), network.host()
    with serving(one):
        network.half_open(one)
        assert not reaches(other, one.address)
        network.heal()
        assert reaches(other, one.address)


def test_a_host_that_loses_next_to_all_is_not_there(network: Network) -> None:
    one, other = network.host(), network.host()
    with serving(one):
        network.loss(one, 99.9)
        assert not reaches(other, one.address)
        network.loss(one, 0.0)
        assert reaches(other, one.address)


def test_an_address_that_was_changed_is_nobodys(network: Network) -> None:
    one, other = network.host(), network.host()
    before = one.address
    with serving(one):
        one.change_address("10.77.0.99")
        assert reaches(other, "10.77.0.99")
        assert not reaches(other, before)


def test_nothing_is_left_of_it(network: Network) -> None:
    own = [Path(f"/proc/{host.holder}") for host in (network.host(), network.host())]
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, check=True).stdout
    assert b"port0" not in links
    with subprocess.Popen(network.hosts[0].command(["sleep", "60"])) as process:
        while network.hosts[0].processes() != [process.pid]:
            assert process.poll() is None
        process.kill()
    assert network.hosts[0].processes() == []
    network.close()
    assert not any(one.exists() for one in own)
