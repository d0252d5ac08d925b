"""One request and its response, as one side of a connection keeps track of them."""

from giaann_p2p.net.alarms import NEVER
from giaann_p2p.net.bodies import Incoming, Outgoing
from giaann_p2p.net.states import LinkState


class Exchange:
    """The state of one request and its response on this side of a connection."""

    __slots__ = ("held", "incoming", "outgoing", "request", "state", "until")

    def __init__(self, request: int, state: LinkState) -> None:
        self.request = request
        """The number of the request on its connection."""
        self.state = state
        self.incoming: Incoming | None = None
        """The long body being received; None if there is none."""
        self.outgoing: Outgoing | None = None
        """The body that is not completely sent yet; None if there is none."""
        self.until = NEVER
        """The time until which a body of the peer's request, or of the response to it, may take."""
        self.held = 0
        """The bytes of incoming data for which this request holds room."""

    def __repr__(self) -> str:
        return f"<Exchange {self.request}: {self.state.name.lower()}>"
