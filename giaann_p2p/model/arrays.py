"""Arrays where the state of a prompt lives: numpy's on the processor, torch's on a GPU.

An operation on some hundred numbers takes torch three to four times as long as numpy, so a token on
a processor, too. Both understand indexing, slices, comparisons and arithmetic in the same words;
what they call by different names is here.
"""

from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

Array: TypeAlias = Any
"""An array of numpy or a tensor of torch, with what is common to both."""

Host = npt.NDArray[Any]


class Arrays(Protocol):
    """Makes arrays on one device."""

    def zeros(self, count: int, dtype: str) -> Array:
        """Return `count` zeros."""
        ...

    def of(self, host: Host) -> Array:
        """Return an array of the host on the device; it may share memory."""
        ...

    def host(self, array: Array) -> Host:
        """Return an array on the host; from a GPU this is a copy, which waits for all before it."""
        ...

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """Return one or the other value, place by place."""
        ...

    def highest(self, array: Array) -> Array:
        """Return the greatest values along the second dimension."""
        ...


class HostArrays:
    """Arrays of numpy."""

    def zeros(self, count: int, dtype: str) -> Array:
        """Return `count` zeros; they take no memory until they are written to."""
        return np.zeros(count, dtype)

    def of(self, host: Host) -> Array:
        """Return the same array."""
        return host

    def host(self, array: Array) -> Host:
        """Return the same array."""
        found: Host = array
        return found

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

    def zeros(self, count: int, dtype: str) -> Array:
        """Return `count` zeros."""
        return torch.zeros(count, dtype=getattr(torch, dtype), device=self._device)

    def of(self, host: Host) -> Array:
        """Return a copy on the device; on the processor, a view."""
        return torch.from_numpy(host).to(self._device)

    def host(self, array: Array) -> Host:
        """Return a copy on the host; on the processor, a view."""
        found: Host = array.cpu().numpy()
        return found

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """Return one or the other value, place by place."""
        return torch.where(condition, yes, no)

    def highest(self, array: Array) -> Array:
        """Return the greatest values along the second dimension."""
        return array.amax(1)


def arrays_on(device: torch.device) -> Arrays:
    """Return what makes arrays on a device."""
    return HostArrays() if device.type == "cpu" else TorchArrays(device)
