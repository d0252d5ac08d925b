"""One-line checks of decoded data; a failed check raises DamagedError."""

from typing import Any

import numpy as np
import numpy.typing as npt

from giaann_p2p.errors import DamagedError


def check(held: bool | np.bool_, otherwise: str) -> None:
    """Raise DamagedError with the message `otherwise`, unless `held` is true."""
    if not held:
        raise DamagedError(otherwise)


def ascending(values: npt.NDArray[Any]) -> np.bool_:
    """Return whether each value of an array is larger than the one before."""
    return (values[1:] > values[:-1]).all()
