"""The founder's list of revoked peers, disowned peers and withdrawn chunks.

The newest edition counts. Each edition is complete, so a peer needs no other, and is signed by the
founder, so any peer may pass it on. Revoking a peer also revokes all peers that it has admitted.

Some revoked peers are *disowned*, too: their work no longer counts. The founder then asks the
owners which chunks that concerns (see `orphan_quorum`), and names these chunks in a later edition.
All peers withdraw exactly those (see `retract`). The chunks stay in every later edition, because
peers that are new or were away still have to withdraw them.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from giaann_p2p.errors import TokenError
from giaann_p2p.swarm.wire.identity import SIGNATURE_BYTES, Identity, Peer, PeerField, verified
from giaann_p2p.swarm.wire.withdrawal_filter import MOST_BYTES as MOST_OF_SEARCH
from giaann_p2p.swarm.wire.withdrawal_filter import NOTHING, WithdrawalFilter
from giaann_p2p.swarm.wire.withdrawn import MOST as MOST_WITHDRAWN
from giaann_p2p.swarm.wire.withdrawn import MOST_BYTES as MOST_OF_CHUNKS
from giaann_p2p.swarm.wire.withdrawn import Chunk, Part, fault_of, parts_of, roots_in

MOST_REVOKED = 1 << 11
"""Maximum number of revoked peers in one edition."""
MOST_BYTES = 2 * MOST_REVOKED * 34 + MOST_OF_CHUNKS + MOST_OF_SEARCH + 256
"""Maximum length of an encoded edition, in bytes."""
_KIND = "revoked"

_SwarmId = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_Signature = Annotated[bytes, msgspec.Meta(max_length=SIGNATURE_BYTES)]


class Revoked(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One edition of the founder's list of revoked peers, disowned peers and withdrawn chunks."""

    swarm_id: _SwarmId
    number: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)] = 0
    """Number of the edition; 0 stands for the empty list before the first edition."""
    peers: Annotated[tuple[PeerField, ...], msgspec.Meta(max_length=MOST_REVOKED)] = ()
    """The revoked peers, ascending."""
    disowned: Annotated[tuple[PeerField, ...], msgspec.Meta(max_length=MOST_REVOKED)] = ()
    """Revoked peers whose work no longer counts either, ascending. Invariant: a subset of
    `peers`."""
    withdrawn: Annotated[tuple[Part, ...], msgspec.Meta(max_length=MOST_WITHDRAWN)] = ()
    """The withdrawn chunks by job, ascending."""
    sought: WithdrawalFilter = NOTHING
    """Chunks that owners are to look for, so that a later edition can withdraw them."""
    signature: _Signature = b""

    @classmethod
    def read(cls, data: bytes, swarm_id: bytes, founder: Peer) -> "Revoked":
        """Decode and verify an edition of the founder's list; TokenError says what is wrong."""
        if len(data) > MOST_BYTES:
            raise TokenError(
                f"a list of revoked members has at most {MOST_BYTES:,} bytes, not {len(data):,}"
            )
        try:
            found = msgspec.msgpack.decode(data, type=cls)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise TokenError(f"this is not a list of revoked members: {error}") from None
        if found.swarm_id != swarm_id:
            raise TokenError("this list of revoked members is another swarm's")
        sets = [found.peers, found.disowned]
        in_order = all(list(peers) == sorted(set(peers)) for peers in sets)
        if found.to_bytes() != data or not (in_order and {*found.disowned} <= {*found.peers}):
            raise TokenError("the list of revoked members is not in its canonical form")
        if fault := fault_of(found.withdrawn) or found.sought.fault():
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
        sought: WithdrawalFilter = NOTHING,
    ) -> "Revoked":
        """Return the next edition, with exactly these revoked peers, some of them disowned.

        `withdrawn` maps further chunks to withdraw to their roots; no chunk is ever removed.
        `sought` holds for this edition only. TokenError if there are too many peers or chunks.
        """
        if len(peers) > MOST_REVOKED:
            raise TokenError(
                f"at most {MOST_REVOKED:,} peers can be revoked: drop those whose tokens have"
                " expired"
            )
        chunks = self.withdrawn
        if withdrawn:
            chunks = parts_of({**withdrawn, **roots_in(chunks)})
        if (count := sum(map(len, chunks))) > MOST_WITHDRAWN:
            raise TokenError(
                f"{count:,} chunks are too many: at most {MOST_WITHDRAWN:,} can be withdrawn"
            )
        strangers = tuple(sorted(peers))
        liars = tuple(sorted(peers.intersection(disowned)))
        draft = Revoked(self.swarm_id, self.number + 1, strangers, liars, chunks, sought)
        signature = founder.sign(_KIND, draft.to_bytes())
        return msgspec.structs.replace(draft, signature=signature)

    def unsigned(self) -> bytes:
        """Return the bytes that the founder signs: the encoding with an empty signature."""
        return msgspec.structs.replace(self, signature=b"").to_bytes()

    def to_bytes(self) -> bytes:
        """Return the canonical encoding of this edition of the list."""
        return msgspec.msgpack.encode(self)
