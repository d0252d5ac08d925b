"""Selects the torch device to compute on."""

import torch

from giaann_p2p.errors import DeviceError


def resolve(device: str) -> torch.device:
    """Return the device of that name; `auto` is CUDA if available, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).item()
    except (RuntimeError, AssertionError, ImportError) as error:  # backends differ
        reason = str(error).splitlines()[0]
        raise DeviceError(f"no device {device!r} here ({reason}); try auto or cpu") from None
    return chosen
