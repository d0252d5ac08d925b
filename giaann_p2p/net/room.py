"""Byte budgets: bytes are reserved before they are held."""

from giaann_p2p.errors import UsageError


class Room:
    """A budget of bytes, which may be part of a wider one that is shared with others."""

    def __init__(self, limit: int, within: "Room | None" = None) -> None:
        self.limit = limit
        self.used = 0
        self._within = within

    def __repr__(self) -> str:
        return f"<Room: {self.used:,} of {self.limit:,} bytes>"

    def fits(self, size: int) -> bool:
        """Return whether there is room for some bytes now, here and in the wider budget."""
        within = self._within is None or self._within.fits(size)
        return within and self.used + size <= self.limit

    def take(self, size: int) -> bool:
        """Reserve some bytes, here and in the wider budget; return False if there is no room."""
        if self.used + size > self.limit:
            return False
        if self._within is not None and not self._within.take(size):
            return False
        self.used += size
        return True

    def give(self, size: int) -> None:
        """Return reserved bytes to the budget."""
        if size > self.used:
            raise UsageError(f"{size} bytes given back of {self.used} that were taken")
        self.used -= size
        if self._within is not None:
            self._within.give(size)
