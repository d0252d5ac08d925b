"""Renders the state of a swarm on this machine: a table for people, plain values for JSON."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from giaann_p2p.local.control import Answer
    from giaann_p2p.local.peer import View

_TITLES = ["peer", "state", "process", "for", "listens at", "metrics", "memory", "restarts"]
_GAP = "  "


def table(answer: "Answer") -> str:
    """Return a table with one line per peer; columns that are empty for all peers are left out."""
    rows = [_TITLES, *(_row(peer) for peer in answer.peers)]
    kept = [at for at in range(len(_TITLES)) if any(row[at] for row in rows[1:])]
    widths = [max(len(row[at]) for row in rows) for at in kept]
    return "\n".join(
        _GAP.join(row[at].ljust(width) for at, width in zip(kept, widths, strict=True)).rstrip()
        for row in rows
    )


def by_role(answer: "Answer") -> str:
    """Return a line for each role that counts its peers by their state."""
    counts: dict[str, Counter[str]] = {}
    for peer in answer.peers:
        counts.setdefault(peer.role, Counter())[str(peer.state)] += 1
    return "\n".join(
        f"{role:<{max(map(len, counts))}}{_GAP}"
        + ", ".join(f"{number} {state}" for state, number in found.most_common())
        for role, found in counts.items()
    )


def health(answer: "Answer") -> str:
    """Return a line that says how many of the peers are ready."""
    ready = sum(peer.state == "ready" for peer in answer.peers)
    return f"{ready} of {len(answer.peers)} peers are ready"


def swarm_json(answer: "Answer", folder: Path) -> dict[str, Any]:
    """Return what the supervisor reports of a swarm as plain values, for JSON."""
    return {
        "folder": str(folder),
        "link": answer.link,
        "supervisor": answer.pid,
        "peers": msgspec.to_builtins(answer.peers),
    }


def what_next(answer: "Answer", folder: Path, option: str) -> str:
    """Return lines with the commands that a user of a newly started swarm may want next."""
    return "\n".join(
        [
            *(f"served over HTTP at http://{url}" for url in gateways(answer)),
            f"logs and data are in {folder}",
            "from another terminal:",
            f"  giaann swarm status{option}            show the state of each peer",
            f"  giaann swarm kill storage-1{option}    kill one; the others continue",
            f"  giaann swarm add storage{option}       add one more",
            f"  giaann swarm down{option}              end the swarm",
        ]
    )


def gateways(answer: "Answer") -> list[str]:
    """Return where the gateways to a swarm listen."""
    return [peer.listen for peer in answer.peers if peer.role == "gateway" and peer.listen]


def state(peer: "View") -> str:
    """Return the state of a peer in words: how it ended, or what it is doing."""
    from giaann_p2p.local.peer import how_ended

    if peer.code is not None:
        return how_ended(peer.code)
    if peer.told and peer.told != peer.state:
        return f"{peer.state} ({peer.told})"
    return str(peer.state)


def _row(peer: "View") -> list[str]:
    return [
        peer.name,
        state(peer),
        str(peer.pid or ""),
        _duration(peer.seconds),
        peer.listen if peer.pid else "",
        str(peer.metrics_port) if peer.pid and peer.metrics_port else "",
        f"{peer.memory / 1e6:,.1f} MB" if peer.memory else "",
        str(peer.restarts or ""),
    ]


def _duration(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minute} min"
    return f"{minute} min {second} s" if minute else f"{second} s"
