"""Byte budgets, which bound memory: bytes are reserved before they are stored."""

from giaann_p2p.errors import UsageError


class Room:
    """A budget of bytes, which may be part of a wider budget that others share."""

    def __init__(self, limit: int, within: "Room | None" = None) -> None:
        self.limit = limit
        """The most bytes that this budget allows."""
        self.used = 0
        """The number of bytes reserved. Invariant: 0 <= used <= limit."""
        self._within = within

    def __repr__(self) -> str:
        return f"<Room: {self.used:,} of {self.limit:,} bytes>"

    def fits(self, size: int) -> bool:
        """Return whether some bytes fit now, both into this budget and into the wider one."""
        within = self._within is None or self._within.fits(size)
        return within and self.used + size <= self.limit

    def take(self, size: int) -> bool:
        """Reserve some bytes, here and in the wider budget; return False if they do not fit."""
        if self.used + size > self.limit:
            return False
        if self._within is not None and not self._within.take(size):
            return False
        self.used += size
        return True

    def give(self, size: int) -> None:
        """Give reserved bytes back to this budget and to the wider one."""
        if size > self.used:
            raise UsageError(f"{size} bytes were given back, but only {self.used} are reserved")
        self.used -= size
        if self._within is not None:
            self._within.give(size)
