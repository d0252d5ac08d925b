"""Caches the checks of deltas, because all peers of a simulation get the same bytes."""

from collections.abc import Callable

from giaann_p2p.errors import GiaannError
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.voucher import Notary

_MOST = 4096


def checked(manifest: Manifest, members: Admission) -> Callable[[Update], None]:
    """Return a swarm's check with a cache, whose key is all that the result depends on."""
    notary = Notary(manifest.swarm_id, manifest.layout, manifest.redundancy, members)
    found = dict[tuple[object, ...], GiaannError | None]()

    def check(update: Update) -> None:
        what = update.job, update.chunk, update.shards.tobytes(), bytes(update.parcel), update.seal
        of = members.revoked.number, what
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
