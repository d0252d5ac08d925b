"""A cursor over bytes, which never moves past their end.

Missing or surplus bytes raise DamagedError. Numbers are LEB128: seven bits per byte, the lowest
first.
"""

from giaann_p2p.errors import DamagedError

_NUMBER_BITS = 64


def varint(number: int) -> bytes:
    """Encode a number from 0 to 2^64 - 1 as LEB128."""
    if number <= 0x7F:
        return bytes((number,))
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


class Cursor:
    """Reads bytes and numbers from data, from the front to the end."""

    def __init__(self, data: bytes | memoryview, at: int = 0) -> None:
        self._data, self.at = memoryview(data), at

    def take(self, count: int) -> memoryview:
        """Return the next `count` bytes; DamagedError if there are fewer."""
        if count > len(self._data) - self.at:
            raise DamagedError(f"data too short: {count} bytes are needed at byte {self.at}")
        self.at += count
        return self._data[self.at - count : self.at]

    def byte(self) -> int:
        """Return the next byte; DamagedError at the end of the data."""
        if self.at >= len(self._data):
            raise DamagedError(f"data too short: 1 byte is needed at byte {self.at}")
        self.at += 1
        return self._data[self.at - 1]

    def varint(self) -> int:
        """Return the next LEB128 number; DamagedError if it is invalid or exceeds 64 bits."""
        start, number = self.at, 0
        for shift in range(0, _NUMBER_BITS, 7):
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        else:
            raise DamagedError(f"the number at byte {start} has no end")
        if number >> _NUMBER_BITS:
            raise DamagedError(f"the number at byte {start} has more than {_NUMBER_BITS} bits")
        return number

    def end(self) -> None:
        """Raise DamagedError unless all bytes of the data were read."""
        if self.at != len(self._data):
            raise DamagedError(f"{len(self._data) - self.at} surplus bytes from byte {self.at} on")
