"""Checks of what was read, in one breath each: what does not hold is damage."""

from typing import Any

import numpy as np
import numpy.typing as npt

from giaann_p2p.errors import DamagedError


def check(held: bool | np.bool_, otherwise: str) -> None:
    """Raise DamagedError, with what is wrong, unless it held."""
    if not held:
        raise DamagedError(otherwise)


def ascending(values: npt.NDArray[Any]) -> np.bool_:
    """Tell whether each value is larger than the one before."""
    return (values[1:] > values[:-1]).all()
