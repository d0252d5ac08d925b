"""Pictures are drawn as SVG and PNG, the same each time, also of what strangers wrote."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from giaann_p2p.cli.pictures.column_picture import draw_column
from giaann_p2p.cli.pictures.map_picture import draw_map
from giaann_p2p.cli.shard_map import ShardMap, StoragePeer
from giaann_p2p.errors import StoreError
from giaann_p2p.gateway.views import ShownColumn
from tests.unit.cli.pictures.columns import BEE, lead, word

MAP = ShardMap(
    name="bees",
    replicas=2,
    peers=[StoragePeer("maya", "active"), StoragePeer("willi", "silent")],
    shards=[[("maya", "ready"), ("other", "ready")], [("maya", "syncing")], []],
)


def texts_of(path: Path) -> list[str]:
    root = ET.fromstring(path.read_text())  # noqa: S314  (this test's own file)
    return [
        "".join(one.itertext()).strip() for one in root.iter("{http://www.w3.org/2000/svg}text")
    ]


def test_a_columns_picture_has_its_words_and_where_they_lead(tmp_path: Path) -> None:
    draw_column(BEE, tmp_path / "bee.svg")
    texts = texts_of(tmp_path / "bee.svg")
    assert {"bee", "*bee*", "make", "guard", "honey", "sweet", "hive", "nectar"} <= {*texts}
    assert "3 of its 12 words, and what they lead to" in texts
    draw_column(msgspec.structs.replace(BEE, at_least=True), tmp_path / "bee.svg")
    assert "3 of at least 12 words, and what they lead to" in texts_of(tmp_path / "bee.svg")


def test_a_maps_picture_has_its_peers_and_what_is_lacking(tmp_path: Path) -> None:
    draw_map(MAP, tmp_path / "map.svg")
    texts = texts_of(tmp_path / "map.svg")
    assert {"bees", "maya", "willi silent", "ready", "syncing", "cold", MAP.summary} <= {*texts}


def test_a_map_without_peers_and_a_large_one_are_drawn(tmp_path: Path) -> None:
    draw_map(ShardMap(name="", replicas=1, peers=[], shards=[[]]), tmp_path / "none.svg")
    many = [StoragePeer(f"p{number}", "active") for number in range(130)]
    shards = [[(f"p{(shard * 7 + at) % 130}", "ready") for at in range(3)] for shard in range(1024)]
    draw_map(ShardMap(name="many", replicas=3, peers=many, shards=shards), tmp_path / "many.svg")
    assert (tmp_path / "many.svg").stat().st_size < 4 << 20


def test_the_same_picture_is_the_same_bytes(tmp_path: Path) -> None:
    for suffix in ("svg", "png"):
        files = [tmp_path / f"{number}.{suffix}" for number in range(2)]
        for file in files:
            draw_column(BEE, file)
        one, other = (file.read_bytes() for file in files)
        assert one == other
    assert (tmp_path / "0.png").read_bytes().startswith(b"\x89PNG")
    assert b"<dc:date>" not in (tmp_path / "0.svg").read_bytes()


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_whatever_a_stranger_calls_a_word_it_is_drawn(tmp_path: Path, suffix: str) -> None:
    strange = ["$x^{$", "<script>", "\x1b[31m", "\N{HAMMER}\U0001f41d", "w" * 500, "", "\ud800"]
    words = [word(one, 1, lead(one, one, 1.0)) for one in strange]
    column = ShownColumn(concept="$\\frac", size=9, words=words)
    draw_column(column, file := tmp_path / f"strange.{suffix}")
    if suffix == "svg":
        assert "<script>" in texts_of(file)
        assert b"<script" not in file.read_bytes()


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(StoreError, match=r"folder\.svg cannot be written"):
        draw_column(BEE, tmp_path / "folder.svg")


def test_drawing_takes_no_pyplot_and_commands_take_nothing_to_draw() -> None:
    program = """
import sys
from pathlib import Path
import giaann_p2p.cli.column, giaann_p2p.cli.solo, giaann_p2p.cli.swarm
assert "matplotlib" not in sys.modules
from giaann_p2p.cli.pictures.column_picture import draw_column
from tests.unit.cli.pictures.columns import BEE
draw_column(BEE, Path(sys.argv[1]))
assert "matplotlib.pyplot" not in sys.modules
"""
    file = Path(__file__).with_name("none") / "bee.svg"
    done = subprocess.run(
        [sys.executable, "-c", program, file], capture_output=True, text=True, check=False
    )
    assert "cannot be written: No such file or directory" in done.stderr
