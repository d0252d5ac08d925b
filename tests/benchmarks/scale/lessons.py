"""What is learned: chunks of made-up text whose words are as frequent as real ones (see `zipf`)."""

from functools import cache
from itertools import islice

from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.learn import learn
from giaann_p2p.model.spec import ModelSpec
from tests.benchmarks.zipf import Zipf

SPEC = ModelSpec()
_SEED = 1


@cache
def learned(chunks: int, after: int = 0) -> Delta:
    """Return what some chunks come to, behind some that are left out."""
    text = Zipf().chunks(SPEC, _SEED)
    return total([learn(one, SPEC) for one in islice(text, after, after + chunks)])
