"""Which torch device to compute on."""

import torch

from giaann_p2p.errors import DeviceError


def resolve(device: str) -> torch.device:
    """Return the device of that name; `auto` takes CUDA where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).item()
    except (RuntimeError, AssertionError, ImportError) as error:  # as torch's parts see fit
        reason = str(error).splitlines()[0]
        raise DeviceError(f"no device {device!r} here ({reason}); try auto or cpu") from None
    return chosen
