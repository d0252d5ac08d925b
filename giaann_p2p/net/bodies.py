"""Requests and responses on their way: cut into chunks by credit, put together and checked."""

from io import BytesIO

from xxhash import xxh3_64

from giaann_p2p.errors import MessageError
from giaann_p2p.net.frames import CHUNK, ENDING, NUMBER, Buffer, Kind, Sealer
from giaann_p2p.net.limits import FREE


class Outgoing:
    """A body to be sent, in turns of one chunk."""

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
    _digest: xxh3_64  # of what was sent of a long one

    def __init__(self, whole: Kind, request: int, body: bytes) -> None:
        self.request = request
        self.announced = False
        """The peer will hear of it."""
        self.complete = False
        """All of it is on its way."""
        self.parked = False
        """It waits for credit."""
        self._whole = whole
        self._body: Buffer = body
        self._at = 0
        self._credit = FREE

    def __repr__(self) -> str:
        return f"<Outgoing {self.request}: {self._at:,} of {len(self._body):,} bytes sent>"

    @property
    def nbytes(self) -> int:
        """The length of the body."""
        return len(self._body)

    def turn(self, sealer: Sealer) -> list[Buffer]:
        """Return the frames of one turn; it is parked if the next one needs credit."""
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
        """Take credit in; MessageError if it is for more than there is."""
        if not 0 < more <= len(self._body) - self._at - self._credit:
            raise MessageError(f"credit for {more:,} bytes, which are not to come")
        self._credit += more
        self.parked = self._lacks_credit()

    def forget(self) -> None:
        """Let go of the bytes."""
        self._body = b""

    def _lacks_credit(self) -> bool:
        return self._credit < min(CHUNK, len(self._body) - self._at)


class Incoming:
    """A long body that is coming; it holds what has come, and no more."""

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
        """Return how much more credit to give; 0 while half of the window is left."""
        got = self._body.tell()
        wanted = min(self.length, got + self._window)
        if wanted == self._granted or 2 * (self._granted - got) > self._window:
            return 0
        more, self._granted = wanted - self._granted, wanted
        return more

    def take(self, chunk: memoryview) -> None:
        """Take the next chunk in; MessageError if it cannot be the next."""
        got = self._body.tell()
        if len(chunk) != min(CHUNK, self.length - got):
            raise MessageError(
                f"a chunk of {len(chunk):,} bytes at {got:,} of a body of {self.length:,}"
            )
        self._body.write(chunk)
        self._digest.update(chunk)

    def finish(self, ending: memoryview) -> bytes:
        """Return the whole body; MessageError unless the end mark fits what came."""
        length, checksum = ENDING.unpack(ending)
        got = self._body.tell()
        if not length == got == self.length:
            raise MessageError(
                f"the end mark of a body says {length:,} bytes; {got:,} of {self.length:,} came"
            )
        if checksum != self._digest.intdigest():
            raise MessageError("the checksum of a body does not fit its bytes")
        return self._body.getvalue()
