"""Who is welcome in a swarm no longer: the founder's list, of which the newest counts.

A list says all, so whoever has the newest needs no other. It is signed by the founder: anybody may
hand it on. With somebody goes all that it has let in. Some are *disowned*, too: what they learned
counts no longer. Which chunks that are is in a later edition, when the founder has asked the owners
(see `agreeing`); then all withdraw these, and no others (see `withdrawing`). They stay in all
editions that follow: who was away, or is new, still has to know.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from giaann_p2p.errors import TokenError
from giaann_p2p.swarm.identity import SIGNATURE_BYTES, Identity, Peer, PeerField, verified
from giaann_p2p.swarm.withdrawn import MOST as MOST_WITHDRAWN
from giaann_p2p.swarm.withdrawn import MOST_BYTES as MOST_OF_CHUNKS
from giaann_p2p.swarm.withdrawn import Chunk, Part, fault_of, parts_of, roots_in

MOST_REVOKED = 1 << 11
MOST_BYTES = 2 * MOST_REVOKED * 34 + MOST_OF_CHUNKS + 256
_KIND = "revoked"

_SwarmId = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_Signature = Annotated[bytes, msgspec.Meta(max_length=SIGNATURE_BYTES)]


class Revoked(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One edition of the list."""

    swarm_id: _SwarmId
    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)] = 0
    """Of the edition; 0 is the one before the first, which is empty."""
    peers: Annotated[tuple[PeerField, ...], msgspec.Meta(max_length=MOST_REVOKED)] = ()
    """In ascending order."""
    disowned: Annotated[tuple[PeerField, ...], msgspec.Meta(max_length=MOST_REVOKED)] = ()
    """Those of them whose work does not count, in ascending order."""
    withdrawn: Annotated[tuple[Part, ...], msgspec.Meta(max_length=MOST_WITHDRAWN)] = ()
    """The chunks that only such taught, by job, in ascending order."""
    signature: _Signature = b""

    @classmethod
    def read(cls, data: bytes, swarm_id: bytes, founder: Peer) -> "Revoked":
        """Read a list, whoever sent it; TokenError says what is wrong with it."""
        if len(data) > MOST_BYTES:
            raise TokenError(f"a list of revoked members has at most {MOST_BYTES:,} bytes")
        try:
            found = msgspec.msgpack.decode(data, type=cls)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise TokenError(f"this is no list of revoked members: {error}") from None
        if found.swarm_id != swarm_id:
            raise TokenError("this list of revoked members is another swarm's")
        sets = [found.peers, found.disowned]
        in_order = all(list(peers) == sorted(set(peers)) for peers in sets)
        if found.to_bytes() != data or not (in_order and {*found.disowned} <= {*found.peers}):
            raise TokenError("the list of revoked members is not in the one form that it may have")
        if fault := fault_of(found.withdrawn):
            raise TokenError(f"the list of revoked members has {fault}")
        if not verified(founder, _KIND, found.unsigned(), found.signature):
            raise TokenError("the founder did not sign this list of revoked members")
        return found

    def next(
        self,
        founder: Identity,
        peers: set[Peer],
        disowned: Iterable[Peer] = (),
        withdrawn: Mapping[Chunk, bytes] | None = None,
    ) -> "Revoked":
        """Return the next edition, with exactly these peers, of which some are disowned.

        More chunks may be `withdrawn`; those that are stay so.
        """
        if len(peers) > MOST_REVOKED:
            raise TokenError(
                f"at most {MOST_REVOKED:,} can be revoked: let those go whose tokens have run out"
            )
        chunks = self.withdrawn
        if withdrawn:
            chunks = parts_of({**withdrawn, **roots_in(chunks)})
        if (count := sum(map(len, chunks))) > MOST_WITHDRAWN:
            raise TokenError(f"{count:,} chunks; at most {MOST_WITHDRAWN:,} can be withdrawn")
        strangers = tuple(sorted(peers))
        liars = tuple(sorted(peers.intersection(disowned)))
        draft = Revoked(self.swarm_id, self.number + 1, strangers, liars, chunks)
        signature = founder.sign(_KIND, draft.to_bytes())
        return msgspec.structs.replace(draft, signature=signature)

    def unsigned(self) -> bytes:
        """Return what is signed."""
        return msgspec.structs.replace(self, signature=b"").to_bytes()

    def to_bytes(self) -> bytes:
        """Return the one encoding of this list."""
        return msgspec.msgpack.encode(self)
