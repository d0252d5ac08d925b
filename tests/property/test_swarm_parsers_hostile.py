"""Whatever the bytes are, each parser of the swarm says what was said, or refuses."""

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.errors import EditionError, MessageError, RecordError, TokenError, UsageError
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.wire.edition import Edition
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest, Rules
from giaann_p2p.swarm.wire.patch import is_patch
from giaann_p2p.swarm.wire.pulse import Pulse, is_bare, is_short, joined
from giaann_p2p.swarm.wire.record import FRONT_BYTES, Announcement, Load, read, signed
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.shardset import most_bytes, packed, unpacked
from giaann_p2p.swarm.wire.token import Rights, Token, founded

PEER = Identity.from_seed(b"\1" * 32)
LAYOUT, NOW = Layout(shards=64), 1_800_000_000
RULES = Rules(LAYOUT.shards)
MANIFEST = Manifest.founded(PEER, "bees", layout=LAYOUT)
ADDRESS = "/ip4/203.0.113.7/tcp/4100/p2p/12D3KooWBmAwcd4PJNJvfV89HwE48nwkRmAgo8Vy3uQEyNNHBox2"
LINK = Link(MANIFEST.swarm_id, (ADDRESS, "/dns4/seed.example.org/tcp/4100/p2p/Qm1"))
ANNOUNCEMENT = Announcement(
    swarm_id=MANIFEST.swarm_id,
    peer=PEER.peer,
    role="storage",
    incarnation=1,
    sequence=2,
    issued=NOW,
    capacity=1 << 30,
    used=5,
    ready=packed(np.arange(5, 60, 3, dtype=np.uint16), LAYOUT.shards),
    syncing=packed(np.array([1, 2], np.uint16), LAYOUT.shards),
    load=Load(1, 2, 3, 4),
    addresses=(ADDRESS,),
)
RECORD = signed(PEER, ANNOUNCEMENT)
BODY = RECORD[FRONT_BYTES:]
DELEGATE, MEMBER = (Identity.from_seed(bytes([number]) * 32) for number in (2, 3))
TOKEN = founded(PEER, MANIFEST.swarm_id, DELEGATE.peer, Rights.DELEGATE | Rights.CLIENT, NOW)
TOKEN = TOKEN.given(DELEGATE, MEMBER.peer, Rights.CLIENT, NOW)
EDITION = Edition.signed(PEER, MANIFEST.swarm_id, 3, 5)
REVOKED = Revoked(MANIFEST.swarm_id).next(
    PEER,
    {MEMBER.peer, DELEGATE.peer},
    {MEMBER.peer},
    {(bytes(16), 3): bytes(16), (bytes(16), 9): bytes(16), (b"j" * 16, 0): b"r" * 16},
)


@st.composite
def edits(draw: st.DrawFn, data: bytes) -> bytes:
    """Draw bytes of which some were set, added or left out."""
    edited = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(edited)))
        end = min(len(edited), at + draw(st.integers(0, 3)))
        edited[at:end] = draw(st.binary(max_size=3))
    return bytes(edited)


@given(edits(MANIFEST.to_bytes()) | st.binary(max_size=300))
def test_bytes_are_the_manifest_or_refused(data: bytes) -> None:
    try:
        assert Manifest.read(data) == MANIFEST
    except MessageError:
        assert data != MANIFEST.to_bytes()


@given(edits(RECORD) | st.binary(max_size=300))
def test_bytes_are_the_record_or_refused(data: bytes) -> None:
    directory = Directory(MANIFEST.swarm_id, lambda: RULES)
    try:
        assert read(data, NOW, MANIFEST.swarm_id, RULES) == ANNOUNCEMENT
    except RecordError:
        assert data != RECORD
        try:
            assert directory.merge(data, NOW) is None
            assert is_patch(data) or is_short(data) or is_bare(data)  # of no known record
        except RecordError:
            assert directory.refused == 1
        assert len(directory) == 0


def tell(body: bytes) -> None:
    """Say what no honest peer says, under its own signature."""
    directory = Directory(MANIFEST.swarm_id, lambda: RULES)
    record = PEER.sign("record", body) + body
    try:
        merged = directory.merge(joined(Pulse(0, ANNOUNCEMENT.anchor), record), NOW)
    except RecordError:
        assert (directory.refused, len(directory)) == (1, 0)
        return
    assert merged is not None
    assert merged.is_new
    found = merged.said
    assert signed(PEER, found)  # it keeps all rules
    assert directory.live(NOW) == ([] if found.state == "left" else [found])
    assert directory.live(NOW + 300) == []
    for shard in range(LAYOUT.shards):
        assert set(directory.ready(shard, NOW)) <= {PEER.peer}


@given(edits(BODY) | st.binary(min_size=1, max_size=300))
def test_whatever_a_peer_signs_is_a_record_or_refused(body: bytes) -> None:
    tell(body)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, (1 << 64) - 1) | st.floats() | st.text(max_size=9)
    | st.binary(max_size=70),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=6,
)  # fmt: skip


@given(st.integers(0, len(Announcement.__struct_fields__) - 1), anything)
def test_any_value_in_a_field_is_a_record_or_refused(number: int, value: object) -> None:
    fields = [*msgspec.structs.astuple(ANNOUNCEMENT)]
    fields[number] = value
    tell(msgspec.msgpack.encode(fields))


@given(edits(str(LINK).encode()) | st.binary(max_size=200))
def test_a_text_is_a_link_or_refused(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        found = Link.read(text)
    except UsageError:
        assert text != str(LINK)
        return
    assert Link.read(str(found)) == found


@given(st.text(max_size=100))
def test_any_text_is_a_link_or_refused(text: str) -> None:
    for whole in (text, "giaann://" + text, str(LINK) + text):
        try:
            assert Link.read(str(Link.read(whole))) == Link.read(whole)
        except UsageError:
            continue


@given(st.integers(0, 16), st.data())
def test_bytes_are_one_set_of_shards_or_refused(power: int, data: st.DataObject) -> None:
    count = 1 << power
    some = data.draw(st.sets(st.integers(0, count - 1), max_size=40))
    valid = packed(np.array(sorted(some), np.uint16), count)
    assert unpacked(valid, count).tolist() == sorted(some)
    drawn = data.draw(edits(valid) | st.binary(max_size=20))
    try:
        found = unpacked(drawn, count)
    except MessageError:
        return
    assert packed(found, count) == drawn
    assert len(drawn) <= most_bytes(count)


@given(edits(TOKEN.to_bytes()) | st.binary(max_size=300))
def test_bytes_are_the_token_or_of_no_use(data: bytes) -> None:
    try:
        found = Token.read(data)
        found.standing(PEER.peer)
    except TokenError:
        assert data != TOKEN.to_bytes()
        return
    # A grant less is a token, too: the delegate's own.
    assert found in (TOKEN, Token(TOKEN.swarm_id, TOKEN.grants[:1]))


@given(edits(str(TOKEN).encode()) | st.binary(max_size=200))
def test_a_text_is_a_token_or_refused(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        found = Token.from_text(text)
    except TokenError:
        return
    assert Token.from_text(str(found)) == found


@given(edits(REVOKED.to_bytes()) | st.binary(max_size=300))
def test_bytes_are_the_list_of_the_revoked_or_refused(data: bytes) -> None:
    try:
        assert Revoked.read(data, MANIFEST.swarm_id, PEER.peer) == REVOKED
    except TokenError:
        assert data != REVOKED.to_bytes()


@given(edits(EDITION.to_bytes()) | st.binary(max_size=200))
def test_bytes_are_the_edition_or_refused(data: bytes) -> None:
    try:
        assert Edition.read(data, MANIFEST) == EDITION
    except EditionError:
        assert data != EDITION.to_bytes()
