"""Commands for advice to users: those of a local swarm differ from the general ones."""

from typing import NamedTuple


class Commands(NamedTuple):
    """The commands with which a user starts peers of a swarm."""

    local: str | None = None
    """The option that names a local swarm to `giaann swarm`, for example ` --dir my-swarm`, or
    empty; None for a swarm of several machines."""

    def add(self, role: str, count: int = 1) -> str:
        """Return the command that starts peers of a role."""
        if self.local is None:
            return f"giaann {role} --join LINK"
        many = "" if count == 1 else f" {count}"
        return f"giaann swarm add {role}{many}{self.local}"

    @property
    def where(self) -> str:
        """A phrase that says where a new peer may run; empty for a local swarm."""
        return ", here or on any machine," if self.local is None else ""

    @property
    def again(self) -> str:
        """A phrase that says how to restart stopped peers with the content of their disks."""
        if self.local is None:
            return "with the command that each was started with, and its folder"
        return f"with giaann swarm restart NAME{self.local}"

    @property
    def larger(self) -> str:
        """A phrase that says how to give full peers more capacity."""
        if self.local is None:
            return "start the full ones again with more --capacity"
        up = f"giaann swarm up --capacity SIZE{self.local}"
        return f"give each more with giaann swarm down{self.local} and {up}"


GENERAL = Commands()
