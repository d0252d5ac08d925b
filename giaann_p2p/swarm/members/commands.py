"""Command lines for advice to users; they differ between local swarms and all other swarms."""

from typing import NamedTuple


class Commands(NamedTuple):
    """The commands with which a user starts peers of a swarm."""

    local: str | None = None
    """The option that names a local swarm to `giaann swarm`, for example ` --dir my-swarm`; empty
    for the default local swarm; None for a swarm of several machines."""

    def add(self, role: str, count: int = 1) -> str:
        """Return the command that starts `count` peers of a role."""
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
            return "each with its original command and data folder"
        return f"with giaann swarm restart NAME{self.local}"

    @property
    def larger(self) -> str:
        """A phrase that says how to give full peers more capacity."""
        if self.local is None:
            return "restart the full ones with a larger --capacity"
        up = f"giaann swarm up --capacity SIZE{self.local}"
        return f"give each peer more with giaann swarm down{self.local} and then {up}"


GENERAL = Commands()
