"""Restores state that an earlier run of a peer noted down, as far as it can be read."""

import logging
from collections.abc import Callable

from giaann_p2p.errors import UsageError


def take_in(restore: Callable[[bytes], None], data: bytes | None, log: logging.Logger) -> None:
    """Restore a note of an earlier run, if there is one.

    A note that cannot be read is logged and ignored, because a peer still works without it.
    """
    if data is None:
        return
    try:
        restore(data)
    except UsageError as error:
        log.warning("%s; it is ignored, and written anew", error)
