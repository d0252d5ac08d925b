"""p2pd's program file, and the check that it is a known build.

p2pd comes with hivemind as a binary, and does everything that a peer does on the network. So its
digest is compared with those in hivemind's published packages before it is started. That takes 25
ms, once for this process and the processes forked from it, as long as the file stays the same.
"""

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from giaann_p2p.errors import GiaannError
from giaann_p2p.net.hive.bindings import HIVEMIND

OWN = "GIAANN_P2PD_SHA256"
"""The environment variable for the digest of a p2pd that the user has built."""
KNOWN = {
    "42f8f48e62583b97cdba3c31439c08029fb2b9fc506b5bdd82c46b7cc1d279d8": "Linux, x86-64",
    "046f18480c785a84bdf139d7486086d379397ca106cb2f0191598da32f81447a": "Linux, arm64",
    "fe00f9d79e8e4e4c007144d19da10b706c84187b3fb84de170f4664c91ecda80": "macOS, x86-64",
    "0404981a9c2b7cab5425ead2633d006c61c2c7ec85ac564ef69413ed470e65bd": "macOS, arm64",
}
"""The SHA-256 digests of p2pd in the packages of hivemind 1.1.12, and their platforms."""


class DaemonError(GiaannError):
    """p2pd cannot be started; the message includes what p2pd last printed."""


def known_program() -> Path:
    """Return the path of p2pd's program; raise DaemonError unless its digest is known."""
    program = HIVEMIND / "hivemind_cli" / "p2pd"
    check(program)
    return program


def check(program: Path) -> None:
    """Raise DaemonError unless the program's digest is published, or set by the user."""
    try:
        found = program.stat()
        digest = _digest(program, found.st_size, found.st_mtime_ns, found.st_ino)
    except OSError as error:
        raise DaemonError(
            f"p2pd cannot be read: {error}; reinstall hivemind for this machine"
        ) from None
    own = os.environ.get(OWN, "").strip().lower()
    if digest not in KNOWN and digest != own:
        raise DaemonError(
            f"{program} is not started: its SHA-256 is {digest}, which no package of hivemind"
            " 1.1.12 has. Install it again (pip install --force-reinstall --no-deps"
            f" hivemind==1.1.12); if you have built it yourself, set {OWN}={digest}"
        )


@lru_cache(maxsize=4)
def _digest(program: Path, _size: int, _changed: int, _inode: int) -> str:
    """Return a file's digest, cached until the file's size, time or inode changes."""
    with program.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
