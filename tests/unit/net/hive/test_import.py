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


@pytest.mark.slow
def test_only_the_modules_of_hive_import_hivemind() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
