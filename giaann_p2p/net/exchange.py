"""One request and its response, from when one side knows of it until it has ended on that side."""

from giaann_p2p.net.bodies import Incoming, Outgoing
from giaann_p2p.net.states import LinkState


class Exchange:
    """One side's state of a request."""

    __slots__ = ("held", "incoming", "outgoing", "request", "state")

    def __init__(self, request: int, state: LinkState) -> None:
        self.request = request
        self.state = state
        self.incoming: Incoming | None = None
        """A long body being received."""
        self.outgoing: Outgoing | None = None
        """A body that is not completely sent."""
        self.held = 0
        """The bytes of room that the request has reserved for incoming data."""

    def __repr__(self) -> str:
        return f"<Exchange {self.request}: {self.state.name.lower()}>"
