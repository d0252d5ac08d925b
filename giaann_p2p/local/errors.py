"""What goes wrong with a swarm on this machine."""

from giaann_p2p.errors import GiaannError


class LocalSwarmError(GiaannError):
    """A swarm on this machine that could not start, or has ended; the message has the reason."""


class NotRunningError(LocalSwarmError):
    """Nobody answers for the swarm: it has not been started, or has ended."""


class EndedError(NotRunningError):
    """The swarm has ended in good order, because somebody wished so."""
