"""The learning curves: how texts are cut, split and made plain, and a small one is measured."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.benchmarks.accuracy.__main__ import curve
from tests.benchmarks.accuracy.figures import Figures, Point
from tests.benchmarks.accuracy.plot import draw, points_of, pyplot
from tests.benchmarks.accuracy.split import Split, documents_of, shortened, split
from tests.benchmarks.corpora import untagged, verses
from tests.helpers import DATA


def test_each_twentieth_document_is_held_out(tmp_path: Path) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("".join(f"{number}\n" for number in range(100)))
    name, train, test = split(path, 2, 0)
    assert (name, test) == ("numbers.txt", ["20\n21\n", "60\n61\n"])
    assert "".join(train).split() == [str(n) for n in range(100) if n not in (20, 21, 60, 61)]
    with pytest.raises(SystemExit, match="10 documents are too few; --lines makes more"):
        split(path, 10, 0)


def test_a_form_feed_separates_documents_of_any_length() -> None:
    assert documents_of("a\nb\n\fc\n\f \n", 1) == ["a\nb\n", "c\n"]


def test_the_test_is_cut_where_lines_end() -> None:
    assert shortened(["one\ntwo\nthree\n", "four\n", "five six\n"], 15) == [
        "one\ntwo\n",
        "four\n",
        "five six\n",
    ]


def test_verses_lose_their_numbers() -> None:
    lines = ["bible: a release\n", "Genesis 1\n", "\n", "  1 In the\n", "bible(KJV) [Gen1:1]> x\n"]
    lines += ["\n", "1 Samuel 3\n", "\n", "  1 In the\n", "beginning\n", " 12 And\n", "bible(\n"]
    assert list(verses(lines)) == ["In the", "beginning", "And"]


def test_tags_are_taken_away_and_punctuation_stands_by_its_word() -> None:
    tagged = "\n\tHe/pps said/vbd ,/, ``/`` 1/2/cd (/( or/cc so/rb )/) ''/'' ./.\n\n\tYes/rb !/.\n"
    assert untagged(tagged) == 'He said, "1/2 (or so)".\nYes!'


def test_a_small_text_is_measured() -> None:
    text = (DATA / "quick.txt").read_text()
    (point,) = curve(Split("quick", [text], [text]), [1], set(), 1 << 40)
    assert (point.tokens, point.documents) == (298, 1)
    mix, three, five, lif, words = point.figures
    assert (mix.positions, lif.positions, three.positions) == (266, 266, 266)
    assert lif.given == pytest.approx(261 / 266)
    assert mix.given is not None
    assert mix.given > 0.99
    assert three.top1 < five.top1 <= 1
    assert (five.top5, words.bits_per_byte) == (1, None)
    assert mix.tiers is not None
    assert sum(choices for choices, _ in mix.tiers.values()) == 266
    (point,) = curve(Split("quick", [text], [text]), [1], {"words", "ngrams"}, 100)
    assert [figures.model for figures in point.figures] == ["mix"]


def test_accuracy_and_bits_are_drawn_from_what_was_written(tmp_path: Path) -> None:
    points = [
        Point(text, 1, tokens, [Figures("mix", 0.2, 0.3, bits_per_byte=bits), Figures("lif-test")])
        for text in ("one.txt", "two.txt")
        for tokens, bits in ((1000, 1.875), (2000, 1.625))
    ]
    written = json.loads(json.dumps(list(map(asdict, points))))
    assert points_of(written) == points
    drawn = tmp_path / "curve.svg"
    draw(points, drawn)
    shown = drawn.read_text()
    assert all(f">{text}<" in shown for text in ("one.txt", "two.txt", "next token right", "1k"))
    assert (shown.count(">bits a byte<"), shown.count(">mix, causal<")) == (1, 2)
    assert "Kneser-Ney" not in shown  # nobody measured it
    assert ">1.70<" in shown  # the scale of the bits


def test_without_matplotlib_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit, match=r"pip install 'giaann-p2p\[pictures\]'"):
        pyplot()
