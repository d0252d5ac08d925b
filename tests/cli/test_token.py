"""`giaann token`: asked for, given, kept, looked at; and what goes wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.token import Rights, Token
from tests.cli.conftest import Run

ADDRESS = "/ip4/127.0.0.1/tcp/9/p2p/12D3KooWKQUYJQn2xbZbaRMMEGhu1JuAAQq1nPXQLogs9fRfpFXc"
Boot = tuple[str, Path]


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boot:
    """The join link of a swarm, and the folder of its founder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    folder = tmp_path / "boot"
    folder.mkdir()
    founder = open_key_file(folder / "founder.key")
    manifest = Manifest.founded(founder, "club", admission="token")
    (folder / "manifest.json").write_bytes(manifest.to_bytes())
    return str(Link(manifest.swarm_id, (ADDRESS,))), folder


@pytest.fixture
def asks(giaann: Run, boot: Boot) -> Callable[..., str]:
    def name(*more: str | Path) -> str:
        done = giaann("token", "name", "--join", boot[0], *more)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return name


def test_a_client_asks_is_given_keeps_and_looks(
    giaann: Run, boot: Boot, asks: Callable[..., str], tmp_path: Path
) -> None:
    name = asks()
    assert asks() == name
    assert asks("--role", "storage") != name
    given = giaann("token", "issue", name, "--data-dir", boot[1], "--days", "7")
    assert given.returncode == 0
    (tmp_path / "mail").write_text(given.stdout)
    kept = giaann("token", "accept", tmp_path / "mail")
    assert kept.returncode == 0
    assert "/client: client, until " in kept.stdout
    assert (tmp_path / "home").is_dir()
    shown = giaann("token", "inspect", given.stdout)
    assert f"its founder lets {name} be: client, until" in shown.stdout
    told = json.loads(giaann("token", "inspect", given.stdout, "--json").stdout)
    assert told["grants"] == [
        {"member": name, "rights": "client", "until": told["grants"][0]["until"]}
    ]


def test_a_daemons_token_is_kept_in_its_folder(
    giaann: Run, boot: Boot, asks: Callable[..., str], tmp_path: Path
) -> None:
    name = asks("--data-dir", tmp_path / "bees")
    given = giaann("token", "issue", name, "--data-dir", boot[1], "--as", "storage,compute").stdout
    kept = giaann("token", "accept", given, "--data-dir", tmp_path / "bees")
    assert kept.stdout.startswith(f"saved in {tmp_path / 'bees'}: storage, compute, until")
    token = Token.from_text((tmp_path / "bees" / "token").read_text())
    assert token.grants[0].rights == Rights.STORAGE | Rights.COMPUTE


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("issue", "rubbish", "--data-dir", "BOOT"), "a peer's name has 52 letters"),
        (("issue", "NAME", "--data-dir", "/nowhere"), "/nowhere is not a peer's folder"),
        (("issue", "NAME", "--data-dir", "BOOT", "--as", "king"), "there is no right 'king'"),
        (("accept", "rubbish"), "a token begins with 'giaann-token:'"),
        (("accept", "TOKEN", "--data-dir", "HERE"), "this token is for the peer"),
        (("inspect", "giaann-token:aaaa"), "part of it is wrong or missing"),
        (("name", "--join", "rubbish"), "'rubbish' is neither a join link"),
        (("name", "--join", "LINK", "--role", "king"), "--role must be client, storage"),
        (("accept", "TOKEN", "--role", "king"), "--role must be client, storage"),
        (("withdraw", "--join", "LINK", "--data-dir", "BOOT"), "nobody is disowned: run `giaann"),
        (("revoke", "NAME", "--disown", "--join", "rubbish", "--data-dir", "BOOT"), "join link"),
        (("revoke", "rubbish", "--join", "LINK", "--data-dir", "BOOT"), "a peer's name has 52"),
    ],
)
def test_what_goes_wrong_is_told(
    giaann: Run,
    boot: Boot,
    asks: Callable[..., str],
    tmp_path: Path,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    name = asks()
    token = giaann("token", "issue", name, "--data-dir", boot[1]).stdout.strip()
    places = {
        "BOOT": str(boot[1]),
        "NAME": name,
        "LINK": boot[0],
        "TOKEN": token,
        "HERE": str(tmp_path / "other"),
    }
    done = giaann("token", *[places.get(one, one) for one in arguments])
    assert done.returncode in (1, 2)
    assert words in " ".join(done.stderr.replace("│", " ").split())
