"""The activation states of minds, which are brought up to date together.

An `Activation` is the state of one mind under one timing, and knows which heard words it has not
fired yet. `Batch.settle` fires these for any number of states at once, and scores the candidates
for the next word. All states of a batch share the arrays of `Lanes`. A state gets a range of slots
there, its lane, when it is first settled, moves to a larger lane when it needs more room, and gives
the lane back when it is deleted: when its mind drops it, because nothing else refers to it.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakSet

import torch

from giaann_p2p.errors import GiaannError
from giaann_p2p.model.arrays import arrays_on
from giaann_p2p.model.board import Board, Wiring
from giaann_p2p.model.candidates import Candidates, foreseen, scored
from giaann_p2p.model.lanes import FIRST, Firing, Kind, Lanes, Scoring
from giaann_p2p.model.manner import Timing, Variant
from giaann_p2p.model.rows import Neuron, Row, Work
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.spec import ModelSpec

_LEAST_ROOM = 256
"""The number of slots of the smallest lane; a larger lane has this times a power of two."""
_WORD = 32
"""The cost of firing a word without connections, as a number of connections."""
_NUMBER_BYTES = 16
"""The bytes that one place takes in the arrays A and T of `lanes`, together."""


class NoMemory(GiaannError):  # noqa: N818  (what it is, not what went wrong)
    """There is no memory left for the state of a prompt."""


@dataclass
class Heard:
    """The words that a mind has heard; all its states fire these."""

    board: Board
    rows: list[Row] = field(default_factory=list)
    wirings: list[Wiring] = field(default_factory=list)
    """The wirings of the first of these rows, as far as a state has needed them."""

    def copy(self) -> "Heard":
        """Return a copy, to which words can be added independently of this one."""
        return Heard(self.board, list(self.rows), list(self.wirings))

    def wire(self) -> None:
        """Make the wirings of the rows that have none yet."""
        for at in range(len(self.wirings), len(self.rows)):
            self.wirings.append(self.board.wire(self.rows[at]))


class Activation(Work):
    """The state of one mind under one timing."""

    def __init__(self, batch: "Batch", heard: Heard, timing: Timing) -> None:
        self.timing, self.heard = timing, heard
        self.ahead = False
        """Whether to score also the neurons that may come after the next word: see `foreseen`."""
        self.fault: Exception | None = None
        """Why the state could not be brought up to date."""
        self.origin: tuple[Activation, int] | None = None
        """The state from which to copy this one, and the number of words fired there."""
        self.start = self.room = 0
        """The first slot of the lane, and the number of its slots; 0 for none."""
        self.fired = 0
        """The number of words fired."""
        self.touching: dict[Wiring, None] = {}
        """The wirings of the words fired, each once: only their places in the lane may differ from
        0. Answers repeat words, so these are far fewer than the words of a long answer."""
        self.column = FIRST
        """The time of the last fired word's column: it counts changes of concept."""
        self.scores: tuple[Ints, Ints] | None = None
        """The scores after the last word; None until these are needed."""
        self._batch = batch
        self.kind = Kind(heard.board.variant, timing is Timing.BIASED)
        """States of the same kind can be settled in one run."""

    @property
    def now(self) -> int:
        """The time of the word fired last."""
        return FIRST + self.fired - 1

    @property
    def connections(self) -> int:
        """The number of connections of the words to fire; a word costs as much as `_WORD` of them.

        So words without connections count, too, because a long prompt of unknown words takes long.
        """
        return sum([_WORD + len(row.target) for row in self.heard.rows[self.fired :]])

    @property
    def settled(self) -> bool:
        """Whether the state is up to date, or cannot be brought up to date."""
        return self.fault is not None or (
            self.scores is not None and self.fired == len(self.heard.rows)
        )

    def __del__(self) -> None:
        """Give the lane back. Nothing is computed: a state may end at any time, in any thread."""
        self.leave()

    def together(self, others: Sequence[Work]) -> None:
        """Bring this state up to date, and other states of its batch."""
        states = [self, *(other for other in others if isinstance(other, Activation))]
        self._batch.settle([state for state in states if not state.settled])

    def candidates(self, anywhere: bool = False) -> Candidates:
        """Return the candidates after the word fired last; the state must be settled.

        `anywhere`: also return candidates that the column rules exclude.
        """
        if self.fault is not None:
            raise self.fault
        if self.scores is None:
            raise ValueError("nothing was fired yet")
        return scored(self.heard.wirings[self.fired - 1], self.scores[0], anywhere)

    def foreseen(self, most: int) -> list[Neuron]:
        """Guess which neurons come after the next word, as a hint for prefetching their rows.

        The guess is as old as the last settling with `ahead`. For the next word itself, use
        `candidates`.
        """
        if self.scores is None or not len(self.scores[1]):
            return []
        return foreseen(self.heard.wirings[self.fired - 1], self.scores[1], most)

    @property
    def here(self) -> "tuple[Activation, int] | None":
        """The origin for a copy of this state; None if nothing was fired."""
        return (self, self.fired) if self.fired else self.origin

    def leave(self) -> None:
        """Give the lane back, and reset the state."""
        if self.room:
            self._batch.take_back(self)
        self.start = self.room = self.fired = 0
        self.column, self.scores, self.origin = FIRST, None, None
        self.touching = {}


class Batch:
    """All minds of a peer: the boards that they share, their lanes, and a bound on both.

    No two threads may settle states of a batch at the same time.
    """

    def __init__(
        self, spec: ModelSpec, device: torch.device | None = None, most_bytes: int = 1 << 32
    ) -> None:
        self.spec, self.most_bytes = spec, most_bytes
        self._lanes = Lanes(spec, arrays_on(device or torch.device("cpu")))
        self._slot_bytes = spec.branches * spec.segments * _NUMBER_BYTES
        self._used = 0  # slots of all lanes
        self._end = 1  # one past the last slot ever used; slot 0 belongs to no lane
        self._free: dict[int, list[int]] = {}  # by size: cleared lanes
        self._left = deque[tuple[int, int, list[Wiring]]]()  # lanes to clear
        self._newest: dict[Variant, Board] = {}
        self._boards = WeakSet[Board]()

    def __repr__(self) -> str:
        return f"<Batch: {self.nbytes:,} bytes of at most {self.most_bytes:,}>"

    @property
    def nbytes(self) -> int:
        """The approximate memory of all lanes and boards, in bytes."""
        return self._used * self._slot_bytes + sum(board.nbytes for board in self._boards)

    def bytes_of(self, state: Activation) -> int:
        """Return the memory of a state, in bytes."""
        return state.room * self._slot_bytes

    def board(self, variant: Variant) -> Board:
        """Return the board for a new mind."""
        board = self._newest.get(variant)
        if board is None or board.full:
            board = self._newest[variant] = Board(self.spec, variant)
            self._boards.add(board)
        return board

    def settle(self, states: Sequence[Activation]) -> None:
        """Fire all words that the states have not fired yet, and score the candidates.

        A state that cannot be settled gets a `fault`. If several fail together, for example because
        the device lacks memory, each half is settled separately, so that a state gets a fault only
        if it fails alone.
        """
        if not states:
            return
        try:
            self._settle(states)
        except Exception as error:  # noqa: BLE001  (the owners of the faulty states raise it)
            for state in states:
                state.leave()  # a part of its numbers may have changed
            if len(states) == 1:
                states[0].fault = _translated(error)
                return
            half = len(states) // 2
            self.settle(states[:half])
            self.settle(states[half:])

    def take_back(self, state: Activation) -> None:
        """Take back the lane of a state; it is cleared before it is used again."""
        sent = [one for one in state.touching if one.sent]
        self._left.append((state.start, state.room, sent))

    def _settle(self, states: Sequence[Activation]) -> None:
        self._sweep()
        moves: list[tuple[Activation, int, int]] = []  # state, from slot, to slot
        ready = [state for state in states if self._has_room(state, moves)]
        if self._end > len(self._lanes):
            self._lanes.grow(self._end)
        if moves:
            touching = [list(state.touching) for state, _, _ in moves]
            self._lanes.copy(touching, [one[1] for one in moves], [one[2] for one in moves])
        for kind, group in _by_kind(ready):
            self._run(kind, group)

    def _run(self, kind: Kind, states: list[Activation]) -> None:
        """Fire the words of states round by round, and score all after the last round."""
        lag = max(len(state.heard.wirings) - state.fired for state in states)
        for left in range(lag, 1, -1):
            due = [s for s in states if len(s.heard.wirings) - s.fired >= left]
            self._lanes.run(kind, [_next(state) for state in due], [])
        due = [state for state in states if len(state.heard.wirings) > state.fired]
        firings = [_next(state) for state in due]
        scorings = [Scoring(s.heard.wirings[-1], s.start, s.now, s.column, s.ahead) for s in states]
        for state, scores in zip(states, self._lanes.run(kind, firings, scorings), strict=True):
            state.scores = scores

    # The lanes.

    def _has_room(self, state: Activation, moves: list[tuple[Activation, int, int]]) -> bool:
        """Give a state a large enough lane, adding copies to `moves`; return whether it has one."""
        state.heard.wire()
        try:
            if state.origin is not None:
                self._begin(state, *state.origin, moves)
            need = max([wiring.end for wiring in state.heard.wirings[state.fired :]], default=0)
            if need > state.room:
                self._move(state, need, moves)
        except NoMemory as error:
            state.fault = error
        return state.fault is None

    def _begin(
        self,
        state: Activation,
        origin: Activation,
        fired: int,
        moves: list[tuple[Activation, int, int]],
    ) -> None:
        """Copy a state from its origin, unless the origin has changed since."""
        state.origin = None
        if origin.fired == fired and origin.room:
            state.start = self._take(origin.room)
            state.room, state.fired, state.column = origin.room, fired, origin.column
            state.touching = dict(origin.touching)
            moves.append((state, origin.start, state.start))

    def _move(self, state: Activation, need: int, moves: list[tuple[Activation, int, int]]) -> None:
        room = max(_LEAST_ROOM, 1 << (need - 1).bit_length())
        start = self._take(room)
        if state.room:
            self.take_back(state)
            at = next((n for n, one in enumerate(moves) if one[2] == state.start), None)
            source = state.start if at is None else moves.pop(at)[1]
            moves.append((state, source, start))
        state.start, state.room = start, room

    def _take(self, room: int) -> int:
        """Allocate a cleared lane, and return its first slot."""
        if self.nbytes + room * self._slot_bytes > self.most_bytes:
            raise NoMemory(
                f"no memory is left for this prompt: the {self.most_bytes:,} bytes for all prompts"
                " are in use; ask another peer, or retry"
            )
        self._used += room
        if self._free.get(room):
            return self._free[room].pop()
        self._end += room
        return self._end - room

    def _sweep(self) -> None:
        """Clear the lanes that were given back."""
        if not self._left:
            return
        left = []
        while self._left:
            left.append(self._left.popleft())
        self._clear(left)
        if not self._used:
            self._free.clear()
            self._end = 1

    def _clear(self, left: list[tuple[int, int, list[Wiring]]]) -> None:
        """Clear lanes; if that fails for several together, each half is cleared separately.

        A lane that cannot be cleared even alone waits for the next sweep.
        """
        fired = [(wirings, start) for start, _, wirings in left if wirings]
        try:
            if fired:
                self._lanes.clear([wirings for wirings, _ in fired], [start for _, start in fired])
        except BaseException as error:
            if len(left) == 1 or not isinstance(error, Exception):
                self._left.extend(left)
                raise
            half = len(left) // 2
            try:
                self._clear(left[:half])
            finally:
                self._clear(left[half:])
            return
        for start, room, _ in left:
            self._free.setdefault(room, []).append(start)
            self._used -= room


def _next(state: Activation) -> Firing:
    """Return the next word that a state has to fire, and count it as fired."""
    wirings, at = state.heard.wirings, state.fired
    wiring = wirings[at]
    if at:
        state.column += wirings[at - 1].row.neuron.concept != wiring.row.neuron.concept
    state.fired += 1
    state.touching[wiring] = None
    now, exact, emits = FIRST + at, state.timing is Timing.EXACT, state.timing is Timing.SEQ
    return Firing(wiring, state.start, now - 1 if exact else int(emits), now, state.column, emits)


def _by_kind(states: Sequence[Activation]) -> list[tuple[Kind, list[Activation]]]:
    """Group states by kind: each group can be settled in one run."""
    groups: dict[Kind, list[Activation]] = {}
    for state in states:
        groups.setdefault(state.kind, []).append(state)
    return list(groups.items())


def _translated(error: Exception) -> Exception:
    if not isinstance(error, torch.OutOfMemoryError):
        return error
    return NoMemory("the device has no memory left for this prompt; ask another peer, or retry")
