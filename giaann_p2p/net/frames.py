"""Frames: how the requests and bodies of one connection share an ordered byte stream.

A frame is a header of 24 bytes (checksum u64, mark 3 bytes, kind u8, length u32, request u64,
little-endian) and its payload. The rules:

1. The first frame in each direction is a hello. Its payload is a random number drawn by the sender,
   and a greeting such as a token. That number plus the count of frames so far seeds the checksum of
   each later frame, so a frame that was changed, dropped, repeated, reordered or taken from another
   stream fails its checksum.
2. Each kind of frame has bounds on its length, which are checked as soon as the header has arrived.
   So a reader holds at most one incomplete frame, and never allocates memory for bytes that have
   not arrived.
3. After the first invalid frame nothing more is read.

A frame that arrives whole within one `feed` is hashed in place and not copied; a frame that arrives
in pieces is copied once, no matter how small the pieces are.
"""

from enum import IntEnum
from struct import Struct

import msgspec
from xxhash import xxh3_64, xxh3_64_intdigest

from giaann_p2p.errors import MessageError, UsageError

CHUNK = 1 << 18
"""The most bytes of one frame's payload; longer bodies are cut into chunks of this size."""
LONGEST_GREETING = 1 << 10
"""The most bytes of the greeting in a hello frame."""
LONGEST_ERROR = 1 << 10
"""The most bytes of an error frame's payload: the reason's code and the message."""

Buffer = bytes | bytearray | memoryview

_MARK = b"GF1"
_HEADER = Struct("<Q3sBIQ")
_SEALED = Struct("<3sBIQ")  # the part of the header that the checksum covers
_SUM = Struct("<Q")
HEADER = _HEADER.size
"""The length of a frame's header in bytes."""
_COVERED = _SUM.size  # the offset from which on the checksum covers everything
_WORD = (1 << 64) - 1
_JOIN = 1 << 12  # joining header and payload is faster up to this size


class Kind(IntEnum):
    """The kinds of frames."""

    HELLO = 1
    """The first frame of a stream: the number that seeds the checksums, and a greeting."""
    REQUEST = 2
    """A whole request, in one frame."""
    RESPONSE = 3
    """A whole response, in one frame."""
    ERROR = 4
    """The request gets no response; the payload is a reason code and a message. With request number
    0, the whole connection ends."""
    LONG = 5
    """A long request or response begins; the payload is its length in bytes."""
    CHUNK = 6
    """The next chunk of a long body."""
    END = 7
    """A long body is complete; the payload is its length and checksum."""
    CANCEL = 8
    """The caller no longer waits for the response to this request."""
    CREDIT = 9
    """Credit: the payload is how many more bytes of this request's body may be sent."""
    PING = 10
    """A sign of life; the receiver answers with a pong of the same number."""
    PONG = 11
    """The answer to the ping with the same number."""
    GOODBYE = 12
    """The sender makes no more requests; open requests go on."""


NUMBER = Struct("<Q")
"""The payload of long, credit, ping and pong frames, and the start of a hello frame's payload."""
ENDING = Struct("<QQ")
"""The payload of an end frame: the body's length and checksum."""

_KINDS = {kind.value: kind for kind in Kind}
_LENGTHS = {
    Kind.HELLO: (8, 8 + LONGEST_GREETING),
    Kind.REQUEST: (0, CHUNK),
    Kind.RESPONSE: (0, CHUNK),
    Kind.ERROR: (1, LONGEST_ERROR),
    Kind.LONG: (8, 8),
    Kind.CHUNK: (1, CHUNK),
    Kind.END: (16, 16),
    Kind.CANCEL: (0, 0),
    Kind.CREDIT: (8, 8),
    Kind.PING: (8, 8),
    Kind.PONG: (8, 8),
    Kind.GOODBYE: (0, 0),
}
_FIRST = frozenset({Kind.HELLO})
_LATER = frozenset(Kind) - _FIRST


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One received frame; copy its payload to keep it, because it may view the fed bytes."""

    kind: Kind
    request: int
    payload: memoryview


class Framer:
    """Parses the frames of one stream, and checks them."""

    def __init__(self) -> None:
        self._have = bytearray()  # the incomplete frame
        self._seed = 0
        self._count = 0
        self._error = ""

    def __repr__(self) -> str:
        state = f"off: {self._error}" if self._error else f"{len(self._have):,} bytes of the next"
        return f"<Framer: {self._count:,} frames, {state}>"

    @property
    def nbytes(self) -> int:
        """The number of bytes held of a frame that is still incomplete."""
        return len(self._have)

    def feed(self, data: Buffer) -> list[Frame]:
        """Return the frames that these bytes complete; raise MessageError if one is invalid.

        If a frame is invalid, the valid ones that were fed in the same call are lost, and every
        later call raises the same error.
        """
        if self._error:
            raise MessageError(self._error)
        try:
            return self._frames(memoryview(data))
        except MessageError as error:
            self._error = str(error)
            self._have = bytearray()
            raise

    def _frames(self, data: memoryview) -> list[Frame]:
        frames: list[Frame] = []
        at = self._complete(data, frames) if self._have else 0
        while (left := len(data) - at) >= HEADER and left >= (size := self._size(data, at)):
            frames.append(self._open(data, at, size))
            at += size
        self._have += data[at:]
        return frames

    def _complete(self, data: memoryview, frames: list[Frame]) -> int:
        """Add new bytes to the incomplete frame, and return how many of them belong to it."""
        have = self._have
        at = max(0, HEADER - len(have))
        have += data[:at]
        if len(have) < HEADER:
            return min(at, len(data))
        size = self._size(have, 0)
        taken = data[at : at + size - len(have)]
        have += taken
        if len(have) == size:
            self._have = bytearray()
            frames.append(self._open(memoryview(have), 0, size))
        return at + len(taken)

    def _size(self, data: Buffer, at: int) -> int:
        """Return the size of the frame at an offset; raise MessageError on an invalid header."""
        length: int
        _, mark, code, length, _ = _HEADER.unpack_from(data, at)
        if mark != _MARK:
            raise MessageError(_foreign(mark))
        kind = _KINDS.get(code)
        if kind is None or kind not in (_LATER if self._count else _FIRST):
            place = "a later frame" if self._count else "the first frame"
            name = code if kind is None else kind.name.lower()
            raise MessageError(f"{place} of a stream cannot be of kind {name}")
        least, most = _LENGTHS[kind]
        if not least <= length <= most:
            raise MessageError(
                f"a frame of kind {kind.name.lower()} has {length:,} bytes;"
                f" {least:,} to {most:,} are allowed"
            )
        return HEADER + length

    def _open(self, data: memoryview, at: int, size: int) -> Frame:
        checksum, _, code, _, request = _HEADER.unpack_from(data, at)
        found = xxh3_64_intdigest(data[at + _COVERED : at + size], self._seed + self._count & _WORD)
        if found != checksum:
            raise MessageError(f"the checksum of frame {self._count} does not match its bytes")
        payload = data[at + HEADER : at + size]
        if not self._count:
            (self._seed,) = NUMBER.unpack_from(payload)
        self._count += 1
        return Frame(_KINDS[code], request, payload)


class Sealer:
    """Encodes the frames of one stream; `number` must be drawn at random for each stream."""

    def __init__(self, number: int, greeting: bytes = b"") -> None:
        if not 0 <= number <= _WORD:
            raise UsageError(f"the number of a stream must fit into 64 bits; it is {number}")
        self._seed = 0
        self._count = 0
        self.hello = b"".join(self.seal(Kind.HELLO, 0, NUMBER.pack(number) + greeting))
        """The hello frame, which must be sent as the first bytes of the stream."""
        self._seed = number

    def seal(self, kind: Kind, request: int, payload: Buffer = b"") -> list[Buffer]:
        """Return the next frame in one or two pieces; send frames in the order of these calls."""
        length = len(payload)
        least, most = _LENGTHS[kind]
        if not least <= length <= most:
            raise UsageError(f"a frame of kind {kind.name.lower()} cannot have {length:,} bytes")
        head = _SEALED.pack(_MARK, kind, length, request)
        seed = self._seed + self._count & _WORD
        self._count += 1
        if length <= _JOIN:
            covered = b"".join((head, payload))
            return [_SUM.pack(xxh3_64_intdigest(covered, seed)) + covered]
        checksum = xxh3_64(head, seed)
        checksum.update(payload)
        return [_SUM.pack(checksum.intdigest()) + head, payload]


def _foreign(mark: bytes) -> str:
    if mark[:2] == _MARK[:2]:
        theirs, ours = mark[2:].decode("latin-1"), _MARK[2:].decode()
        return (
            f"a frame has version {theirs!r}, but its receiver speaks {ours!r}: update both peers"
        )
    return f"a frame has the unknown mark {mark!r}; its sender speaks another protocol"
