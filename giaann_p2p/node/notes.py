"""Restores state that an earlier run of this peer saved, if it can be read."""

import logging
from collections.abc import Callable

from giaann_p2p.errors import UsageError


def take_in(restore: Callable[[bytes], None], data: bytes | None, log: logging.Logger) -> None:
    """Restore the state that an earlier run saved as `data`, if it saved any.

    Unreadable data is logged and ignored, because the peer can work without it.
    """
    if data is None:
        return
    try:
        restore(data)
    except UsageError as error:
        log.warning("%s; it is ignored, and a new one will be written", error)
