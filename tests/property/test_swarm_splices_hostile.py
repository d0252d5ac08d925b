"""Two things that were said, put together, are neither: it is one of them or nothing.

And reading costs memory by what came, never by what it says that there is.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.errors import (
    EditionError,
    GiaannError,
    MessageError,
    RecordError,
    TokenError,
    UsageError,
)
from giaann_p2p.swarm.wire.edition import Edition
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.messages import VERSION, decode, encode
from giaann_p2p.swarm.wire.record import read, signed
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from giaann_p2p.swarm.wire.token import Rights, Token, founded
from tests.helpers_hostile import few, hostile, peak_of
from tests.helpers_swarm import MESSAGES
from tests.property.test_swarm_parsers_hostile import (
    ANNOUNCEMENT,
    DELEGATE,
    EDITION,
    LINK,
    MANIFEST,
    MEMBER,
    NOW,
    PEER,
    RECORD,
    REVOKED,
    RULES,
    TOKEN,
)

OTHER = Identity.from_seed(b"\4" * 32)
OTHERS = msgspec.structs.replace(ANNOUNCEMENT, peer=OTHER.peer, sequence=9, used=7)
LATER = msgspec.structs.replace(ANNOUNCEMENT, sequence=3, issued=NOW + 1)
FOUNDERS = founded(PEER, MANIFEST.swarm_id, MEMBER.peer, Rights.STORAGE, NOW + 5)
ELSEWHERE = founded(OTHER, bytes(32), MEMBER.peer, Rights.CLIENT, NOW)
SETS = [np.array(some, np.uint16) for some in ([], [3], range(64), range(0, 64, 2), [1, 2, 63])]


class Said(NamedTuple):
    """What can be said, and what reads it."""

    whole: dict[bytes, Any]
    read: Callable[[bytes], Any]
    refusal: type[GiaannError]


def standing(data: bytes) -> tuple[Any, ...]:
    """Return what a token comes to in the swarm, as whoever is shown it works it out."""
    found = Token.read(data)
    if found.swarm_id != MANIFEST.swarm_id:
        raise TokenError("another swarm's")
    return found.standing(PEER.peer)


MORE = REVOKED.next(PEER, {DELEGATE.peer}, (), {(bytes(16), 4): b"4" * 16})
SAID = {
    "manifest": Said(
        {
            one.to_bytes(): one
            for one in (MANIFEST, Manifest.founded(PEER, "wasps"), Manifest.founded(OTHER, "bees"))
        },
        Manifest.read,
        MessageError,
    ),
    "record": Said(
        {
            RECORD: ANNOUNCEMENT,
            signed(PEER, LATER): LATER,
            signed(OTHER, OTHERS): OTHERS,
        },
        lambda data: read(data, NOW, MANIFEST.swarm_id, RULES),
        RecordError,
    ),
    "token": Said(
        {
            one.to_bytes(): one.standing(PEER.peer)
            for one in (TOKEN, FOUNDERS, Token(TOKEN.swarm_id, TOKEN.grants[:1]))
        },
        standing,
        TokenError,
    ),
    "list of the revoked": Said(
        {one.to_bytes(): one for one in (REVOKED, MORE, REVOKED.next(PEER, set()))},
        lambda data: Revoked.read(data, MANIFEST.swarm_id, PEER.peer),
        TokenError,
    ),
    "edition": Said(
        {one.to_bytes(): one for one in (EDITION, Edition.signed(PEER, MANIFEST.swarm_id, 4, 7))},
        lambda data: Edition.read(data, MANIFEST),
        EditionError,
    ),
    "link": Said(
        {str(one).encode(): one for one in (LINK, Link(bytes(32), LINK.addresses[::-1]))},
        lambda data: Link.read(data.decode("latin-1")),
        UsageError,
    ),
    "set of shards": Said(
        {packed(one, 64): one.tolist() for one in SETS},
        lambda data: unpacked(data, 64).tolist(),
        MessageError,
    ),
    "message": Said(
        {encode(one): one for one in MESSAGES},
        decode,
        MessageError,
    ),
}
PROVED = ["manifest", "record", "token", "list of the revoked", "edition"]
STRANGERS = [
    ELSEWHERE.to_bytes(),
    signed(OTHER, msgspec.structs.replace(OTHERS, swarm_id=bytes(32))),
    Revoked(bytes(32)).next(PEER, {MEMBER.peer}).to_bytes(),
    Revoked(MANIFEST.swarm_id).next(OTHER, {MEMBER.peer}).to_bytes(),
    Edition.signed(PEER, bytes(32), 3, 5).to_bytes(),
    Edition.signed(OTHER, MANIFEST.swarm_id, 3, 5).to_bytes(),
]
"""Well made, of another swarm or by somebody else."""


@pytest.mark.parametrize("name", SAID)
def test_what_was_said_is_read(name: str) -> None:
    said = SAID[name]
    assert len(said.whole) > 1
    for data, meant in said.whole.items():
        assert said.read(data) == meant


@pytest.mark.parametrize("name", PROVED)
@given(st.data())
def test_nothing_is_made_of_what_was_signed(name: str, data: st.DataObject) -> None:
    said = SAID[name]
    drawn = data.draw(hostile(*said.whole, *STRANGERS))
    try:
        found = said.read(drawn)
    except said.refusal:
        assert drawn not in said.whole
        return
    assert found == said.whole[drawn]


@pytest.mark.parametrize("name", SAID)
@few
@given(st.data())
def test_reading_takes_memory_by_what_came(name: str, data: st.DataObject) -> None:
    said = SAID[name]
    drawn = data.draw(hostile(*list(said.whole)[:20]))
    faults: list[GiaannError] = []

    def reading() -> None:
        try:
            said.read(drawn)
        except said.refusal as error:
            faults.append(error)

    assert peak_of(reading) < 1 << 20


def test_a_list_that_is_said_to_be_endless_takes_no_memory() -> None:
    """A length costs its sender five bytes."""
    faults: list[MessageError] = []

    def reading(data: bytes) -> None:
        try:
            decode(data)
        except MessageError as error:
            faults.append(error)

    endless, tried = b"\xdd\xff\xff\xff\xff", 0
    for message in MESSAGES:
        fields = [
            msgspec.msgpack.encode(one) for one in msgspec.msgpack.decode(encode(message)[1:])
        ]
        for at in range(1, len(fields)):
            body = b"".join([*fields[:at], endless])
            data = bytes([VERSION, 0x90 | len(fields)]) + body
            assert peak_of(lambda data=data: reading(data)) < 1 << 16  # type: ignore[misc]
            tried += 1
    assert len(faults) == tried > 50
