"""What was added lately, as one thread sees it while another one reads."""

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np

from giaann_p2p.store.memory.batch import Batch

NUMBERS = np.arange(4)
BATCH = Batch(
    first=0,
    neuron=NUMBERS,
    count=NUMBERS,
    starts=np.arange(5),
    target=NUMBERS,
    place=NUMBERS,
    units=NUMBERS.astype(np.uint32),
    previous=NUMBERS,
    shard_starts=np.arange(3),
)


class Meanwhile(np.ndarray):  # type: ignore[type-arg]
    """An array that lets something happen while it is measured, as another thread might."""

    happens: Callable[[], object]

    @property
    def nbytes(self) -> int:
        self.happens()
        return int(self.size * self.itemsize)


def test_a_batch_takes_what_its_arrays_take() -> None:
    arrays = [getattr(BATCH, field.name) for field in fields(BATCH) if field.name != "first"]
    assert BATCH.nbytes == sum(array.nbytes for array in arrays)


def test_a_batch_is_measured_while_another_thread_reads_it() -> None:
    neuron = NUMBERS.view(Meanwhile)
    batch = replace(BATCH, neuron=neuron)
    neuron.happens = lambda: batch.plain
    assert batch.nbytes == BATCH.nbytes
