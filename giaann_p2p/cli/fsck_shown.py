"""Renders what `giaann fsck` has found: lines for people."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from giaann_p2p.cli.phrases import counted, names, some

if TYPE_CHECKING:
    from giaann_p2p.swarm.members.checkup import Report


def report_lines(report: "Report", expected: str, now: float) -> Iterator[str]:
    """Yield the lines of a check's report: totals, faults, and whether the digest is `expected`."""
    yield f"{report.shards} shards, {report.rows:,} rows, {report.connections:,} connections"
    for shards, what in (
        (report.lost, "served by nobody"),
        (report.apart, "with replicas that have different chunks, at least for now"),
        (report.under, "with too few replicas"),
    ):
        if shards:
            yield f"{counted(len(shards), 'shard')} {what}: {some(map(str, shards), len(shards))}"
    if lost := report.losses.shards:
        yield f"{report.losses.words(now)}: {some(map(str, lost), len(lost))}"
    for one in report.damaged:
        what = "differs from replicas with the same chunks"
        yield f"shard {one.shard} {what}, at {names(one.peers)}"
    if report.silent:
        yield f"no answer from {names(report.silent)}"
    if report.digest:
        yield f"digest {report.digest}"
    if expected:
        yield f"solo   {expected}"
        agree = "agree" if report.digest == expected else "differ"
        yield f"the swarm and the solo database {agree}"
    if report.agrees:
        yield "every shard is served, and its replicas agree"
