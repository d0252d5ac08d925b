"""Request and response bodies in transit: chunked under flow control, reassembled and verified."""

from io import BytesIO

from xxhash import xxh3_64

from giaann_p2p.errors import MessageError
from giaann_p2p.net.frames import CHUNK, ENDING, NUMBER, Buffer, Kind, Sealer
from giaann_p2p.net.limits import FREE


class Outgoing:
    """A request or response body to be sent, one chunk per turn."""

    __slots__ = (
        "_at",
        "_body",
        "_credit",
        "_digest",
        "_whole",
        "announced",
        "complete",
        "parked",
        "request",
    )
    _digest: xxh3_64  # the digest of the bytes of a long body sent so far

    def __init__(self, whole: Kind, request: int, body: bytes) -> None:
        self.request = request
        self.announced = False
        """Whether the body's first frame has been taken for sending, so that the peer will know of
        the body."""
        self.complete = False
        """Whether the whole body has been taken for sending."""
        self.parked = False
        """Whether the body waits for credit from the receiver."""
        self._whole = whole
        self._body: Buffer = body
        self._at = 0
        self._credit = FREE

    def __repr__(self) -> str:
        return f"<Outgoing {self.request}: {self._at:,} of {len(self._body):,} bytes sent>"

    @property
    def nbytes(self) -> int:
        """The length of the body in bytes."""
        return len(self._body)

    def turn(self, sealer: Sealer) -> list[Buffer]:
        """Return the frames of one turn; set `parked` if the next turn needs more credit."""
        pieces: list[Buffer] = []
        if not self.announced:
            self.announced = True
            if len(self._body) <= CHUNK:
                self._at = len(self._body)
                self.complete = True
                return sealer.seal(self._whole, self.request, self._body)
            pieces = sealer.seal(Kind.LONG, self.request, NUMBER.pack(len(self._body)))
            self._body, self._digest = memoryview(self._body), xxh3_64()
        chunk = self._body[self._at : self._at + CHUNK]
        pieces += sealer.seal(Kind.CHUNK, self.request, chunk)
        self._digest.update(chunk)
        self._at += len(chunk)
        self._credit -= len(chunk)
        if self._at == len(self._body):
            self.complete = True
            ending = ENDING.pack(len(self._body), self._digest.intdigest())
            pieces += sealer.seal(Kind.END, self.request, ending)
        self.parked = self._lacks_credit()
        return pieces

    def credit(self, more: int) -> None:
        """Add credit from the receiver; raise MessageError if it exceeds the bytes left to send."""
        if not 0 < more <= len(self._body) - self._at - self._credit:
            raise MessageError(
                f"invalid credit for {more:,} bytes: it must fit what is left of the body"
            )
        self._credit += more
        self.parked = self._lacks_credit()

    def forget(self) -> None:
        """Release the body's bytes."""
        self._body = b""

    def _lacks_credit(self) -> bool:
        return self._credit < min(CHUNK, len(self._body) - self._at)


class Incoming:
    """A long body being received; only the bytes that have arrived take memory."""

    __slots__ = ("_body", "_digest", "_granted", "_window", "length")

    def __init__(self, length: int, window: int) -> None:
        if length <= CHUNK:
            raise MessageError(
                f"a body of {length:,} bytes was sent as a long one, but it fits into one frame"
            )
        self.length = length
        self._window = window
        self._granted = min(FREE, length)
        self._body = BytesIO()
        self._digest = xxh3_64()

    def __repr__(self) -> str:
        return f"<Incoming: {self._body.tell():,} of {self.length:,} bytes>"

    def grant(self) -> int:
        """Return how many more bytes of credit to give; 0 while over half of the window is left."""
        got = self._body.tell()
        wanted = min(self.length, got + self._window)
        if wanted == self._granted or 2 * (self._granted - got) > self._window:
            return 0
        more, self._granted = wanted - self._granted, wanted
        return more

    def take(self, chunk: memoryview) -> None:
        """Append this body's next chunk; raise MessageError if the chunk has the wrong length."""
        got = self._body.tell()
        if len(chunk) != min(CHUNK, self.length - got):
            raise MessageError(
                f"a chunk of {len(chunk):,} bytes is wrong at offset {got:,} of a body of"
                f" {self.length:,} bytes"
            )
        self._body.write(chunk)
        self._digest.update(chunk)

    def finish(self, ending: memoryview) -> bytes:
        """Return the whole body; raise MessageError if its length or checksum is wrong."""
        length, checksum = ENDING.unpack(ending)
        got = self._body.tell()
        if not length == got == self.length:
            raise MessageError(
                f"the end frame says {length:,} bytes, but {got:,} of {self.length:,} bytes arrived"
            )
        if checksum != self._digest.intdigest():
            raise MessageError("the checksum of a body does not match its bytes")
        return self._body.getvalue()
