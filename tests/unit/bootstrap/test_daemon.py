"""Founding a swarm, going on with it, and which addresses a link tells."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from errno import EACCES
from pathlib import Path

import pytest

from bootstrap import daemon
from bootstrap.daemon import _founded, _path, _resharding, _shape, serve, told_to_others
from bootstrap.options import BootstrapOptions
from giaann_p2p import subword_spec
from giaann_p2p.errors import DiskError, SpecError, TextError, UsageError
from giaann_p2p.net.hive.daemon import DaemonError
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.solo import sample
from giaann_p2p.store.cuts import Cut
from giaann_p2p.swarm.wire.link import MOST_ADDRESSES, Link
from giaann_p2p.swarm.wire.manifest import Manifest
from peers.folder import Folder
from peers.options import options as given_options
from tests.helpers import DATA

WIKI = DATA / "wiki.txt"

PEER = "/p2p/12D3KooWCocgU7xjjKSfjcJvxnTj8ChMyRgLBQ7AAYK2GBf5X1Tn"
LOOPBACK = f"/ip4/127.0.0.1/tcp/1{PEER}"
LOOPBACK_6 = f"/ip6/::1/tcp/1{PEER}"
PRIVATE = f"/ip4/192.168.1.7/tcp/1{PEER}"
LOCAL_6 = f"/ip6/fd00::1/tcp/1{PEER}"
PUBLIC = f"/ip4/8.8.8.8/tcp/1{PEER}"
NAME = f"/dns4/seed.example.org/tcp/1{PEER}"


@pytest.mark.parametrize(
    ("addresses", "told"),
    [
        ([LOOPBACK], [LOOPBACK]),
        ([LOOPBACK, LOOPBACK_6], [LOOPBACK, LOOPBACK_6]),
        ([LOOPBACK, PRIVATE], [PRIVATE]),
        ([LOOPBACK_6, PRIVATE, LOCAL_6, PUBLIC], [PUBLIC, PRIVATE, LOCAL_6]),
        ([PRIVATE, NAME, LOOPBACK], [NAME, PRIVATE]),
        (["/ip4/no-number/tcp/1", PRIVATE], ["/ip4/no-number/tcp/1", PRIVATE]),
    ],
)
def test_a_link_names_public_addresses_first(addresses: list[str], told: list[str]) -> None:
    assert list(told_to_others(addresses)) == told


def test_a_link_names_no_more_than_it_may() -> None:
    many = [f"/ip4/192.168.1.{at}/tcp/1{PEER}" for at in range(MOST_ADDRESSES)]
    found = told_to_others([*many, PUBLIC])
    assert len(found) == MOST_ADDRESSES
    assert found[0] == PUBLIC
    Link(bytes(32), found)


def test_a_peer_without_an_address_is_told_what_to_do() -> None:
    with pytest.raises(UsageError, match="give --listen"):
        told_to_others([])


def options(**given: object) -> BootstrapOptions:
    return given_options(BootstrapOptions, given)


def test_a_swarm_is_founded_once(tmp_path: Path) -> None:
    given = options(new="bees", shards=16, blocks=2, replicas=4)
    with Folder(tmp_path) as folder:
        first = _founded(given, folder)
        assert (first.name, first.layout.shards, first.layout.blocks) == ("bees", 16, 2)
        assert (first.replicas, first.quorum, first.admission) == (4, 3, "token")
        assert first.founder == open_key_file(tmp_path / "founder.key").peer
        assert Manifest.read(first.to_bytes(), first.swarm_id) == first
    with Folder(tmp_path) as folder:
        assert _founded(options(new="bees", shards=32), folder) == first
        assert _founded(options(), folder) == first
        with pytest.raises(UsageError, match=r"founded the swarm 'bees'; give another --data-dir"):
            _founded(options(new="wasps"), folder)


def test_column_segments_are_in_the_model_of_the_manifest(tmp_path: Path) -> None:
    with Folder(tmp_path / "with") as folder:
        founded = _founded(options(new="bees", column_segments=4), folder)
        assert founded.spec == subword_spec(column_segments=4)
    with Folder(tmp_path / "without") as folder:
        assert _founded(options(new="bees"), folder).spec == subword_spec()
    with pytest.raises(UsageError, match="an option of the profile subwords"):
        options(new="bees", profile="words", column_segments=4)


def test_columns_are_cut_as_said_or_as_a_text_shows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.Logger("founder")  # apart from those that other tests set up
    log.addHandler(caplog.handler)
    monkeypatch.setattr(daemon, "_LOG", log)
    shape = {"profile": "words", "shards": 64}
    with Folder(tmp_path / "said") as folder:
        founded = _founded(options(new="bees", cut="sea=4,day=16", **shape), folder)
        assert founded.layout.cuts == (Cut("day", 16), Cut("sea", 4))
        assert Manifest.read(founded.to_bytes()) == founded
        again = options(new="bees", cut="sea=8", **shape)
        assert _founded(again, folder) == founded  # as a service manager starts it again
        assert caplog.messages == [
            "--cut sea=8 has no effect: the swarm was founded before, and has 2 cut columns;"
            " giaann reshard --cut can change that while the swarm runs"
        ]
        _founded(options(new="bees", cut="Sea=4,day=16", **shape), folder)
        _founded(options(new="bees", cut_like="any.txt", **shape), folder)
        assert len(caplog.messages) == 1
        caplog.clear()
    with Folder(tmp_path / "shown") as folder:
        founded = _founded(options(new="bees", cut_like=str(WIKI), **shape), folder)
        cuts = {cut.word: cut.parts for cut in founded.layout.columns.cuts}
        assert cuts["anarchism"] > cuts["anarchist"] > 1
        assert f"cutting {len(cuts)} columns into {sum(cuts.values())} parts" in caplog.text
        assert f"; {len(cuts)} columns are divided by target" in _shape(founded)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"cut": "day=4", "cut_like": "a.txt"}, "give --cut to name the columns, or --cut-like"),
        ({"cut": "day=3"}, "must be a power of two"),
        ({"cut": "day"}, "give WORD=PARTS"),
        (
            {"new": "", "join": "giaann:", "cut": "day=4"},
            "--cut can only be given for a new swarm",
        ),
    ],
)
def test_cuts_that_cannot_be(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        options(**{"new": "bees"} | given)


def test_a_sample_that_is_not_there_founds_nothing(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        with pytest.raises(TextError, match=r"no\.txt"):
            _founded(options(new="bees", cut_like=str(tmp_path / "no.txt")), folder)
        empty = tmp_path / "empty.txt"
        empty.write_text("")
        with pytest.raises(TextError, match="nothing to learn in it"):
            _founded(options(new="bees", cut_like=str(empty)), folder)
        assert folder.manifest() is None


def test_a_signal_ends_the_learning_of_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks, begun = list[int](), asyncio.Event()

    async def story() -> None:
        loop = asyncio.get_running_loop()

        def sampled(_: Path, __: object, progress: Callable[[int], None]) -> None:
            loop.call_soon_threadsafe(begun.set)
            while True:
                progress(len(chunks))
                chunks.append(0)
                time.sleep(0.01)

        monkeypatch.setattr(sample, "sampled", sampled)
        given = options(new="bees", cut_like=str(WIKI), data_dir=str(tmp_path / "a"))
        task = asyncio.create_task(serve(given))
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    asyncio.run(story())
    assert list(tmp_path.iterdir()) == []


def test_a_founder_whose_port_is_taken_founds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with socket.socket() as taker:
        taker.bind(("127.0.0.1", 0))
        taker.listen()
        listen = (f"/ip4/127.0.0.1/tcp/{taker.getsockname()[1]}",)
        given = options(new="bees", listen=listen, data_dir=str(tmp_path / "a" / "b"))
        with pytest.raises(DaemonError, match="another process listens at"):
            asyncio.run(serve(given))
    assert capsys.readouterr().out == ""  # no link
    assert "founded" not in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_without_a_name_nothing_is_founded(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="founded no swarm yet: give --new NAME"):
        _founded(options(), Folder(tmp_path))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"replicas": 3, "quorum": 4}, "quorum must be 1 to 3"),
        ({"shards": 100}, "shards"),
        ({"blocks": 3}, "blocks"),
        ({"new": "x" * 65}, "name must have 1 to 64 printable characters"),
    ],
)
def test_what_no_swarm_can_be(tmp_path: Path, given: dict[str, object], complaint: str) -> None:
    with Folder(tmp_path) as folder:
        with pytest.raises((SpecError, UsageError), match=complaint):
            _founded(options(**{"new": "bees", **given}), folder)
        assert folder.manifest() is None


def test_only_with_the_founders_key_it_raises_the_rules_by_itself(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        _founded(options(new="bees"), folder)
        assert _resharding(options(new="bees"), folder) is None
        issuer = _resharding(options(reshard="auto"), folder)
        assert issuer is not None
        assert issuer.membership.folder == tmp_path
        folder.founder_key.unlink()
        with pytest.raises(UsageError, match=r"founder's key, and .*founder.key is missing"):
            _resharding(options(reshard="auto"), folder)
    with pytest.raises(UsageError, match="--reshard auto is for the peer that founded"):
        options(join="giaann://x", reshard="auto")


def test_where_its_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert _path(options(data_dir="/a/b")) == Path("/a/b")
    assert _path(options(new="my bees/../x")) == tmp_path / "giaann/my_bees____x/bootstrap"


def test_which_swarm_it_serves_must_be_said(tmp_path: Path) -> None:
    options(new="bees").check()
    options(join="giaann://x").check()
    for given in ({}, {"data_dir": str(tmp_path)}):
        with pytest.raises(UsageError, match="give --new NAME to found a swarm, or --join LINK"):
            options(**given).check()
    (tmp_path / "manifest.json").touch()
    options(data_dir=str(tmp_path)).check()


def test_a_folder_that_may_not_be_searched_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(DiskError, match=r"^/locked/manifest\.json: Permission denied$"):
        options(data_dir="/locked").check()


def test_a_new_swarm_keeps_its_directory_in_places_that_lie_near_each_other(
    tmp_path: Path,
) -> None:
    with Folder(tmp_path) as folder:
        assert _founded(options(new="bees"), folder).places == "near"
