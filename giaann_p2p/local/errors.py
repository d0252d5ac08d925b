"""Errors of a swarm on this machine."""

from giaann_p2p.errors import GiaannError


class LocalSwarmError(GiaannError):
    """A swarm on this machine could not start, or has ended; the message has the reason."""


class NotRunningError(LocalSwarmError):
    """No supervisor answers for the swarm: it has not been started, or has ended."""


class EndedError(NotRunningError):
    """The swarm has ended in good order, because a user ended it."""
