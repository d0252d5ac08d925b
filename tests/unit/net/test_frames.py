"""Frames as they are written, read back in any pieces, and refused when anything is off."""

import random
from struct import Struct

import pytest
from xxhash import xxh3_64_intdigest

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.net.frames import CHUNK, Buffer, Framer, Kind, Sealer

NUMBER = 0xFEDCBA9876543210
LENGTHS = {
    Kind.REQUEST: [0, 1, 100, 4096, 4097, CHUNK],
    Kind.RESPONSE: [0, 1, 100, 4096, 4097, CHUNK],
    Kind.ERROR: [1, 1024],
    Kind.LONG: [8],
    Kind.CHUNK: [1, CHUNK],
    Kind.END: [16],
    Kind.CANCEL: [0],
    Kind.CREDIT: [8],
    Kind.PING: [8],
    Kind.PONG: [8],
    Kind.GOODBYE: [0],
}

Plain = tuple[Kind, int, bytes]


def joined(pieces: list[Buffer]) -> bytes:
    return b"".join(pieces)


def written(frames: list[Plain], number: int = NUMBER) -> bytes:
    sealer = Sealer(number)
    return sealer.hello + b"".join(joined(sealer.seal(*frame)) for frame in frames)


def read(data: bytes, cuts: list[int]) -> list[Plain]:
    framer = Framer()
    found: list[Plain] = []
    for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True):
        frames = framer.feed(data[start:stop])
        found += [(frame.kind, frame.request, bytes(frame.payload)) for frame in frames]
    assert framer.nbytes == 0
    return found


def some_frames(rng: random.Random, count: int) -> list[Plain]:
    kinds = list(LENGTHS)
    frames: list[Plain] = []
    for kind in rng.choices(kinds, k=count):
        payload = rng.randbytes(rng.choice(LENGTHS[kind]))
        frames.append((kind, rng.getrandbits(64), payload))
    return frames


def forged(header: bytes, payload: bytes = b"", seed: int = 0) -> bytes:
    """Return a frame with a fitting checksum, whatever it says."""
    covered = header + payload
    return Struct("<Q").pack(xxh3_64_intdigest(covered, seed)) + covered


def header(kind: int, length: int, mark: bytes = b"GF1", request: int = 1) -> bytes:
    return Struct("<3sBIQ").pack(mark, kind, length, request)


HELLO = Sealer(NUMBER).hello


def test_the_bytes_of_a_stream_are_what_they_were() -> None:
    assert written([(Kind.REQUEST, 1, b"rows, please")], 7).hex() == (
        "bfdee874a200f9fd474631010800000000000000000000000700000000000000"
        "1732d6314cf4355c474631020c0000000100000000000000726f77732c20706c65617365"
    )


@pytest.mark.parametrize("seed", range(20))
def test_frames_come_back_in_any_pieces(seed: int) -> None:
    rng = random.Random(seed)
    frames = some_frames(rng, rng.randrange(1, 12))
    data = written(frames)
    hello = (Kind.HELLO, 0, NUMBER.to_bytes(8, "little"))
    for pieces in (0, 1, 5, 40):
        cuts = sorted(rng.choices(range(len(data) + 1), k=pieces))
        assert read(data, cuts) == [hello, *frames]


def test_frames_come_back_byte_by_byte() -> None:
    frames = [(Kind.REQUEST, 1, b"abc"), (Kind.GOODBYE, 0, b""), (Kind.END, 3, bytes(16))]
    data = written(frames)
    assert read(data, list(range(1, len(data))))[1:] == frames


def test_a_frame_in_one_piece_is_a_view_of_what_was_fed() -> None:
    data = written([(Kind.CHUNK, 1, bytes(CHUNK))])
    _, frame = Framer().feed(data)
    assert frame.payload.obj is data


def test_a_long_payload_is_not_copied_when_it_is_written() -> None:
    payload = memoryview(bytes(CHUNK))
    _, piece = Sealer(NUMBER).seal(Kind.CHUNK, 1, payload)
    assert piece is payload


def test_a_flipped_bit_is_noticed_wherever_it_is() -> None:
    data = written([(Kind.REQUEST, 5, b"some rows"), (Kind.CANCEL, 3, b"")])
    for at in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            framer = Framer()
            try:
                frames = framer.feed(changed)
            except MessageError:
                continue
            # A longer length is the one change that only the bytes to come can show.
            assert len(frames) < 3
            assert framer.nbytes


def test_a_frame_out_of_its_place_is_noticed() -> None:
    sealer = Sealer(NUMBER)
    one, two = (joined(sealer.seal(Kind.REQUEST, n, b"x")) for n in (1, 3))
    other = joined(Sealer(NUMBER + 1).seal(Kind.REQUEST, 1, b"x"))
    for stream in (HELLO + two, HELLO + one + one, HELLO + two + one, HELLO + other):
        with pytest.raises(MessageError, match="the checksum of frame"):
            Framer().feed(stream)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (header(1, 8, b"HTT"), "a frame has the unknown mark b'HTT'"),
        (header(1, 8, b"GF2"), "a frame has version '2', but its receiver speaks '1'"),
        (header(2, 8), "the first frame of a stream cannot be of kind request"),
        (header(99, 8), "the first frame of a stream cannot be of kind 99"),
        (header(1, 7), "a frame of kind hello has 7 bytes; 8 to 1,032 are allowed"),
    ],
)
def test_what_cannot_begin_a_stream_is_refused_at_its_header(data: bytes, message: str) -> None:
    framer = Framer()
    with pytest.raises(MessageError, match=message):
        framer.feed(forged(data))
    with pytest.raises(MessageError, match=message):  # and ever after
        framer.feed(HELLO)
    assert repr(framer).startswith(f"<Framer: 0 frames, off: {message}")


@pytest.mark.parametrize("kind", LENGTHS)
def test_a_length_beyond_the_bounds_is_refused_before_its_bytes_come(kind: Kind) -> None:
    for length in (max(LENGTHS[kind]) + 1, (1 << 32) - 1):
        framer = Framer()
        framer.feed(HELLO)
        with pytest.raises(MessageError, match=f"kind {kind.name.lower()} has {length:,}"):
            framer.feed(forged(header(kind, length)))
        assert framer.nbytes == 0
        with pytest.raises(UsageError, match="cannot have"):
            Sealer(1).seal(kind, 1, bytes(max(LENGTHS[kind]) + 1))


def test_a_second_hello_is_refused() -> None:
    with pytest.raises(MessageError, match="a later frame of a stream cannot be of kind hello"):
        Framer().feed(HELLO + forged(header(1, 8), bytes(8), NUMBER + 1))


def test_a_stream_that_began_holds_what_came_and_no_more() -> None:
    framer = Framer()
    data = written([(Kind.CHUNK, 1, bytes(CHUNK))])
    framer.feed(data[: len(HELLO) + 100])
    assert framer.nbytes == 100
    assert repr(framer) == "<Framer: 1 frames, 100 bytes of the next>"


def test_the_number_of_a_stream_has_64_bits() -> None:
    for number in (-1, 1 << 64):
        with pytest.raises(UsageError, match="64 bits"):
            Sealer(number)
