"""Where to find peers: what the directory says, then what the user gave."""

from types import SimpleNamespace
from typing import cast

from giaann_p2p.node.members.address_book import AddressBook
from giaann_p2p.swarm.members.directory import Directory
from tests.unit.node.helpers import identity


def test_the_addresses_that_the_user_gave_come_last_even_if_the_directory_has_them() -> None:
    book = AddressBook(["seed", "other"], lambda _: identity(1).peer)
    assert book.seeds() == ["seed", "other"]
    said = SimpleNamespace(addresses=lambda: ["seed", "peer", "gone", "peer"])
    book.directory = cast(Directory, said)
    assert book.seeds() == ["peer", "gone", "seed", "other"]
