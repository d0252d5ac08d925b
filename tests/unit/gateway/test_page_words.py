"""The page has words for each state of a swarm that the gateway may tell."""

import re
from pathlib import Path
from typing import get_args

import pytest

import giaann_p2p.gateway
from giaann_p2p.swarm.members.causes import Verdict

PAGE = Path(giaann_p2p.gateway.__file__).parent / "page" / "swarm"


def test_each_verdict_is_shown_as_what_it_is() -> None:
    shown = (PAGE / "verdict.js").read_text().split("const SAID = {")[1].split("\n};")[0]
    tones = dict(re.findall(r"^  (\w+): \{ word: .*tone: \"(\w+)\"", shown, re.MULTILINE))
    assert {*get_args(Verdict)} <= tones.keys()
    assert [state for state, tone in tones.items() if tone == "good"] == ["healthy"]
    assert {state for state, tone in tones.items() if tone == "bad"} >= {"full", "lost"}


def test_a_full_peer_is_shown_as_full() -> None:
    assert 'if (full) return { word: "full", tone: "bad"' in (PAGE / "peers_table.js").read_text()


@pytest.mark.parametrize("name", ["columns_view.js", "words_table.js"])
def test_a_column_of_which_peers_list_no_more_words_is_said_to_have_at_least_these(
    name: str,
) -> None:
    shown = (PAGE.parent / "columns" / name).read_text()
    assert '${at_least ? "at least " : ""}' in shown
    assert re.search(r"\{ [^}]*\bat_least\b[^}]* \}", shown)
