"""Whatever comes in at the edges, over sockets, it is what may be said there, or refused.

Frames and messages: `test_frames_hostile.py`, `test_messages_hostile.py`.
"""

import asyncio
from base64 import b32encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.client.column import _numbers
from giaann_p2p.errors import MessageError, PeerError, UsageError
from giaann_p2p.local.control import Answer, Counter, Look, Question
from giaann_p2p.local.errors import LocalSwarmError
from giaann_p2p.net.errors import Reason, Refused
from giaann_p2p.net.frames import LONGEST_ERROR, Framer, Kind, Sealer
from giaann_p2p.net.hive.control import MOST_MESSAGE, _packed
from giaann_p2p.net.hive.finding import Finding
from giaann_p2p.net.hive.guard import _records_of
from giaann_p2p.net.hive.peer_id import peer_of_address, way_to
from giaann_p2p.net.hive.pipe import _message, framed
from giaann_p2p.net.hive.shelf import MOST_PLACE
from giaann_p2p.swarm.wire.identity import peer_of, to_text
from giaann_p2p.swarm.wire.link import fault_of
from peers.http import HttpServer, Page
from tests.helpers_hostile import few, hostile, mangled, peak_of
from tests.property.test_swarm_parsers_hostile import ADDRESS, PEER, RECORD

PARTS = [
    "ip4/203.0.113.7", "ip4/999.1.1.1", "ip6/::1", "ip6/fe80::1%eth0", "ip6zone/eth0", "tcp/4100",
    "tcp/-1", "udp/99999", "quic-v1", "ws", "dns4/seed.example.org", "dns/%00", "unix/a/b",
    "onion/timaq4ygg2iegci7:80", "onion3/" + "a" * 56 + ":1", "garlic64/" + "A" * 90, "ipcidr/24",
    "p2p-circuit", "p2p/Qm1", "p2p/" + "z" * 70, "http-path/%2f", "certhash/uEiD", "sni/x", "tls",
    "memory/1", "0", "=", ADDRESS[1:], ADDRESS.partition("/p2p/")[2],
]  # fmt: skip


@given(
    st.lists(st.sampled_from(PARTS), max_size=6).map(lambda parts: "/" + "/".join(parts))
    | mangled(ADDRESS.encode()).map(lambda data: data.decode("utf-8", "replace"))
    | st.text(max_size=80)
)
def test_an_address_leads_to_a_peer_or_nowhere(text: str) -> None:
    for way in (text, way_to(text)):
        assert len(_packed([way, ADDRESS])) in (1, 2)
    try:
        peer = peer_of_address(text)
    except UsageError:
        return
    assert not fault_of(text)
    assert len(peer) == 32


@given(mangled(to_text(PEER.peer).encode()) | st.binary(max_size=60))
def test_a_name_is_one_peers_or_nobodys(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        found = peer_of(text)
    except UsageError:
        return
    assert b32encode(found).decode().rstrip("=").lower() == text.strip().lower()


@given(hostile(framed(b"a message"), framed(bytes(300)), framed(b"")))
def test_what_p2pd_says_is_a_message_or_refused(data: bytes) -> None:
    try:
        found = _message(bytearray(data), MOST_MESSAGE)
    except ConnectionAbortedError:
        return
    if found is not None:
        message, size = found
        assert data[size - len(message) : size] == message
        assert len(message) <= MOST_MESSAGE


ANSWERS = (msgspec.msgpack.encode([RECORD, RECORD]), msgspec.msgpack.encode([b"a"] * 40))


@given(hostile(*ANSWERS))
def test_what_a_node_of_the_board_answers_is_records_or_refused(data: bytes) -> None:
    try:
        found = _records_of(data)
    except MessageError:
        return
    assert all(isinstance(one, bytes) for one in found)
    finding = Finding([b"k"], most=MOST_PLACE)
    finding.take("node", b"k", found)
    (brought,) = finding.brought()
    assert brought == found[: len(brought)]


@few
@given(hostile(*ANSWERS))
def test_an_answer_of_the_board_takes_no_more_memory_than_it_has(data: bytes) -> None:
    def read() -> None:
        with_faults: list[MessageError] = []
        try:
            _records_of(data)
        except MessageError as error:
            with_faults.append(error)

    assert peak_of(read) < 1 << 20


@given(hostile(Refused(Reason.BUSY, "later, é").to_bytes(), b"\x06\x1b[31mred\xff").filter(len))
def test_a_refusal_has_a_reason_and_words_for_a_terminal(data: bytes) -> None:
    try:
        found = Refused.from_bytes(data[:LONGEST_ERROR])
    except PeerError:
        return
    assert found.reason in Reason
    assert str(found).isprintable()
    again = Refused.from_bytes(found.to_bytes())
    assert (again.reason, str(found).startswith(str(again))) == (found.reason, True)


def test_a_stream_that_goes_on_as_another_one_gives_no_frame_of_it() -> None:
    one, other = (
        [b"".join(sealer.seal(Kind.REQUEST, 1, bytes([n]) * 9)) for n in range(4)]
        for sealer in (Sealer(7), Sealer(8))
    )
    hello = Sealer(7).hello
    for at in range(4):
        framer = Framer()
        frames = framer.feed(hello + b"".join(one[:at]))
        assert [bytes(frame.payload) for frame in frames[1:]] == [bytes([n]) * 9 for n in range(at)]
        with pytest.raises(MessageError, match="checksum"):
            framer.feed(other[at])


@given(st.binary(max_size=40))
def test_features_of_a_column_are_numbers_or_refused(data: bytes) -> None:
    try:
        assert len(_numbers(data)) * 8 == len(data)
    except MessageError:
        assert len(data) % 8


REQUESTS = (
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"HEAD /broken?x=1 HTTP/1.0\r\n\r\n",
    b"POST / HTTP/2\r\n\r\n\r\n",
)


def page_of(data: bytes) -> Page:
    async def ask() -> Page:
        reader = asyncio.StreamReader(limit=8192)
        reader.feed_data(data)
        reader.feed_eof()
        return await server._page(reader)

    server = HttpServer({"/healthz": lambda: Page(200, b"ok\n")})
    return asyncio.run(ask())


@few
@given(hostile(*REQUESTS))
def test_a_request_for_a_page_is_answered(data: bytes) -> None:
    found = page_of(data)
    assert found.status in (200, 400, 404, 405, 421)
    if found.status == 200:
        assert data.startswith((b"GET /healthz", b"HEAD /healthz"))


QUESTIONS = (b'{"type":"look","memory":true}', b'{"type":"kill","name":"storage-1","number":9}')


@few
@given(hostile(*QUESTIONS, b'{"type":' + b"[" * 30))
def test_a_question_to_a_supervisor_is_answered(data: bytes) -> None:
    async def answer(question: Question) -> Answer:
        if isinstance(question, Look):
            return Answer(link="L")
        raise LocalSwarmError("no")

    found = asyncio.run(Counter(answer)._answered(data))
    assert found.link == "L" or found.error


@pytest.mark.parametrize("line", [b'{"type":"\xec"}', b'{"more":' + b"[" * 100_000])
def test_a_question_that_once_raised_something_else(line: bytes) -> None:
    async def answer(question: Question) -> Answer:
        return Answer(link="L")

    found = asyncio.run(Counter(answer)._answered(line))
    assert found.usage
    assert found.error.startswith("invalid request: ")
