"""The state machines of a connection and of a request; any other transition is an error.

The rules of a connection:

1. Both sides may send requests from the first byte on. The side that dialled numbers its requests
   1, 3, 5..., the other one 2, 4, 6...; a number is never used twice, and requests begin in the
   order of their numbers.
2. A side that says goodbye makes no more requests, but still answers. A side that hears a goodbye
   says it, too.
3. Once both have said it and no request is open, the connection is over. A stream that ends before
   that is broken: every open request has failed.

The rules of a request, as its caller sees it:

4. ASKING until the last byte of it is on its way. It may be refused before that.
5. WAITING then, for a response, the beginning of a long one, or an error.
6. GETTING a long response: chunks, as far as there is credit, and a matching end frame.
7. It is over with the response or an error, or when the caller cancels: then neither side owes
   anything, and what still arrives for it is dropped unread.

And as its server sees it:

8. TAKING a long request, as in 6; a whole one, or one that is complete, is SERVED.
9. ANSWERING until the last byte of the response is on its way; a long one needs credit.
10. It is over with that, with an error, or when the caller cancels.
"""

from enum import Enum, auto

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.net.frames import Kind


class _Quick(Enum):
    """An Enum whose members hash by identity; Enum's own hash is slow, and a call takes ten."""

    __hash__ = object.__hash__


class Phase(_Quick):
    """The phases of a connection."""

    OPEN = auto()
    LEAVING = auto()
    """This side has said goodbye, and has not heard one."""
    DRAINING = auto()
    """Both sides have said goodbye."""
    OVER = auto()


class LinkState(_Quick):
    """The states of a request."""

    UNKNOWN = auto()
    ASKING = auto()
    WAITING = auto()
    GETTING = auto()
    TAKING = auto()
    SERVED = auto()
    ANSWERING = auto()
    DONE = auto()


class Deed(_Quick):
    """The acts of this side: events of the state machines that are not frames."""

    LEAVE = auto()
    ASK = auto()
    ANSWER = auto()
    REFUSE = auto()
    SENT = auto()
    """The last byte of a body is on its way."""
    DROP = auto()


_PHASES: dict[tuple[Phase, Kind | Deed], Phase] = {
    (Phase.OPEN, Deed.ASK): Phase.OPEN,
    (Phase.OPEN, Deed.LEAVE): Phase.LEAVING,
    (Phase.LEAVING, Deed.LEAVE): Phase.LEAVING,
    (Phase.DRAINING, Deed.LEAVE): Phase.DRAINING,
    (Phase.OVER, Deed.LEAVE): Phase.OVER,
    (Phase.OPEN, Kind.GOODBYE): Phase.DRAINING,
    (Phase.LEAVING, Kind.GOODBYE): Phase.DRAINING,
    (Phase.OPEN, Kind.REQUEST): Phase.OPEN,
    (Phase.LEAVING, Kind.REQUEST): Phase.LEAVING,
    (Phase.OPEN, Kind.LONG): Phase.OPEN,
    (Phase.LEAVING, Kind.LONG): Phase.LEAVING,
}

_STATES: dict[tuple[LinkState, Kind | Deed], LinkState] = {
    (LinkState.ASKING, Deed.SENT): LinkState.WAITING,
    (LinkState.ASKING, Kind.CREDIT): LinkState.ASKING,
    (LinkState.ASKING, Kind.ERROR): LinkState.DONE,
    (LinkState.WAITING, Kind.ERROR): LinkState.DONE,
    (LinkState.WAITING, Kind.RESPONSE): LinkState.DONE,
    (LinkState.WAITING, Kind.LONG): LinkState.GETTING,
    (LinkState.GETTING, Kind.CHUNK): LinkState.GETTING,
    (LinkState.GETTING, Kind.END): LinkState.DONE,
    (LinkState.GETTING, Kind.ERROR): LinkState.DONE,
    (LinkState.ASKING, Deed.DROP): LinkState.DONE,
    (LinkState.WAITING, Deed.DROP): LinkState.DONE,
    (LinkState.GETTING, Deed.DROP): LinkState.DONE,
    (LinkState.UNKNOWN, Kind.REQUEST): LinkState.SERVED,
    (LinkState.UNKNOWN, Kind.LONG): LinkState.TAKING,
    (LinkState.TAKING, Kind.CHUNK): LinkState.TAKING,
    (LinkState.TAKING, Kind.END): LinkState.SERVED,
    (LinkState.TAKING, Kind.CANCEL): LinkState.DONE,
    (LinkState.TAKING, Deed.REFUSE): LinkState.DONE,
    (LinkState.SERVED, Kind.CANCEL): LinkState.DONE,
    (LinkState.SERVED, Deed.REFUSE): LinkState.DONE,
    (LinkState.SERVED, Deed.ANSWER): LinkState.ANSWERING,
    (LinkState.ANSWERING, Kind.CREDIT): LinkState.ANSWERING,
    (LinkState.ANSWERING, Kind.CANCEL): LinkState.DONE,
    (LinkState.ANSWERING, Deed.REFUSE): LinkState.DONE,
    (LinkState.ANSWERING, Deed.SENT): LinkState.DONE,
}

CALLER = frozenset({LinkState.ASKING, LinkState.WAITING, LinkState.GETTING})
"""The states of a request that this side made."""


def next_phase(phase: Phase, happened: Kind | Deed) -> Phase:
    """Return the next phase; MessageError for an invalid frame, UsageError for an invalid act."""
    try:
        return _PHASES[phase, happened]
    except KeyError:
        raise _wrong(f"on a connection that is {phase.name.lower()}", happened) from None


def next_state(state: LinkState, happened: Kind | Deed) -> LinkState:
    """Return the next state; MessageError for an invalid frame, UsageError for an invalid act."""
    try:
        return _STATES[state, happened]
    except KeyError:
        raise _wrong(f"for a request that is {state.name.lower()}", happened) from None


def _wrong(where: str, happened: Kind | Deed) -> MessageError | UsageError:
    fault = MessageError if isinstance(happened, Kind) else UsageError
    return fault(f"{happened.name.lower()} cannot be {where}")
