"""One request and its response, from when it is known on a side until it is done there."""

from giaann_p2p.net.bodies import Incoming, Outgoing
from giaann_p2p.net.states import State


class Exchange:
    """What a side knows of it."""

    __slots__ = ("held", "incoming", "outgoing", "request", "state")

    def __init__(self, request: int, state: State) -> None:
        self.request = request
        self.state = state
        self.incoming: Incoming | None = None
        """A long body that is coming."""
        self.outgoing: Outgoing | None = None
        """A body of which something is still to be sent."""
        self.held = 0
        """Bytes taken of the room for what comes in."""

    def __repr__(self) -> str:
        return f"<Exchange {self.request}: {self.state.name.lower()}>"
