"""Write requirements.lock anew: python -m tests.lock [--check]

It has what constraints.txt pins, each with the digest of the file that pip would install here. So
it is for machines like the one that it was written on; its first lines say which.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CONSTRAINTS, LOCK = ROOT / "constraints.txt", ROOT / "requirements.lock"
HEAD = """\
# The packages of constraints.txt with digests: pip install --require-hashes -r requirements.lock,
# then pip install --no-deps --editable . For CPython {python} on {system}, with torch's CPU build;
# elsewhere use constraints.txt. Made by scripts/lock.
# The constraints are for packages that others ask for with extras: pip would take their newest
# release, and refuse it for want of a digest, as soon as there is a newer one.
--constraint constraints.txt
"""


def lock_of(report: dict[str, Any]) -> str:
    """Return the lock for what pip reports that it would install."""
    lines = sorted(
        (_line(found) for found in report["install"] if "archive_info" in found["download_info"]),
        key=str.lower,
    )
    python = ".".join(platform.python_version_tuple()[:2])
    head = HEAD.format(python=python, system=f"{platform.system()} {platform.machine()}")
    return head + "".join(lines)


def _line(found: dict[str, Any]) -> str:
    what = found["metadata"]
    version = what["version"].partition("+")[0]  # any build of it, if it has the digest
    digest = found["download_info"]["archive_info"]["hashes"]["sha256"]
    return f"{what['name']}=={version} \\\n    --hash=sha256:{digest}\n"


def pip(*arguments: str) -> None:
    """Have pip work out what it would install, as on a machine that has nothing."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    subprocess.run([*command, *arguments], cwd=ROOT, check=True)


def main() -> None:
    """Write the lock, or check that pip finds files with its digests."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--check", action="store_true", help="write nothing; see that it works")
    if options.parse_args().check:
        pip("--require-hashes", "--requirement", str(LOCK))
        return
    with tempfile.NamedTemporaryFile("r") as report:
        pip("--report", report.name, "--constraint", str(CONSTRAINTS), ".[dev]")
        LOCK.write_text(lock_of(json.load(report)))


if __name__ == "__main__":
    main()
