"""Checks whether a swarm's peers answer correctly, and whether this installation fits the swarm."""

import statistics
from collections.abc import Iterator, Sequence

from giaann_p2p.client.doctor.finding import Finding, note, ok, problem
from giaann_p2p.client.links import read_link
from giaann_p2p.errors import GiaannError, PeerError, UsageError
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest, Versions
from giaann_p2p.swarm.wire.member_messages import AskManifest, ManifestIs
from giaann_p2p.swarm.wire.messages import Refusal, decode, encode
from giaann_p2p.swarm.wire.record import LIFETIME, SKEW

_WITHIN = 6.0
"""Timeout of one call, in seconds."""
_MUCH = 120.0
"""Seconds by which this clock may differ from the others' before that is reported."""
_USUAL_AGE = LIFETIME / 6
"""Average age of a record, in seconds: peers prolong theirs after a third of its lifetime."""
_NEWER = "get a newer link from the founder"


def link_told(text: str) -> tuple[Finding, Link | None]:
    """Check a join link; return the finding, and the link if it can be read."""
    try:
        link = read_link(text)
    except UsageError as error:
        return problem("link", str(error), "copy the whole link again, as it was printed"), None
    count = len(link.addresses)
    return ok("link", f"names a swarm and {count} address{'' if count == 1 else 'es'}"), link


async def asked(
    transport: Transport, peer: Peer, swarm_id: bytes, within: float = _WITHIN
) -> tuple[Finding, Manifest | None]:
    """Ask a peer for the swarm's manifest; the answer also proves the peer's identity."""
    check = f"peer {name_of(peer)}"
    try:
        answer = decode(await transport.call(peer, encode(AskManifest()), timeout=within))
    except PeerError as error:
        return _unreached(check, " ".join(str(error).split())), None
    if isinstance(answer, Refusal):
        return problem(check, f"refuses: {answer.reason}", _NEWER), None
    try:
        if not isinstance(answer, ManifestIs):
            raise UsageError("its answer is not a manifest")
        manifest = Manifest.read(answer.manifest, swarm_id)
    except GiaannError as error:
        return problem(check, str(error), f"it is a peer of another swarm, or lies; {_NEWER}"), None
    return ok(check, "is the peer that the link names, and has the swarm's manifest"), manifest


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _unreached(check: str, words: str) -> Finding:
    """Return the finding on a peer that could not be called, from the words of p2pd's error."""
    if "mismatch" in words:
        return problem(check, "another peer answers at its address", _NEWER)
    _, _, tries = words.rpartition("all dials failed")
    said = f"cannot be reached: {tries.strip(' *') or words}"
    return problem(check, said, f"check that it runs and can be reached from here, or {_NEWER}")


def manifest_told(manifest: Manifest) -> Iterator[Finding]:
    """Check whether this installation fits a swarm's manifest, and report how it admits peers."""
    shards = _many(manifest.layout.shards, "shard")
    replicas = _many(manifest.replicas, "replica")
    yield ok("swarm", f"{manifest.name!r}: founded with {shards}, {replicas} of each")
    differences = manifest.differences(Versions(), computes=False)
    for difference in differences:
        said, _, remedy = difference.partition("; ")
        yield problem("versions", said, remedy)
    if not differences:
        yield ok("versions", f"this giaann-p2p speaks the swarm's protocol, {manifest.protocol}")
    if manifest.admission == "token":
        yield note(
            "admission",
            "this swarm admits only peers with a token of its founder",
            "ask the founder for one",
        )


def computing(manifest: Manifest) -> Finding:
    """Check whether this machine could run a compute peer, too; storage peers do not need that."""
    from giaann_p2p.model.profiles import profile_of

    try:
        profile_of(manifest.spec).warm_up()
    except GiaannError as error:
        said, _, remedy = str(error).rpartition("; ")
        return note("model", f"{said}: this machine can store, but not compute", remedy)
    return ok("model", "this machine can parse texts for the swarm's model, so it can compute")


def clock(lived: Sequence[int], now: float, refused: int = 0) -> Finding:
    """Compare this machine's clock with the times at which other peers last showed that they live.

    `lived`: these times; `now`: this clock; both in seconds since 1970. `refused`: the number of
    records that were rejected, which a wrong clock may explain.
    """
    trust = "compare `date -u` with a clock that you trust; timedatectl set-ntp true keeps it right"
    if not lived:
        return note(
            "clock",
            "cannot be compared: no peer's record could be read"
            + (f", {refused} were refused" if refused else "")
            + f". There are no peers yet, or this clock is off by more than {SKEW // 60} minutes",
            trust,
        )
    ahead = now - _USUAL_AGE - statistics.median(lived)
    far = f"{abs(ahead):,.0f} s {'ahead of' if ahead > 0 else 'behind'} that of most peers"
    if abs(ahead) > SKEW:
        return problem("clock", f"is {far}; beyond {SKEW} s other peers refuse this one", trust)
    if abs(ahead) > _MUCH:
        return note("clock", f"is {far}", trust)
    return ok("clock", "agrees with those of other peers")
