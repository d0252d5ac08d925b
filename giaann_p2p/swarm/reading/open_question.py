"""An open question for rows: its parts, and which peers were asked for each."""

from giaann_p2p.model.row_slice import EVERYTHING, RowSlice
from giaann_p2p.model.rows import Neuron, Question, Row
from giaann_p2p.swarm.reading.known_rows import Known
from giaann_p2p.swarm.reading.row_vote import Ballot
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.row_messages import MOST_READ

_SLICES_AT_ONCE = 4
"""Maximum number of slices of one question that are asked for at the same time, because a holder
goes through the whole row for each slice."""
_ENOUGH_SAY_SO = 2
"""Number of peers that must refuse an answer as too long to be believed while others are left to
ask."""


class Part:
    """The part of a question that concerns one shard: its neurons, and the peers asked for them."""

    def __init__(
        self,
        shard: int,
        neurons: list[Neuron],
        number: int,
        known: Known,
        within: RowSlice = EVERYTHING,
    ) -> None:
        self.shard, self.neurons, self.number, self.known = shard, neurons, number, known
        self.within = within
        """The slice of the rows; unless it is everything, the part has only one neuron."""
        self.has_begun = not within.halvings
        """Whether peers may be asked; slices of one question wait for each other."""
        self.rows: list[Row | None] | None = None
        """The rows of `neurons`; None while the part has no result."""
        self.tried: set[Peer] = set()
        """Peers that were asked since all peers were last retried."""
        self.asked: set[Peer] = set()
        """Peers with a pending call, which are not called a second time meanwhile."""
        self.heard: set[Peer] = set()
        """Peers in `tried` that have answered."""
        self.late = 0.0
        """Time at which to ask another peer."""
        self.ballot: Ballot | None = None
        """The vote on the rows of this part; None if they are not put to a vote."""
        self.disputed = False
        """Whether a dispute on rows of this part was opened."""
        self.refused = dict[Peer, int]()
        """The peers that refused a call as too long, and the number of neurons in the call. Only
        the smallest refused calls count."""
        self.is_too_long = False
        """Whether the answer is believed to be too long, so that less must be asked for at once."""

    @property
    def least_refused(self) -> int:
        """The number of neurons in the smallest call whose answer would be too long."""
        return min(self.refused.values())

    def add_refusal(self, peer: Peer, neurons: int) -> None:
        """Record that a peer refused a call for so many neurons as too long."""
        if self.refused and neurons != self.least_refused:
            if neurons > self.least_refused:
                return
            self.refused.clear()
        self.refused[peer] = neurons
        self.is_too_long = len(self.refused) >= _ENOUGH_SAY_SO

    def ask_again(self, late: float) -> None:
        """Let all peers be asked anew, from the time `late` on."""
        self.tried.clear()
        self.heard.clear()
        self.is_too_long, self.late = False, late

    @property
    def need(self) -> int:
        """Number of peers to ask at once: one, or as many as a vote needs."""
        return 1 if self.ballot is None else self.ballot.need


class Reading:
    """One open question for rows; it fails if it is still open at the time `end`."""

    def __init__(self, number: int, question: Question, parts: list[Part], end: float) -> None:
        self.number, self.question, self.parts, self.end = number, question, parts, end
        self.most = MOST_READ
        """Maximum number of neurons to ask for at once."""

    @property
    def slices(self) -> list[Part]:
        """The slices of rows that are not read yet."""
        return [part for part in self.parts if part.rows is None and part.within.halvings]

    def begin_slices(self) -> None:
        """Let as many slices begin as may be asked for at the same time."""
        slices = self.slices
        waiting = [part for part in slices if not part.has_begun]
        begun = len(slices) - len(waiting)
        for part in waiting[: max(0, _SLICES_AT_ONCE - begun)]:
            part.has_begun = True
