"""Reads and writes the reference's tensor files: sparse, in 32-bit fractions, on the CPU.

`torch.load` with `weights_only` runs no code of a file, but may build objects larger than the file.
So a file is refused if its parts grow by unpacking, or name more than a sparse tensor consists of.
"""

import io
import pickletools
import struct
import zipfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from giaann_p2p.errors import DatabaseError
from giaann_p2p.model.sequence import Ints

Fractions = npt.NDArray[np.float64]

_MOST_PARTS, _MOST_PICKLE = 16, 1 << 16
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    OSError,
    RuntimeError,
    EOFError,
    ValueError,
    OverflowError,
    struct.error,
)
"""The errors that `zipfile` raises for a damaged file."""
_NAMED = frozenset(
    [
        "torch._utils _rebuild_sparse_tensor",
        "torch._utils _rebuild_tensor_v2",
        "torch.serialization _get_layout",
        "torch LongStorage",
        "torch FloatStorage",
        "torch HalfStorage",
        "torch BFloat16Storage",
        "torch DoubleStorage",
        "torch Size",
        "collections OrderedDict",
    ]
)
"""The objects that the pickle of a sparse tensor may name. Fractions of all sizes are allowed, so
that the error for a wrong size can name the right one."""
_NAMING = frozenset(["INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4", "NEWOBJ", "NEWOBJ_EX", "OBJ"])
"""Other pickle instructions that name or build objects; PyTorch's files have none of them."""


class Entries(NamedTuple):
    """The entries of a sparse tensor of D dimensions: n distinct places, ascending."""

    places: Ints
    """Shape [D, n]: the coordinates of each entry."""
    values: Fractions
    """Shape [n]: the value of each entry; all are above 0."""


def entries(data: bytes, name: object, shape: Sequence[int]) -> Entries:
    """Return the entries in a tensor file of this shape; DatabaseError, with `name`, otherwise."""
    _check_parts(data, name)
    with _unchecked():
        try:
            tensor = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        except Exception as error:  # noqa: BLE001  (torch raises anything for a damaged file)
            raise _damaged(name, str(error).partition("\n")[0][:200]) from None
    if type(tensor) is not torch.Tensor or tensor.layout is not torch.sparse_coo:
        raise DatabaseError(f"{name} holds no sparse tensor; {_OTHER_SETTINGS}")
    if tensor.dtype != torch.float32 or tuple(tensor.shape) != tuple(shape):
        raise DatabaseError(
            f"{name} holds a tensor of {tensor.dtype} and the shape {tuple(tensor.shape)} instead "
            f"of torch.float32 and {tuple(shape)}; {_OTHER_SETTINGS}"
        )
    if tensor._nnz() * (8 * len(shape) + 4) > len(data):
        raise _damaged(name, "it states more entries than it holds")
    return _summed(tensor, name, shape)


def _unchecked() -> AbstractContextManager[None]:
    """Return a context in which PyTorch does not check the indices of sparse tensors.

    PyTorch's check takes 12 ms per file on a busy machine; that of `_summed` takes a tenth of it.
    """
    found: AbstractContextManager[None] = torch.sparse.check_sparse_tensor_invariants(False)  # type: ignore[no-untyped-call]
    return found


_OTHER_SETTINGS = "databases made with other settings of GIAANNpy cannot be read"


def _damaged(name: object, why: str) -> DatabaseError:
    return DatabaseError(f"{name} is damaged ({why}); copy the database again")


def _check_parts(data: bytes, name: object) -> None:
    """Raise DatabaseError unless the file has only what a sparse tensor needs."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            infos = parts.infolist()
            pickles = [info for info in infos if info.filename.endswith("/data.pkl")]
            size = sum(info.file_size for info in infos)
            if size > len(data) or len(infos) > _MOST_PARTS or len(pickles) != 1:
                raise _damaged(name, "its parts are not those of a tensor")
            if pickles[0].file_size > _MOST_PICKLE:
                raise _damaged(name, "the description of its tensor is too long")
            pickle = parts.read(pickles[0])
    except _ZIP_ERRORS as error:
        raise _damaged(name, str(error)) from None
    try:
        instructions = [(op.name, argument) for op, argument, _ in pickletools.genops(pickle)]
    except ValueError as error:
        raise _damaged(name, str(error)) from None
    for op, argument in instructions:
        if op in _NAMING or (op == "GLOBAL" and argument not in _NAMED):
            raise DatabaseError(
                f"{name} asks for {argument or op}, which no tensor needs, and was refused: it may "
                "run code; do not load it with GIAANNpy, either"
            )


def _summed(tensor: torch.Tensor, name: object, shape: Sequence[int]) -> Entries:
    """Return a tensor's entries in order; the entries of one place are added up."""
    places, values = tensor._indices().numpy(), tensor._values().numpy().astype(np.float64)
    # PyTorch checks the shapes, too, but does not promise to.
    fit = places.ndim == 2 and values.ndim == 1 and places.shape == (len(shape), len(values))
    if places.dtype != np.int64 or not fit:
        raise _damaged(name, "its places and its values do not fit together")
    if np.any(places < 0) or np.any(places >= np.array(shape)[:, None]):
        raise _damaged(name, "an entry lies outside the tensor")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise _damaged(name, "a strength is negative or no number")
    flat, slot = np.unique(np.ravel_multi_index(tuple(places), shape), return_inverse=True)
    total = np.bincount(slot, values, len(flat)).astype(np.float64)
    kept = total > 0
    return Entries(np.stack(np.unravel_index(flat[kept], shape)).astype(np.int64), total[kept])


def write(path: Path, places: Ints, values: Fractions, shape: Sequence[int]) -> None:
    """Write a tensor file of distinct ascending places; each value is kept to the last bit.

    A value that needs more than 24 bits becomes two entries at one place, which PyTorch adds up;
    neither is negative.
    """
    near = values.astype(np.float32)
    near = np.where(near > values, np.nextafter(near, np.float32(0)), near)
    rest = (values - near).astype(np.float32)
    more = rest != 0
    with _unchecked():
        tensor = torch.sparse_coo_tensor(
            torch.from_numpy(np.concatenate([places, places[:, more]], axis=1)),
            torch.from_numpy(np.concatenate([near, rest[more]])),
            tuple(shape),
            is_coalesced=not more.any(),
        )
        torch.save(tensor, path)
