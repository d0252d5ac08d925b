"""Join links as users give them: whole, cut, or by a name under which they were saved."""

from pathlib import Path

import pytest

from giaann_p2p.client.links import SavedLinks, full_link, read_link
from giaann_p2p.errors import DamagedError, UsageError
from giaann_p2p.net.hive.peer_id import libp2p_name
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.link import Link

ADDRESSES = tuple(
    f"/ip4/127.0.0.{number}/tcp/4100/p2p/{libp2p_name(Identity.from_seed(seed * 32).peer)}"
    for number, seed in enumerate((b"a", b"b", b"c"), 1)
)
LINK = Link(bytes(range(32)), ADDRESSES)


@pytest.fixture(autouse=True)
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SavedLinks:
    """The usual place is this test's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return SavedLinks()


def test_a_whole_link() -> None:
    assert read_link(f" {LINK}\n") == LINK
    assert full_link(str(LINK)) == str(LINK)


def test_a_link_that_was_cut_anywhere_is_reported_as_cut() -> None:
    text = str(LINK)
    whole = {str(Link(LINK.swarm_id, ADDRESSES[:count])) for count in (1, 2, 3)}
    for length in range(len("giaann://"), len(text)):
        if (cut := text[:length]) in whole:
            assert read_link(cut).addresses == ADDRESSES[: cut.count(",") + 1]
            continue
        with pytest.raises(
            UsageError, match=r"the join link is cut off after '.*': copy all of it"
        ):
            read_link(cut)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "begins with giaann://, not with ''"),
        ("http://bees.example.org", "begins with giaann://, not with 'http://be'"),
        (str(LINK).replace("aaaq", "aaa0"), "digits 2 to 7, not '0'"),
        (str(LINK).replace("127.0.0.1", "127.0.0.1;"), "does not consist of parts like"),
        (f"giaann://{'a' * 52}/ip4/127.0.0.1/tcp/1/p2p/{'Q' * 46}", "has no usable address"),
    ],
)
def test_what_is_wrong_otherwise_is_named(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_link(text)


def test_a_name_stands_for_the_link_that_was_saved_under_it(saved: SavedLinks) -> None:
    assert saved.all() == {}
    saved.save("bees", LINK)
    saved.save("wasps-2", Link(LINK.swarm_id, ADDRESSES[:1]))
    assert read_link("bees") == LINK
    assert full_link("bees") == str(LINK)
    assert sorted(SavedLinks().all()) == ["bees", "wasps-2"]
    saved.save("bees", Link(LINK.swarm_id, ADDRESSES[1:]))
    assert read_link("bees").addresses == ADDRESSES[1:]
    saved.forget("bees")
    with pytest.raises(UsageError, match="'bees' is neither a join link"):
        read_link("bees")


def test_a_name_that_was_never_saved(saved: SavedLinks) -> None:
    saved.save("bees", LINK)
    with pytest.raises(UsageError, match=r"'beez' is neither a join link .* did you mean bees\?"):
        read_link("beez")
    with pytest.raises(UsageError, match=r"no link is saved as 'beez'; did you mean bees\?"):
        saved.forget("beez")


@pytest.mark.parametrize("name", ["", "giaann://x", "a b", "-x", "x" * 65, "bées", "../x"])
def test_what_is_not_a_name(saved: SavedLinks, name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid name"):
        saved.save(name, LINK)


@pytest.mark.parametrize("data", [b"{", b'{"bees": 3}', b"\xff", b"[" * 5000])
def test_a_file_of_another_form(saved: SavedLinks, tmp_path: Path, data: bytes) -> None:
    saved.save("bees", LINK)
    (tmp_path / "giaann" / "links.json").write_bytes(data)
    with pytest.raises(DamagedError, match=r"damaged \((it|a value) .*\): repair or remove it"):
        read_link("bees")
    assert read_link(str(LINK)) == LINK
