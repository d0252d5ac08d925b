"""Whatever its bytes are, a stream is frames that keep all rules, or a MessageError.

And whatever its frames are, a connection keeps within its limits and ends every call.
"""

from struct import Struct

from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.net.connection import Connection
from giaann_p2p.net.events import Event, Failed, Requested, Responded
from giaann_p2p.net.frames import CHUNK, ENDING, HEADER, Framer, Kind, Sealer
from giaann_p2p.net.frames import NUMBER as NUMBER_OF
from giaann_p2p.net.limits import Limits
from tests.unit.net.helpers import assert_nothing_is_held

NUMBER = 12345
HELLO = Sealer(NUMBER).hello


def fed(data: bytes, step: int = 1 << 30) -> int:
    """Feed bytes in steps; return how many frames came, however it ended."""
    framer = Framer()
    count = 0
    try:
        for start in range(0, len(data), step):
            for frame in framer.feed(data[start : start + step]):
                assert frame.kind in Kind
                assert len(frame.payload) <= CHUNK
                count += 1
            assert framer.nbytes <= HEADER + CHUNK
    except MessageError:
        assert framer.nbytes == 0
    return count


def sealed(count: int, covered: bytes) -> bytes:
    seed = NUMBER + count if count else 0
    return Struct("<Q").pack(xxh3_64_intdigest(covered, seed)) + covered


@given(st.binary(max_size=200), st.integers(1, 64))
def test_any_bytes_are_frames_or_refused(data: bytes, step: int) -> None:
    fed(data, step)
    fed(HELLO + data, step)
    assert fed(b"GF1" + data) == 0


headers = st.tuples(
    st.sampled_from([b"GF1", b"GF1", b"GF1", b"GF2", b"\0\0\0"]),
    st.integers(0, 13) | st.integers(0, 255),
    st.sampled_from([0, 1, 8, 16, 17, 1024, 1025, CHUNK, CHUNK + 1, (1 << 32) - 1]),
    st.integers(0, (1 << 64) - 1),
)


@given(st.lists(st.tuples(headers, st.binary(max_size=20)), max_size=5), st.integers(1, 64))
def test_forged_frames_are_frames_or_refused(
    made: list[tuple[tuple[bytes, int, int, int], bytes]], step: int
) -> None:
    stream = HELLO
    for count, (header, payload) in enumerate(made, start=1):
        stream += sealed(count, Struct("<3sBIQ").pack(*header) + payload)
    assert fed(stream, step) >= fed(stream)  # what came before the wrong one may be lost


@given(st.lists(st.sampled_from([0, 3, 300]), max_size=6), st.data())
def test_a_changed_stream_never_gives_a_frame_that_was_not_sent(
    sizes: list[int], data: st.DataObject
) -> None:
    sealer = Sealer(NUMBER)
    stream = bytearray(sealer.hello)
    ends = [len(stream)]
    for size in sizes:
        stream += b"".join(sealer.seal(Kind.REQUEST, 1, bytes(size)))
        ends.append(len(stream))
    at = data.draw(st.integers(0, len(stream) - 1))
    stop = data.draw(st.integers(at, min(len(stream), at + 40)))
    changed = bytes(stream[:at]) + data.draw(st.binary(max_size=40)) + bytes(stream[stop:])
    same = next((n for n, (a, b) in enumerate(zip(stream, changed, strict=False)) if a != b), None)
    whole = min(len(stream), len(changed)) if same is None else same
    framer = Framer()
    found = 0
    try:
        for number in range(len(changed)):
            found += len(framer.feed(changed[number : number + 1]))
    except MessageError:
        pass
    assert found <= sum(end <= whole for end in ends)


KINDS = [kind for kind in Kind if kind is not Kind.HELLO]
HOSTILE = Limits(calls=4, longest=1 << 20, bytes_in=1 << 20, bytes_out=1 << 20, window=1 << 20)
lengths = st.sampled_from([0, 1, CHUNK, CHUNK + 1, 2 * CHUNK, 1 << 20, (1 << 20) + 1, 1 << 63])


@st.composite
def outrages(draw: st.DrawFn) -> tuple[Kind, int, bytes]:
    """Draw a frame that fits, whatever it means."""
    kind = draw(st.sampled_from(KINDS))
    request = draw(st.integers(0, 12) | st.sampled_from([1 << 63, (1 << 64) - 1]))
    if kind in (Kind.LONG, Kind.CREDIT, Kind.PING, Kind.PONG):
        return kind, request, NUMBER_OF.pack(draw(lengths))
    if kind is Kind.END:
        return kind, request, ENDING.pack(draw(lengths), draw(st.integers(0, 3)))
    if kind is Kind.ERROR:
        return kind, request, draw(st.binary(min_size=1, max_size=9))
    if kind in (Kind.CANCEL, Kind.GOODBYE):
        return kind, request, b""
    return kind, request, bytes(draw(st.sampled_from([1, 1, 100, CHUNK])))


class Books:
    """Checks that each call of the honest side ends once, and that what is held is bounded."""

    def __init__(self, honest: Connection) -> None:
        self.honest = honest
        self.calls = {honest.request(bytes(size), 150.0) for size in (0, 2 * CHUNK)}
        self.asked: list[int] = []

    def note(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Responded | Failed):
                self.calls.remove(event.request)
            elif isinstance(event, Requested):
                self.asked.append(event.request)
            if isinstance(event, Failed):
                assert isinstance(event.error, PeerError)
        honest = self.honest
        held = [known.incoming for known in honest._open.values() if known.incoming is not None]
        assert sum(body._body.tell() for body in held) <= honest._room_in.used <= HOSTILE.bytes_in
        assert honest._room_out.used <= HOSTILE.bytes_out
        assert len(honest._open) <= 2 * HOSTILE.calls
        assert len(honest._outbox) <= 6 * HOSTILE.calls + 100


@given(st.lists(outrages(), max_size=40), st.booleans(), st.booleans(), st.data())
def test_a_connection_outlives_any_frames_or_ends_cleanly(
    frames: list[tuple[Kind, int, bytes]], dialled: bool, reading: bool, data: st.DataObject
) -> None:
    sealer = Sealer(NUMBER)
    honest = Connection(dialled=dialled, number=1, now=100.0, limits=HOSTILE)
    books = Books(honest)
    books.note(honest.feed(sealer.hello, 100.0))
    for frame in frames:
        if reading:
            honest.to_send()
        books.note(honest.feed(b"".join(sealer.seal(*frame)), 100.0))
        if books.asked and data.draw(st.booleans()):
            honest.respond(books.asked.pop(), bytes(data.draw(st.sampled_from([0, 3 * CHUNK]))))
    books.note(honest.tick(150.0))  # what is open has its deadline there
    assert not books.calls
    books.note(honest.eof(150.0))
    assert honest.over
    assert_nothing_is_held(honest)


@given(st.binary(max_size=300), st.booleans())
def test_a_connection_outlives_any_bytes_or_ends_cleanly(data: bytes, greeted: bool) -> None:
    honest = Connection(dialled=True, number=1, now=100.0, limits=HOSTILE)
    books = Books(honest)
    books.note(honest.feed(HELLO if greeted else b"", 100.0))
    for at in range(0, len(data), 7):
        books.note(honest.feed(data[at : at + 7], 100.0))
    books.note(honest.eof(101.0))
    assert not books.calls
    assert_nothing_is_held(honest)
