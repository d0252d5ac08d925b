"""The access control of a hostile peer that continues after the founder has revoked it."""

from giaann_p2p.node.members.gate import Gate


class ShamelessGate(Gate):
    """A gate that never finds a fault with its own peer, so that revoking the peer does not end it.

    An honest peer stops as soon as it learns that it is revoked. The checks of other peers are the
    honest ones.
    """

    def own_fault(self) -> str:
        """Return no reason to stop."""
        return ""
