"""requirements.lock has a digest for all that constraints.txt pins, and for nothing else."""

import re
from pathlib import Path

from tests.lock import CONSTRAINTS, LOCK, lock_of

PIN = re.compile(r"([\w.-]+)==([\w.]+)")
LOCKED = re.compile(r"([\w.-]+==[\w.]+) \\\n    --hash=sha256:[0-9a-f]{64}\n")


def pins(path: Path) -> dict[str, str]:
    """Return the versions by the packages' names, written in one way."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith(("#", " ", "-"))]
    found = [PIN.match(line) for line in lines]
    assert all(found)
    return {re.sub(r"[-_.]+", "-", one[1]).lower(): one[2] for one in found if one}


def test_both_files_have_the_same_versions() -> None:
    assert pins(LOCK) == pins(CONSTRAINTS)


def test_each_line_has_a_digest() -> None:
    lines = re.sub(r"(?m)^#.*\n", "", LOCK.read_text())
    assert LOCKED.sub("", lines) == "--constraint constraints.txt\n"


def test_a_lock_leaves_out_what_is_no_file_and_takes_any_build_of_a_version() -> None:
    def found(name: str, version: str, **where: object) -> dict[str, object]:
        return {"metadata": {"name": name, "version": version}, "download_info": where}

    archive = {"hashes": {"sha256": "0" * 64}}
    report = [found("torch", "2.1.0+cpu", archive_info=archive), found("me", "1", dir_info={})]
    (line,) = LOCKED.findall(lock_of({"install": report}))
    assert line == "torch==2.1.0"
