"""Answers from the stores of a swarm's storage peers, opened in this process."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from giaann_p2p.model.device import resolve
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.rows import Answer, Question
from giaann_p2p.solo import answer
from giaann_p2p.store.store import Store


class Stores:
    """The rows of a model that is spread over stores, of which no two hold the same shard."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self._layout = stores[0].layout
        self._of = {shard: store for store in stores for shard in store.shards.tolist()}

    def read(self, question: Question) -> Answer:
        """Return the rows of the question's neurons, in order; None for a neuron without one."""
        found: Answer = []
        for neuron in question.neurons:
            store = self._of[self._layout.shard_of(*neuron)]
            found += store.read(Question([neuron]))
        return found


def answers(folders: Sequence[Path], prompts: Sequence[str], most: int) -> list[str]:
    """Return the answers to some prompts."""
    with ExitStack() as stack:
        stores = [stack.enter_context(Store.at(path, readonly=True)) for path in folders]
        profile, rows = profile_of(stores[0].spec, resolve("cpu")), Stores(stores)
        said = [answer.Answer(one, rows, profile, Manner(max_tokens=most)) for one in prompts]
        return ["".join(token.text for token in one) for one in said]
