"""What a brain has learned, and from which chunks of which texts: always both together."""

from typing import NamedTuple

import msgspec

from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.model.tally import Tally


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A text that was or is being learned: chunks 0 to `chunks` - 1 are in the brain."""

    name: str
    epoch: int = 1
    """It is being learned for the n-th time."""
    chunks: int = 0
    complete: bool = False


Jobs = dict[str, Job]
"""Jobs by their ids."""


class Learned(NamedTuple):
    """Knowledge and the jobs that it comes from, at one moment."""

    tally: Tally
    jobs: Jobs


class Memory:
    """Grows by whole chunks: one assignment changes knowledge and jobs together."""

    def __init__(self, knowledge: Delta = EMPTY, jobs: Jobs | None = None) -> None:
        self.learned = Learned(Tally(knowledge), dict(jobs or {}))

    @property
    def knowledge(self) -> Delta:
        """The sum of all that was learned."""
        return self.learned.tally.total()

    @property
    def jobs(self) -> Jobs:
        """Where it comes from."""
        return self.learned.jobs

    def learn(self, identity: str, job: Job, delta: Delta) -> None:
        """Add the chunk that brings a job to where it is now."""
        tally, jobs = self.learned
        self.learned = Learned(tally.plus(delta), {**jobs, identity: job})

    def note(self, identity: str, job: Job) -> None:
        """Set down where a job is that brought nothing new."""
        tally, jobs = self.learned
        self.learned = Learned(tally, {**jobs, identity: job})
