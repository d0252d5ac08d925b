"""What may follow what, on a connection and in one request; all else is a MessageError.

The rules of a connection:

1. Both sides may ask from the first byte on; who dialled numbers its requests 1, 3, 5..., the other
   2, 4, 6...; a number is never used twice, and requests begin in the order of their numbers.
2. Who says goodbye asks nothing any more, but answers on. Who hears it, says it.
3. Once both have said it and nothing is open, the connection is over. A stream that ends before
   that is broken: whatever was open has failed.

The rules of a request, as its caller sees it:

4. ASKING until the last byte of it is on its way. It may be refused before that.
5. WAITING then, for a response, the beginning of a long one, or an error.
6. GETTING a long response: chunks, as many as there is credit for, and an end mark that fits.
7. It is over with the response or an error, or when the caller cancels it: then nothing is owed,
   and what still comes for it is dropped unread.

And as its server sees it:

8. TAKING a long request in, as in 6; a whole one, or one that is complete, is SERVED.
9. ANSWERING until the last byte of the response is on its way; a long one goes by credit.
10. It is over with that, with an error, or when the caller cancels.
"""

from enum import Enum, auto

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.net.frames import Kind


class _Quick(Enum):
    """An Enum whose members hash as any object; its own hash is slow, and each call takes ten."""

    __hash__ = object.__hash__


class Phase(_Quick):
    """Of a connection."""

    OPEN = auto()
    LEAVING = auto()
    """Goodbye said, not heard."""
    DRAINING = auto()
    """Goodbye said and heard."""
    OVER = auto()


class State(_Quick):
    """Of a request."""

    UNKNOWN = auto()
    ASKING = auto()
    WAITING = auto()
    GETTING = auto()
    TAKING = auto()
    SERVED = auto()
    ANSWERING = auto()
    DONE = auto()


class Deed(_Quick):
    """What this side does."""

    LEAVE = auto()
    ASK = auto()
    ANSWER = auto()
    REFUSE = auto()
    SENT = auto()
    """All of a body is on its way."""
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

_STATES: dict[tuple[State, Kind | Deed], State] = {
    (State.ASKING, Deed.SENT): State.WAITING,
    (State.ASKING, Kind.CREDIT): State.ASKING,
    (State.ASKING, Kind.ERROR): State.DONE,
    (State.WAITING, Kind.ERROR): State.DONE,
    (State.WAITING, Kind.RESPONSE): State.DONE,
    (State.WAITING, Kind.LONG): State.GETTING,
    (State.GETTING, Kind.CHUNK): State.GETTING,
    (State.GETTING, Kind.END): State.DONE,
    (State.GETTING, Kind.ERROR): State.DONE,
    (State.ASKING, Deed.DROP): State.DONE,
    (State.WAITING, Deed.DROP): State.DONE,
    (State.GETTING, Deed.DROP): State.DONE,
    (State.UNKNOWN, Kind.REQUEST): State.SERVED,
    (State.UNKNOWN, Kind.LONG): State.TAKING,
    (State.TAKING, Kind.CHUNK): State.TAKING,
    (State.TAKING, Kind.END): State.SERVED,
    (State.TAKING, Kind.CANCEL): State.DONE,
    (State.TAKING, Deed.REFUSE): State.DONE,
    (State.SERVED, Kind.CANCEL): State.DONE,
    (State.SERVED, Deed.REFUSE): State.DONE,
    (State.SERVED, Deed.ANSWER): State.ANSWERING,
    (State.ANSWERING, Kind.CREDIT): State.ANSWERING,
    (State.ANSWERING, Kind.CANCEL): State.DONE,
    (State.ANSWERING, Deed.REFUSE): State.DONE,
    (State.ANSWERING, Deed.SENT): State.DONE,
}

CALLER = frozenset({State.ASKING, State.WAITING, State.GETTING})
"""The states of a request that this side made."""


def next_phase(phase: Phase, happened: Kind | Deed) -> Phase:
    """Return the phase that follows; an error if nothing can."""
    try:
        return _PHASES[phase, happened]
    except KeyError:
        raise _wrong(f"on a connection that is {phase.name.lower()}", happened) from None


def next_state(state: State, happened: Kind | Deed) -> State:
    """Return the state that follows; an error if nothing can."""
    try:
        return _STATES[state, happened]
    except KeyError:
        raise _wrong(f"for a request that is {state.name.lower()}", happened) from None


def _wrong(where: str, happened: Kind | Deed) -> MessageError | UsageError:
    fault = MessageError if isinstance(happened, Kind) else UsageError
    return fault(f"{happened.name.lower()} cannot be {where}")
