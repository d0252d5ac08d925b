"""Caches the checks of deltas, because all peers of a simulation get the same bytes."""

from collections.abc import Callable

from giaann_p2p.errors import GiaannError
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.manifest import Manifest, Rules
from giaann_p2p.swarm.wire.voucher import Notary

_MOST = 4096


class Notaries:
    """The checks that all peers of one swarm make; they share one cache.

    The cache's key is all that a result depends on: the delta, the number of the founder's list
    that the checking peer has, and the number of shards that it counts.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._found: dict[tuple[object, ...], GiaannError | None] = {}

    def check(self, members: Admission, rules: Callable[[], Rules]) -> Callable[[Update], None]:
        """Return the check of a peer with this admission and rules; it raises a GiaannError."""
        manifest, found = self._manifest, self._found
        notary = Notary(manifest.swarm_id, rules, manifest.redundancy, members)

        def check(update: Update) -> None:
            of = (
                members.revoked.number,
                rules().shards,
                update.job,
                update.chunk,
                update.shards.tobytes(),
                bytes(update.parcel),
                update.seal,
            )
            if of not in found:
                if len(found) >= _MOST:
                    found.clear()
                found[of] = _error(notary, update)
            if error := found[of]:
                raise error

        return check


def _error(notary: Notary, update: Update) -> GiaannError | None:
    try:
        notary.check(update)
    except GiaannError as error:
        return error
    return None
