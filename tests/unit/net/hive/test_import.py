"""What it costs to import the network: nothing, but for who takes hivemind."""

import subprocess
import sys

import pytest

PROGRAM = """
import pkgutil, sys, giaann_p2p.net
for found in pkgutil.iter_modules(giaann_p2p.net.__path__, "giaann_p2p.net."):
    if found.name != "giaann_p2p.net.hive":
        __import__(found.name)
import giaann_p2p.net.hive
print("hivemind" in sys.modules)
"""


BINDINGS = """
import sys
from pathlib import Path
from giaann_p2p.net.hive.bindings import Multiaddr, p2pd_pb2
from giaann_p2p.net.hive.host import Host
print(*sorted({"torch", "hivemind", "hivemind.proto.p2pd_pb2"} & sys.modules.keys()))
address = "/ip4/127.0.0.1/tcp/4100"
ours = p2pd_pb2.ConnectRequest(peer=b"peer", addrs=[Multiaddr(address).to_bytes()])
from hivemind.proto import p2pd_pb2 as theirs
from hivemind.utils.multiaddr import Multiaddr as Theirs
read = theirs.ConnectRequest.FromString(ours.SerializeToString())
print(read.peer.decode(), Theirs(read.addrs[0]))
"""


def test_a_host_needs_no_hivemind_and_hivemind_can_be_imported_after_it() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BINDINGS], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["", "peer /ip4/127.0.0.1/tcp/4100"]


@pytest.mark.slow
def test_only_the_modules_of_hive_import_hivemind() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
