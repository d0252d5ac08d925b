"""What a hostile peer did, and what came of it, how often: in a file, for who asks afterwards."""

import asyncio
from collections import Counter
from pathlib import Path

import msgspec

from giaann_p2p.store.disk.small_file import read_json, write_json

_EVERY = 0.5


class _Kept(msgspec.Struct, frozen=True):
    counts: dict[str, int] = {}


class Tally(Counter[str]):
    """See the module."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = _file_in(folder)

    async def keep(self) -> None:
        """Keep the file current, for ever."""
        while True:
            write_json(self._file, _Kept(dict(self)))
            await asyncio.sleep(_EVERY)


def tally_in(folder: Path) -> dict[str, int]:
    """Return what the peer of a folder did."""
    kept = read_json(_file_in(folder), _Kept)
    return kept.counts if kept is not None else {}


def _file_in(folder: Path) -> Path:
    return folder / "tally.json"
