"""The resources that a storage peer uses, and how it leaves: logged at its start."""

from collections.abc import Iterator
from pathlib import Path

from giaann_p2p.machine import DISK_SHARE, PROCESS_BYTES
from giaann_p2p.units import readable_bytes, span
from peers.storage.options import StorageOptions


def costs(options: StorageOptions, folder: Path, memory: int | None, disk: int) -> Iterator[str]:
    """Yield log lines on a storage peer's memory, disk, network and departure.

    `memory` and `disk` are the free bytes of this machine; `memory` is None if unknown.
    """
    capacity, itself = readable_bytes(options.capacity_bytes), readable_bytes(PROCESS_BYTES)
    free = "" if memory is None else f"; {readable_bytes(memory)} are free"
    yield f"memory: up to {capacity} (--capacity), and {itself} for the process itself{free}"
    yield f"disk: {_disk(options, folder)}; {readable_bytes(disk)} are free"
    bounded, most = options.settings().bandwidth, options.bandwidth.strip().removesuffix("/s")
    rate = f"up to {most}/s" if bounded else "as much as there is"
    yield f"network: {rate} while it fetches shards (--bandwidth), besides reads and updates"
    yield f"leaving: {_leaving(options, folder)}"


def _disk(options: StorageOptions, folder: Path) -> str:
    if options.memory_only:
        return f"a few kilobytes in {folder}, because columns are kept in memory only"
    most = options.capacity_bytes // DISK_SHARE + options.remember_bytes
    cold = readable_bytes(options.settings().cold_bytes)
    return f"up to {readable_bytes(most)} in {folder}, and up to {cold} of cold copies (--cold)"


def _leaving(options: StorageOptions, folder: Path) -> str:
    within = f"for up to {span(options.leave_within)}" if options.leave_within else "without limit"
    rest = "is lost, unless another peer has it"
    if not options.memory_only:
        rest = f"stays in {folder}, and the same command brings it back"
    return (
        f"Ctrl-C hands its shards over, {within} (--leave-within), and a second Ctrl-C ends"
        f" it at once; what is not handed over {rest}"
    )
