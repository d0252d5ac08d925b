"""Checks whether a swarm admits this machine's peer."""

import time
from datetime import UTC, datetime

from giaann_p2p.client.doctor.finding import Finding, ok, problem
from giaann_p2p.errors import GiaannError
from giaann_p2p.node.members.membership import Membership
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import to_text
from giaann_p2p.swarm.wire.manifest import Manifest

_SOON = 7 * 24 * 3600
"""A token that expires within this many seconds counts as a problem."""


def member_told(manifest: Manifest, membership: Membership) -> Finding:
    """Check whether the peer of a data folder may join, with which rights, and for how long."""
    if manifest.admission == "open":
        return ok("token", "none is needed: everybody may join")
    try:
        name = to_text(membership.identity.peer)
    except GiaannError as error:
        return problem(
            "token", str(error), "choose a folder that this user can write to: --data-dir FOLDER"
        )
    remedy = (
        f"send the name {name} to the swarm's founder; when you have the token, run "
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
        return problem("token", f"it is valid only {ends}", remedy)
    return ok("token", f"it lets this machine be {found.rights}, {ends}")
