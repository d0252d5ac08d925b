"""Whatever its bytes are, a stream is frames that keep all rules, or a MessageError."""

from struct import Struct

from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from giaann_p2p.errors import MessageError
from giaann_p2p.net.frames import CHUNK, HEADER, Framer, Kind, Sealer

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
