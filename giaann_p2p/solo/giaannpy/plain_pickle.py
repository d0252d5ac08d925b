"""Reads pickles that hold one flat dictionary, of texts and whole numbers.

A pickle is a program, and unpickling one runs whatever it names. This reader executes only the
dozen instructions that a flat dictionary needs, none of which can name, import, call or build
anything. It refuses a pickle at the first other instruction. It takes memory in proportion to the
file, because nothing nests, and no size that an instruction states is used unchecked.
"""

import struct
from typing import Final

from giaann_p2p.errors import DatabaseError

Plain = dict[str | int, str | int]
"""A flat dictionary; True and False are whole numbers, too."""

_NUMBERS: Final = {
    ord("K"): struct.Struct("<B"),
    ord("M"): struct.Struct("<H"),
    ord("J"): struct.Struct("<i"),
}
_TEXTS: Final = {0x8C: struct.Struct("<B"), ord("X"): struct.Struct("<I")}
_TRUTHS: Final = {0x88: True, 0x89: False}
_RECALLED: Final = {ord("h"): struct.Struct("<B"), ord("j"): struct.Struct("<I")}
_REMEMBERED: Final = {0x94: 0, ord("q"): 1, ord("r"): 4}
"""The instructions that store the last value in the memo, with the bytes of its number there."""
_PASSED: Final = {0x80: 1, 0x95: 8}
"""The instructions that change nothing (protocol, frame), with the bytes that follow them."""
_DICT, _MARK, _ITEM, _ITEMS, _STOP = (ord(op) for op in "}(su.")

_CODE = frozenset(b"cio\x81\x92R\x93b\x82\x83\x84PQ")
"""The instructions that name, call or build something."""


def dictionary(data: bytes, name: object) -> Plain:
    """Return the dictionary in a pickle; DatabaseError, with the name, for any other pickle."""
    try:
        return _Reader(data).read()
    except _UnknownInstruction as error:
        if error.op in _CODE:
            raise DatabaseError(
                f"{name} asks for code to be run, and was refused: it is no part of a database; "
                "do not load it with GIAANNpy, either"
            ) from None
        raise DatabaseError(
            f"{name} holds more than a flat dictionary of texts and numbers; databases made with "
            "other settings of GIAANNpy cannot be read"
        ) from None
    except (struct.error, IndexError, ValueError):
        raise DatabaseError(f"{name} is damaged; copy the database again") from None


class _UnknownInstruction(Exception):  # noqa: N818  (it is no failure of ours)
    def __init__(self, op: int) -> None:
        super().__init__(op)
        self.op = op


class _Reader:
    """Carries out the instructions of one pickle."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._found: Plain | None = None
        self._items: list[str | int] = []
        """The keys and values that are not in the dictionary yet, alternating."""
        self._memo: list[str | int] = []

    def read(self) -> Plain:
        """Run to the end; ValueError, IndexError or struct.error for a malformed pickle."""
        data, items = self._data, self._items
        while True:
            op = data[self._at]
            self._at += 1
            if op in _NUMBERS:
                items.append(self._number(_NUMBERS[op]))
            elif op in _TEXTS:
                items.append(self._text(self._number(_TEXTS[op])))
            elif op in _REMEMBERED:
                self._remember(_REMEMBERED[op])
            elif op in _TRUTHS:
                items.append(_TRUTHS[op])
            elif op in _RECALLED:
                items.append(self._memo[self._number(_RECALLED[op])])
            elif op in _PASSED:
                self._at += _PASSED[op]
            elif op == _STOP:
                return self._result()
            else:
                self._change(op)

    def _number(self, form: struct.Struct) -> int:
        (number,) = form.unpack_from(self._data, self._at)
        self._at += form.size
        return int(number)

    def _text(self, size: int) -> str:
        end = self._at + size  # if beyond the data, reading the next instruction fails
        text = self._data[self._at : end].decode("utf-8", "surrogatepass")
        self._at = end
        return text

    def _remember(self, size: int) -> None:
        """Store the last value, or 0 for the dictionary, in the memo under the next number."""
        number = int.from_bytes(self._data[self._at : self._at + size], "little")
        if size and number != len(self._memo):
            raise ValueError("values are not numbered in turn")
        self._at += size
        self._memo.append(self._items[-1] if self._items else 0)

    def _change(self, op: int) -> None:
        """Begin the dictionary, or move the items into it."""
        if op == _DICT and self._found is None and not self._items:
            self._found = {}
        elif op == _MARK and self._found is not None and not self._items:
            pass
        elif op in (_ITEM, _ITEMS) and self._found is not None:
            keys, values = self._items[::2], self._items[1::2]
            self._found.update(zip(keys, values, strict=True))
            self._items.clear()
        else:
            raise _UnknownInstruction(op)

    def _result(self) -> Plain:
        if self._found is None or self._items or self._at != len(self._data):
            raise ValueError("no dictionary, or something behind it")
        return self._found
