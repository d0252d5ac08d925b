"""Mistakes with parts of cut columns, and a liar that adds to parts what belongs to others."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.rows import Answer, Neuron, Question, Row
from giaann_p2p.node.training.learner import Made, Task
from giaann_p2p.sim.compute import LookUp
from giaann_p2p.sim.hostile.liar import Liar
from giaann_p2p.sim.lessons import Lessons
from giaann_p2p.sim.storage import rows_of
from giaann_p2p.store import cut_columns, row_parts
from giaann_p2p.store.codec import plain
from giaann_p2p.store.cut_columns import CutColumns
from giaann_p2p.store.cuts import MARK
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory.shard import Shard
from giaann_p2p.swarm.reading import reader
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.row_messages import Read, Rows
from tests.sim.bugs import Bug

PARTS = 4
_MADE_UP = np.uint64(0xBAD)


def _forget_rows_that_count_nothing(patch: pytest.MonkeyPatch) -> None:
    """A holder takes a part's rows for rows that were withdrawn."""
    right: Callable[..., Any] = plain.encode
    patch.setattr(plain, "encode", lambda rows: right([row for row in rows if row.count]))


def _learn_with(patch: pytest.MonkeyPatch, wrong: Callable[[Any, Task], tuple[Any, Task]]) -> None:
    """Let the compute peer that learns first do it wrong, from then on."""
    right, odd = LookUp.learn, list[LookUp]()

    async def learn(self: LookUp, task: Task) -> Made | str:
        odd[:] = odd or [self]
        return await right(*(wrong(self, task) if self is odd[0] else (self, task)))

    patch.setattr(LookUp, "learn", learn)


def _do_not_cut_at_one_peer(patch: pytest.MonkeyPatch) -> None:
    """A compute peer that knows no cuts comes to another result than the others."""

    def wrong(peer: LookUp, task: Task) -> tuple[LookUp, Task]:
        uncut = Layout(shards=task.layout.shards, blocks=task.layout.blocks)
        return peer, task._replace(layout=uncut)

    _learn_with(patch, wrong)


class _Mixed(Lessons):
    """Lessons whose connections are in the neighbours of their parts."""

    def of(self, layout: Layout) -> Lessons:
        return self if layout == self.layout else _Mixed(layout, self._profile, self.late)

    def delta(self, chunk: int) -> Delta:
        right = row_parts.part_of_target
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cut_columns, "part_of_target", lambda *some: right(*some) ^ 1)
            return self.layout.columns.cut(self._plain(chunk))


def _mix_parts_up_at_one_peer(patch: pytest.MonkeyPatch) -> None:
    def wrong(peer: LookUp, task: Task) -> tuple[LookUp, Task]:
        lessons = peer._lessons
        if not isinstance(lessons, _Mixed):
            peer._lessons = _Mixed(lessons.layout, lessons._profile, lessons.late)
        return peer, task

    _learn_with(patch, wrong)


def _copy_no_rows_that_count_nothing(patch: pytest.MonkeyPatch) -> None:
    """The content that peers save and send lacks the rows of parts."""
    patch.setattr(Shard, "occurring", property(lambda self: self.neuron[self.count > 0]))


def _never_ask_for_the_last_part(patch: pytest.MonkeyPatch) -> None:
    right = CutColumns.joined

    def asked(self: CutColumns, neurons: Iterable[Neuron]) -> list[Neuron]:
        all_parts = [self.parts(neuron) for neuron in neurons]
        return [part for parts in all_parts for part in parts[: max(1, len(parts) - 1)]]

    def joined(self: CutColumns, neurons: Iterable[Neuron], rows: Answer) -> Answer:
        some, left, filled = list(neurons), iter(rows), list[Row | None]()
        for neuron in some:
            parts = self.parts(neuron)
            filled += [next(left) for _ in parts[: max(1, len(parts) - 1)]]
            filled += [None] * (len(parts) > 1)
        return right(self, some, filled)

    patch.setattr(CutColumns, "asked", asked)
    patch.setattr(CutColumns, "joined", joined)


def _take_what_is_not_read_for_empty(patch: pytest.MonkeyPatch) -> None:
    """A question succeeds without the shards that nobody returns in time."""
    right = reader._outcome

    def outcome(reading: Any) -> reader.Answered:
        for part in reading.parts:
            if part.rows is None:
                part.rows = [None] * len(part.neurons)
        return right(reading)

    patch.setattr(reader, "_outcome", outcome)


BUGS = [
    Bug("a holder returns no rows of parts", _forget_rows_that_count_nothing),
    Bug("one compute peer does not cut", _do_not_cut_at_one_peer),
    Bug("one compute peer mixes parts up", _mix_parts_up_at_one_peer),
    Bug("copies of shards lack rows of parts", _copy_no_rows_that_count_nothing),
    Bug("the last part is never asked for", _never_ask_for_the_last_part),
    Bug("parts that nobody returns are taken for empty", _take_what_is_not_read_for_empty, seed=1),
]


class Adding(Liar):
    """Adds to each row of a cut column a target that belongs to another part."""

    def _wrong_rows(self, question: Read) -> Message | bytes:
        said = self.answers.to(Read(question.concepts, question.features))
        if not isinstance(said, Rows):
            return said
        concepts = np.frombuffer(question.concepts, "<u8").tolist()
        features = np.frombuffer(question.features, "<u8").tolist()
        asked = list(map(Neuron, concepts, features))
        known = rows_of(said.parcel, self.store.limits)
        self.world.promises.served(self, asked, known)  # what it adds to is true
        rows = [row for row in known.read(Question(asked)) if row is not None]
        return Rows(plain.encode([self._with_foreign(row) for row in rows]), said.moved)

    def _with_foreign(self, row: Row) -> Row:
        word, _, number = row.name.concept.partition(MARK)
        if word not in {cut.word for cut in self.world.lessons.layout.cuts or ()}:
            return row
        features = np.arange(1000, 1064, dtype=np.uint64)
        parts = row_parts.part_of_target(np.full(64, _MADE_UP), features, np.uint64(PARTS))
        foreign = features[parts != int(number or 0)][:1]
        one = np.ones(1, np.uint8)
        return replace(
            row,
            target_concept=np.append(row.target_concept, _MADE_UP),
            target_feature=np.append(row.target_feature, foreign),
            target=np.append(row.target, len(row.target_concept)),
            branch=np.append(row.branch, 0 * one),
            segment=np.append(row.segment, 0 * one),
            strength=np.append(row.strength, 1 << 16),
            numbers=None,
        )
