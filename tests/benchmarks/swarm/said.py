"""What came of prompts: tokens, and what each of them took."""

from dataclasses import dataclass, field
from statistics import fmean

from giaann_p2p.swarm.wire.prompt_messages import Cost


@dataclass
class Said:
    """Of prompts that were asked together, or one after the other."""

    seconds: float = 0.0
    """All of it."""
    tokens: int = 0
    texts: list[str] = field(default_factory=list)
    """An answer a prompt."""
    first: list[float] = field(default_factory=list)
    """Seconds until each prompt's first token."""
    answers: list[float] = field(default_factory=list)
    """Seconds until each prompt's last one."""
    token_seconds: list[float] = field(default_factory=list)
    """Of each token that has one before it, at whoever finds it."""
    costs: list[Cost] = field(default_factory=list)
    """What tokens cost a compute peer."""
    begun: list[Cost] = field(default_factory=list)
    """What the prompts before them did."""

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self.tokens / self.seconds if self.seconds else 0.0

    @property
    def at_hand(self) -> float:
        """The part of rows that nobody had to be waited for."""
        return sum(one.kept for one in self.costs) / max(1, sum(one.rows for one in self.costs))

    @property
    def trips(self) -> float:
        """How often others had to be waited for, a token."""
        return fmean(one.trips for one in self.costs)

    @property
    def most_trips(self) -> int:
        """The most of any token."""
        return max(one.trips for one in self.costs)

    def add(self, other: "Said") -> None:
        """Take in what came of others, asked after these."""
        self.seconds += other.seconds
        self.tokens += other.tokens
        self.texts += other.texts
        self.first += other.first
        self.answers += other.answers
        self.token_seconds += other.token_seconds
        self.costs += other.costs
        self.begun += other.begun
