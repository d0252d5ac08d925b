"""Arrays where the states of prompts live: numpy's on the processor, torch's on a GPU.

An operation on some hundred numbers takes torch three to four times as long as numpy, so a token on
a processor, too. Both understand indexing, slices, comparisons and arithmetic in the same words;
what they call by different names is here. All numbers are of 64 bits.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

Array: TypeAlias = Any
"""An array of numpy or a tensor of torch, with what is common to both."""

Host = npt.NDArray[Any]


class Arrays(Protocol):
    """Makes arrays on one device."""

    def zeros(self, count: int) -> Array:
        """Return `count` zeros."""
        ...

    def send(self, host: Sequence[Host]) -> Sequence[Array]:
        """Return arrays of the host on the device, moved by one copy; they may share memory."""
        ...

    def host(self, array: Array) -> Host:
        """Return an array on the host; from a GPU this is a copy, which waits for all before it."""
        ...

    def joined(self, arrays: Sequence[Array]) -> Array:
        """Return arrays one after another; of a single array this may be the array itself."""
        ...

    def spread(self, values: Array, counts: Array, total: int) -> Array:
        """Return each value as often as counted, `total` in all; a single value may stay one."""
        ...

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """Return one or the other value, place by place."""
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
        """Return arrays one after another."""
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def spread(self, values: Array, counts: Array, total: int) -> Array:
        """Return each value as often as counted; a single value stays one."""
        return values if len(values) == 1 else values.repeat(counts)

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """Return one or the other value, place by place."""
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
        """Return arrays one after another."""
        return torch.cat(list(arrays))

    def spread(self, values: Array, counts: Array, total: int) -> Array:
        """Return each value as often as counted; told the total, no device waits for it."""
        return torch.repeat_interleave(values, counts, output_size=total)

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """Return one or the other value, place by place."""
        return torch.where(condition, yes, no)

    def highest(self, array: Array) -> Array:
        """Return the greatest values along the second dimension."""
        return array.amax(1)


def arrays_on(device: torch.device) -> Arrays:
    """Return what makes arrays on a device."""
    return HostArrays() if device.type == "cpu" else TorchArrays(device)
