"""Swarms on this machine are found by their processes."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from giaann_p2p.local import linux
from giaann_p2p.local.folder import Folder, Record
from giaann_p2p.local.here import folder_of
from giaann_p2p.local.roles import Spec
from giaann_p2p.swarm.wire.link import Link
from tests.unit.peers.helpers import LINK

ID = Link.read(LINK).swarm_id


@contextmanager
def peer_of(folder: Path) -> Iterator[None]:
    """Run a process of the swarm in a folder."""
    environment = {**os.environ, linux.MARK: str(folder)}
    process = subprocess.Popen(["sleep", "1000"], env=environment)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_a_swarm_is_found_while_it_runs(tmp_path: Path) -> None:
    for name, link in (("damaged", None), ("new", ""), ("bees", LINK)):
        (tmp_path / name).mkdir()
        if link is None:
            (tmp_path / name / "swarm.json").write_text("{")
        else:
            Folder(tmp_path / name).keep(Record(spec=Spec(), link=link))
    assert folder_of(ID) is None
    with peer_of(tmp_path / "damaged"), peer_of(tmp_path / "new"), peer_of(tmp_path / "bees"):
        assert folder_of(ID) == tmp_path / "bees"
        assert folder_of(b"x" * 32) is None
    assert folder_of(ID) is None
