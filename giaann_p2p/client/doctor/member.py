"""Checks whether a swarm admits this machine."""

import time
from datetime import UTC, datetime

from giaann_p2p.client.doctor.finding import Finding, ok, problem
from giaann_p2p.errors import GiaannError
from giaann_p2p.node.members.membership import Membership
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import to_text
from giaann_p2p.swarm.wire.manifest import Manifest

_SOON = 7 * 24 * 3600


def member_told(manifest: Manifest, membership: Membership) -> Finding:
    """Check whether a folder's peer may join, with which rights, and for how long."""
    if manifest.admission == "open":
        return ok("token", "none is needed: everybody may join")
    try:
        name = to_text(membership.identity.peer)
    except GiaannError as error:
        return problem("token", str(error), "name a folder that can be written to: --data-dir")
    remedy = (
        f"send the name {name} to the swarm's founder, and keep the token that you get: "
        f"giaann token accept TOKEN --data-dir {membership.folder}"
    )
    try:
        token = membership.token
    except GiaannError as error:
        return problem("token", str(error), remedy)
    if token is None:
        return problem("token", f"there is none in {membership.folder}", remedy)
    now = time.time()
    found = Admission(manifest).look(membership.identity.peer, token.to_bytes(), now)
    if found.why:
        return problem("token", found.why, remedy)
    until = token.grants[-1].until
    ends = f"until {datetime.fromtimestamp(until, UTC):%Y-%m-%d}"
    if until - now < _SOON:
        return problem("token", f"it lasts only {ends}", remedy)
    return ok("token", f"it lets this machine be {found.rights}, {ends}")
