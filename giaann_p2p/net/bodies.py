"""Request and response bodies in transit: chunked under flow control, reassembled and verified."""

from io import BytesIO

from xxhash import xxh3_64

from giaann_p2p.errors import MessageError
from giaann_p2p.net.frames import CHUNK, ENDING, NUMBER, Buffer, Kind, Sealer
from giaann_p2p.net.limits import FREE


class Outgoing:
    """A body to be sent, one chunk per turn."""

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
        """Whether its first frame has been taken for sending, so that the peer will know of the
        body."""
        self.complete = False
        """Whether all of the body has been taken for sending."""
        self.parked = False
        """Whether the body waits for credit."""
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
        """Return the frames of one turn; the body is parked if its next turn needs more credit."""
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
        """Add credit; MessageError if it exceeds the bytes that are left to be sent."""
        if not 0 < more <= len(self._body) - self._at - self._credit:
            raise MessageError(f"credit for {more:,} bytes, which are not to come")
        self._credit += more
        self.parked = self._lacks_credit()

    def forget(self) -> None:
        """Release the body's bytes."""
        self._body = b""

    def _lacks_credit(self) -> bool:
        return self._credit < min(CHUNK, len(self._body) - self._at)


class Incoming:
    """A long body being received; it holds only the bytes that have arrived."""

    __slots__ = ("_body", "_digest", "_granted", "_window", "length")

    def __init__(self, length: int, window: int) -> None:
        if length <= CHUNK:
            raise MessageError(f"a long body of {length:,} bytes, which one frame could carry")
        self.length = length
        self._window = window
        self._granted = min(FREE, length)
        self._body = BytesIO()
        self._digest = xxh3_64()

    def __repr__(self) -> str:
        return f"<Incoming: {self._body.tell():,} of {self.length:,} bytes>"

    def grant(self) -> int:
        """Return how much more credit to give; 0 while more than half of the window is left."""
        got = self._body.tell()
        wanted = min(self.length, got + self._window)
        if wanted == self._granted or 2 * (self._granted - got) > self._window:
            return 0
        more, self._granted = wanted - self._granted, wanted
        return more

    def take(self, chunk: memoryview) -> None:
        """Append the next chunk; MessageError if its length is not the one that must come next."""
        got = self._body.tell()
        if len(chunk) != min(CHUNK, self.length - got):
            raise MessageError(
                f"a chunk of {len(chunk):,} bytes at {got:,} of a body of {self.length:,}"
            )
        self._body.write(chunk)
        self._digest.update(chunk)

    def finish(self, ending: memoryview) -> bytes:
        """Return the whole body; MessageError unless length and checksum match what arrived."""
        length, checksum = ENDING.unpack(ending)
        got = self._body.tell()
        if not length == got == self.length:
            raise MessageError(
                f"the end mark of a body says {length:,} bytes; {got:,} of {self.length:,} came"
            )
        if checksum != self._digest.intdigest():
            raise MessageError("the checksum of a body does not fit its bytes")
        return self._body.getvalue()
