"""Arrays for the states of prompts: numpy's on the CPU, torch's on a GPU.

An operation on a few hundred numbers takes torch three to four times as long as numpy, and so does
a token on the CPU. Indexing, slices, comparisons and arithmetic are written alike for both; this
module wraps the operations whose names differ. All numbers have 64 bits.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

Array: TypeAlias = Any
"""A numpy array or a torch tensor, used only in ways that both support."""

Host = npt.NDArray[Any]


class Arrays(Protocol):
    """Makes arrays on one device."""

    def zeros(self, count: int) -> Array:
        """Return `count` zeros."""
        ...

    def send(self, host: Sequence[Host]) -> Sequence[Array]:
        """Return host arrays on the device, moved in one transfer; they may share memory."""
        ...

    def host(self, array: Array) -> Host:
        """Return an array on the host; from a GPU, a copy that waits for earlier operations."""
        ...

    def joined(self, arrays: Sequence[Array]) -> Array:
        """Concatenate arrays; a single array may be returned as it is."""
        ...

    def spread(self, values: Array, counts: Array, total: int) -> Array:
        """Repeat each value `counts` times, `total` in all; a single value may stay one."""
        ...

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """Return `yes` where the condition holds, else `no`, element by element."""
        ...

    def highest(self, array: Array) -> Array:
        """Return the greatest values along the second dimension."""
        ...


class HostArrays:
    """Arrays of numpy."""

    def zeros(self, count: int) -> Array:
        """Return `count` zeros; they take no memory until they are written to."""
        return np.zeros(count, np.int64)

    def send(self, host: Sequence[Host]) -> Sequence[Array]:
        """Return the same arrays."""
        return host

    def host(self, array: Array) -> Host:
        """Return the same array."""
        found: Host = array
        return found

    def joined(self, arrays: Sequence[Array]) -> Array:
        """Concatenate arrays."""
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def spread(self, values: Array, counts: Array, total: int) -> Array:
        """Repeat each value `counts` times; a single value stays one."""
        return values if len(values) == 1 else values.repeat(counts)

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """Return `yes` where the condition holds, else `no`, element by element."""
        return np.where(condition, yes, no)

    def highest(self, array: Array) -> Array:
        """Return the greatest values along the second dimension."""
        return array.max(1)


class TorchArrays:
    """Tensors of torch on any device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def zeros(self, count: int) -> Array:
        """Return `count` zeros."""
        return torch.zeros(count, dtype=torch.int64, device=self._device)

    def send(self, host: Sequence[Host]) -> Sequence[Array]:
        """Return copies on the device: views of the one array that is moved."""
        flat = torch.from_numpy(np.concatenate([array.ravel() for array in host]))
        parts = torch.split(flat.to(self._device, copy=True), [array.size for array in host])
        return [p.view(a.shape) if a.ndim > 1 else p for p, a in zip(parts, host, strict=True)]

    def host(self, array: Array) -> Host:
        """Return a copy on the host."""
        found: Host = array.to("cpu", copy=True).numpy()
        return found

    def joined(self, arrays: Sequence[Array]) -> Array:
        """Concatenate arrays."""
        return torch.cat(list(arrays))

    def spread(self, values: Array, counts: Array, total: int) -> Array:
        """Repeat each value `counts` times; given `total`, torch need not wait for the device."""
        return torch.repeat_interleave(values, counts, output_size=total)

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """Return `yes` where the condition holds, else `no`, element by element."""
        return torch.where(condition, yes, no)

    def highest(self, array: Array) -> Array:
        """Return the greatest values along the second dimension."""
        return array.amax(1)


def arrays_on(device: torch.device) -> Arrays:
    """Return the `Arrays` for a device."""
    return HostArrays() if device.type == "cpu" else TorchArrays(device)
