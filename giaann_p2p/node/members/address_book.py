"""Addresses of peers: those given at the start, and those that the peer directory adds later."""

from collections.abc import Callable, Iterable, Sequence

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.wire.identity import Peer


class AddressBook:
    """Looks up the addresses at which a peer may be dialled.

    `peer_of` returns the peer that an address names; it raises UsageError if there is none.
    """

    def __init__(self, named: Iterable[str], peer_of: Callable[[str], Peer]) -> None:
        self.directory: Directory | None = None
        """The peer directory; None until the peer is a member of its swarm."""
        self.strange: list[str] = []
        """One error message for each given address that names no peer."""
        self._named: dict[Peer, list[str]] = {}
        for address in dict.fromkeys(named):
            try:
                self._named.setdefault(peer_of(address), []).append(address)
            except UsageError as error:
                self.strange.append(str(error))

    def __repr__(self) -> str:
        return f"<AddressBook: {len(self._named)} peers named>"

    @property
    def named(self) -> list[str]:
        """The addresses given at the start that name a peer."""
        return [address for addresses in self._named.values() for address in addresses]

    @property
    def peers(self) -> list[Peer]:
        """The peers whose addresses were given at the start."""
        return list(self._named)

    def seeds(self) -> list[str]:
        """Return addresses of peers to contact first, in the order in which to try them.

        Addresses from the directory come first, those of live peers before others, and those given
        at the start come last.
        """
        known = self.directory.addresses() if self.directory is not None else []
        named = dict.fromkeys(self.named)
        return [*dict.fromkeys(one for one in known if one not in named), *named]

    def of(self, peer: Peer) -> Sequence[str]:
        """Return a peer's addresses: announced ones first, then those given at the start."""
        told = list[str]()
        if self.directory is not None:
            for role in ("storage", "compute"):
                said = self.directory.announcement(peer, role)
                told += said.addresses if said else ()
        return list(dict.fromkeys([*told, *self._named.get(peer, ())]))
