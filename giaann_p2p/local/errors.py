"""Errors of swarms that run on this machine."""

from giaann_p2p.errors import GiaannError


class LocalSwarmError(GiaannError):
    """A swarm on this machine failed to start, to obey or to end; the message says why."""


class NotRunningError(LocalSwarmError):
    """No supervisor runs for the swarm: it was not started, or has ended."""


class EndedError(NotRunningError):
    """The swarm has ended in good order, because a user asked for it."""
