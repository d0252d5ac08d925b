"""The state machines of a connection and of a request; a transition they do not list is an error.

The rules of a connection:

1. Both sides may send requests from the first byte on. The side that dialled numbers its requests
   1, 3, 5..., the other side 2, 4, 6...; no number is used twice, and requests begin in the order
   of their numbers.
2. A side that says goodbye makes no more requests, but still answers. A side that receives a
   goodbye replies with its own.
3. Once both sides have said goodbye and no request is open, the connection is over. If the stream
   ends before that, the connection is broken, and every open request fails.

The rules of a request, as its caller sees it:

4. ASKING: the request is being sent. The peer may refuse it before it is complete.
5. WAITING: the request is sent. The peer replies with a response, the start of a long response, or
   an error.
6. GETTING: a long response is arriving, in chunks up to the credit given and a matching end frame.
7. DONE: the response or an error has arrived, or the caller has cancelled. After a cancel neither
   side has to send more for the request, and frames of it that still arrive are dropped unread.

The rules of a request, as its server sees it:

8. TAKING: a long request is arriving, as in rule 6. SERVED: the request is complete, and this side
   is working on the response.
9. ANSWERING: the response is being sent; a long one needs credit.
10. DONE: the response or an error is sent, or the caller has cancelled.
"""

from enum import Enum, auto

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.net.frames import Kind


class _Quick(Enum):
    """An Enum whose members hash by identity: Enum's hash is slow, and a call hashes about ten."""

    __hash__ = object.__hash__


class Phase(_Quick):
    """The phases of a connection: rules 1 to 3 of this module."""

    OPEN = auto()
    LEAVING = auto()
    """This side has said goodbye, and has not received one yet."""
    DRAINING = auto()
    """Both sides have said goodbye; open requests may still finish."""
    OVER = auto()


class LinkState(_Quick):
    """The states of a request: rules 4 to 10 of this module."""

    UNKNOWN = auto()
    ASKING = auto()
    WAITING = auto()
    GETTING = auto()
    TAKING = auto()
    SERVED = auto()
    ANSWERING = auto()
    DONE = auto()


class LocalEvent(_Quick):
    """Actions of this side: the events of the state machines that are not received frames."""

    LEAVE = auto()
    """This side says goodbye."""
    ASK = auto()
    """This side makes a request."""
    ANSWER = auto()
    """This side begins to send the response to a request of the peer."""
    REFUSE = auto()
    """This side refuses a request of the peer, or gives it up with an error."""
    SENT = auto()
    """The last byte of a request or response is on its way."""
    DROP = auto()
    """This side gives up a request of its own."""


_PHASES: dict[tuple[Phase, Kind | LocalEvent], Phase] = {
    (Phase.OPEN, LocalEvent.ASK): Phase.OPEN,
    (Phase.OPEN, LocalEvent.LEAVE): Phase.LEAVING,
    (Phase.LEAVING, LocalEvent.LEAVE): Phase.LEAVING,
    (Phase.DRAINING, LocalEvent.LEAVE): Phase.DRAINING,
    (Phase.OVER, LocalEvent.LEAVE): Phase.OVER,
    (Phase.OPEN, Kind.GOODBYE): Phase.DRAINING,
    (Phase.LEAVING, Kind.GOODBYE): Phase.DRAINING,
    (Phase.OPEN, Kind.REQUEST): Phase.OPEN,
    (Phase.LEAVING, Kind.REQUEST): Phase.LEAVING,
    (Phase.OPEN, Kind.LONG): Phase.OPEN,
    (Phase.LEAVING, Kind.LONG): Phase.LEAVING,
}

_STATES: dict[tuple[LinkState, Kind | LocalEvent], LinkState] = {
    (LinkState.ASKING, LocalEvent.SENT): LinkState.WAITING,
    (LinkState.ASKING, Kind.CREDIT): LinkState.ASKING,
    (LinkState.ASKING, Kind.ERROR): LinkState.DONE,
    (LinkState.WAITING, Kind.ERROR): LinkState.DONE,
    (LinkState.WAITING, Kind.RESPONSE): LinkState.DONE,
    (LinkState.WAITING, Kind.LONG): LinkState.GETTING,
    (LinkState.GETTING, Kind.CHUNK): LinkState.GETTING,
    (LinkState.GETTING, Kind.END): LinkState.DONE,
    (LinkState.GETTING, Kind.ERROR): LinkState.DONE,
    (LinkState.ASKING, LocalEvent.DROP): LinkState.DONE,
    (LinkState.WAITING, LocalEvent.DROP): LinkState.DONE,
    (LinkState.GETTING, LocalEvent.DROP): LinkState.DONE,
    (LinkState.UNKNOWN, Kind.REQUEST): LinkState.SERVED,
    (LinkState.UNKNOWN, Kind.LONG): LinkState.TAKING,
    (LinkState.TAKING, Kind.CHUNK): LinkState.TAKING,
    (LinkState.TAKING, Kind.END): LinkState.SERVED,
    (LinkState.TAKING, Kind.CANCEL): LinkState.DONE,
    (LinkState.TAKING, LocalEvent.REFUSE): LinkState.DONE,
    (LinkState.SERVED, Kind.CANCEL): LinkState.DONE,
    (LinkState.SERVED, LocalEvent.REFUSE): LinkState.DONE,
    (LinkState.SERVED, LocalEvent.ANSWER): LinkState.ANSWERING,
    (LinkState.ANSWERING, Kind.CREDIT): LinkState.ANSWERING,
    (LinkState.ANSWERING, Kind.CANCEL): LinkState.DONE,
    (LinkState.ANSWERING, LocalEvent.REFUSE): LinkState.DONE,
    (LinkState.ANSWERING, LocalEvent.SENT): LinkState.DONE,
}

CALLER = frozenset({LinkState.ASKING, LinkState.WAITING, LinkState.GETTING})
"""The states of an open request that this side made."""


def next_phase(phase: Phase, happened: Kind | LocalEvent) -> Phase:
    """Return a connection's next phase after a received frame or an action of this side.

    Raises MessageError for a received frame, or UsageError for an action, that is invalid now.
    """
    try:
        return _PHASES[phase, happened]
    except KeyError:
        raise _wrong(f"on a connection that is {phase.name.lower()}", happened) from None


def next_state(state: LinkState, happened: Kind | LocalEvent) -> LinkState:
    """Return a request's next state after a received frame or an action of this side.

    Raises MessageError for a received frame, or UsageError for an action, that is invalid now.
    """
    try:
        return _STATES[state, happened]
    except KeyError:
        raise _wrong(f"for a request that is {state.name.lower()}", happened) from None


def _wrong(where: str, happened: Kind | LocalEvent) -> MessageError | UsageError:
    fault = MessageError if isinstance(happened, Kind) else UsageError
    return fault(f"{happened.name.lower()} is not allowed {where}")
