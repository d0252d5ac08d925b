"""Mistakes that somebody might make, to be planted: the simulator must find each of them."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from msgspec import structs

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import GiaannError
from giaann_p2p.model.delta import total
from giaann_p2p.node.members import founder_news, gate
from giaann_p2p.node.replication import storage as node_storage
from giaann_p2p.node.replication.store_writer import StoreWriter
from giaann_p2p.store import cold, ledger, state, store
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.content import Content
from giaann_p2p.store.disk.sync import NEVER
from giaann_p2p.swarm.members import directory, peers_view, silent_backoff, standing
from giaann_p2p.swarm.replication import (
    answers,
    cold_copies,
    handover_proof,
    pushes,
    release,
    shard_drop,
    shared,
    storage,
)
from giaann_p2p.swarm.training import writer
from giaann_p2p.swarm.training.pushed_chunk import PushedChunk
from giaann_p2p.swarm.wire import edition
from giaann_p2p.swarm.wire.actions import Apply, Reply
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Carried, Pushed
from giaann_p2p.swarm.wire.pulse import ID_BYTES, bare
from giaann_p2p.swarm.wire.row_mark import MARK_BYTES
from giaann_p2p.swarm.wire.row_messages import Read
from giaann_p2p.swarm.wire.shardset import packed

Patch = Callable[[pytest.MonkeyPatch], None]


class Bug(NamedTuple):
    """A mistake."""

    name: str
    plant: Patch
    seed: int = 0
    """A history that showed it, played first; as the code changes, it may take another one."""

    def seeds(self, most: int) -> list[int]:
        """Return the histories to play until one shows the mistake."""
        return [self.seed, *(seed for seed in range(most) if seed != self.seed)]


def _ack_before_sync(patch: pytest.MonkeyPatch) -> None:
    opened = store.Store.open.__func__  # type: ignore[attr-defined]

    def unsafe(cls: Any, *arguments: Any, **named: Any) -> Any:
        return opened(cls, *arguments, **{**named, "sync": NEVER})

    patch.setattr(store.Store, "open", classmethod(unsafe))


def _drop_too_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shard_drop.ShardDrop, "_is_held_by_all", lambda self, *told: True)


def _forget_an_applied_chunk(patch: pytest.MonkeyPatch) -> None:
    add = ledger.Ledger.add

    def forgetful(self: Any, job: bytes, chunk: int, shards: Any) -> None:
        add(self, job, chunk, shards[shards % 7 != 3])

    patch.setattr(ledger.Ledger, "add", forgetful)


def _snapshot_without_applied_sets(patch: pytest.MonkeyPatch) -> None:
    record = store.content_record
    patch.setattr(
        store,
        "content_record",
        lambda held: record(replace(held, applied=[Applied()] * len(held.applied))),
    )


def _accept_an_unsigned_record(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(directory, "prove", lambda data, announcement: None)


def _release_too_early(patch: pytest.MonkeyPatch) -> None:
    def due(self: Any, now: float) -> list[Any]:
        held = self._held.sets(self._replicas.held.tolist())
        parts = [(np.array([shard], np.uint16), mine) for shard, mine in held.items()]
        return [release.Release(parts)]

    patch.setattr(release.DeltaRelease, "due", due)


def _count_an_answer_twice(patch: pytest.MonkeyPatch) -> None:
    def acked(self: Any, peer: Any, shards: Any, keeps: bool) -> None:
        self.kept[shards] |= keeps
        self.acks[shards] += 1
        self.short = int(np.count_nonzero(self.acks < self._quorum))

    patch.setattr(PushedChunk, "acked", acked)


def _add_what_is_there_already(patch: pytest.MonkeyPatch) -> None:
    def united(self: Any, theirs: Any, recall: Any) -> Any:
        ours = self.content(self.capture(theirs.shards.tolist()))
        if not ours.applied:
            return theirs
        applied = ours.applied[0] | theirs.applied[0]
        return Content(theirs.shards, [applied], total([ours.delta, theirs.delta]))

    patch.setattr(state.StoreState, "_united", united)


def _acknowledge_what_is_not_held(patch: pytest.MonkeyPatch) -> None:
    def pushed(self: Any, shards: Any) -> Pushed:
        return Pushed(packed(np.arange(self._shards, dtype=np.uint16), self._shards))

    patch.setattr(pushes.Pushes, "_pushed", pushed)


def _acknowledge_what_was_not_fetched(patch: pytest.MonkeyPatch) -> None:
    fetched = pushes.Pushes._fetched

    def careless(self: Any, ticket: int, sender: Any, lack: Any, *rest: Any) -> list[Any]:
        acts = fetched(self, ticket, sender, lack, *rest)
        shards = np.array(lack.shards, np.uint16)
        return [
            Reply(ticket, self._pushed(shards)) if isinstance(act, Reply) else act for act in acts
        ]

    patch.setattr(pushes.Pushes, "_fetched", careless)


def _count_who_was_only_told(patch: pytest.MonkeyPatch) -> None:
    push_from = writer.Writer._push_from

    def hasty(self: Any, chunk: Any, peer: Any, shards: Any, seed: Any) -> Any:
        chunk.acked(peer, shards)
        return push_from(self, chunk, peer, shards, seed)

    patch.setattr(writer.Writer, "_push_from", hasty)


def _count_who_only_carries(patch: pytest.MonkeyPatch) -> None:
    on_carried = writer.Writer._on_carried

    def hasty(self: Any, chunk: Any, peer: Any, sending: Any, answer: Any, now: float) -> Any:
        if isinstance(answer, Carried) and peer in chunk.lacking:
            chunk.acked(peer, chunk.lacking[peer])
        return on_carried(self, chunk, peer, sending, answer, now)

    patch.setattr(writer.Writer, "_on_carried", hasty)


def _forget_the_disk_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    make = storage.StoragePeer

    def forgetful(*arguments: Any) -> storage.StoragePeer:
        *front, _, spec, now, secret = arguments
        return make(*front, np.empty(0, np.uint16), spec, now, secret)

    patch.setattr(node_storage, "StoragePeer", forgetful)


def _send_deltas_twice_as_strong(patch: pytest.MonkeyPatch) -> None:
    def doubled(update: Any, asked: Any, layout: Any) -> Any:
        whole = total([update.delta, update.delta])
        return update._replace(shards=asked, delta=whole, parcel=b"")

    patch.setattr(store, "cut", doubled)


def _never_push_again(patch: pytest.MonkeyPatch) -> None:
    def failed(self: Any, peer: Any, now: float, again: float = 0.0) -> None:
        self.next[peer] = now + 1e9

    patch.setattr(PushedChunk, "failed", failed)


def _never_forgive(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(silent_backoff, "_BACKOFF", Backoff(first=1e9))
    patch.setattr(directory.Directory, "_dispel", lambda self, old, new: None)


def _never_notice_a_death(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(directory.Directory, "_advance", lambda self, now: None)


def _let_go_on_hearsay(patch: pytest.MonkeyPatch) -> None:
    def all_others(self: Any, shard: int, mine: Applied, now: float) -> set[Peer]:
        return {*self._replicas.owners(shard), *self._others.members(now)}

    patch.setattr(handover_proof.HandoverProof, "shown", all_others)


COURIER_BUGS = [
    Bug("acknowledge what was not fetched", _acknowledge_what_was_not_fetched),
    Bug("count who was only told", _count_who_was_only_told),
    Bug("count who only carries", _count_who_only_carries),
]
HEARSAY = Bug("let go on hearsay", _let_go_on_hearsay)
"""It takes liars to find this one."""


def _confirm_whatever_is_known(patch: pytest.MonkeyPatch) -> None:
    def all_the_same(self: Any, question: Read, neurons: list[Any]) -> list[int]:
        return list(range(len(question.marks) // MARK_BYTES))

    patch.setattr(answers.Answers, "_same", all_the_same)


BUGS = [
    Bug("ack before sync", _ack_before_sync),
    Bug("drop too early", _drop_too_early, seed=8),
    Bug("forget an applied chunk", _forget_an_applied_chunk),
    Bug("snapshot without applied sets", _snapshot_without_applied_sets),
    Bug("accept an unsigned record", _accept_an_unsigned_record),
    Bug("confirm whatever is known", _confirm_whatever_is_known),
    Bug("release too early", _release_too_early),
    Bug("count an answer twice", _count_an_answer_twice),
    Bug("add what is there already", _add_what_is_there_already),
    Bug("acknowledge what is not held", _acknowledge_what_is_not_held),
    Bug("forget the disk at a restart", _forget_the_disk_at_a_restart, seed=2),
    Bug("send deltas twice as strong", _send_deltas_twice_as_strong),
    Bug("never push again", _never_push_again, seed=8),
    Bug("never forgive", _never_forgive),
    Bug("never notice a death", _never_notice_a_death),
]


def _forget_cold_copies_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cold.ColdRoom, "_found", lambda self: {})


def _never_offer_a_cold_copy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cold_copies.ColdCopies, "due", lambda self, leaving, now: [])


def _believe_what_newcomers_claim(patch: pytest.MonkeyPatch) -> None:
    """Standing comes from the record itself: whoever announces much room has it."""
    learn = peers_view.PeersView.learn

    def credulous(self: Any, record: bytes, now: float, restarted: Any) -> Any:
        said = learn(self, record, now, restarted)
        if said is not None and said.role == "storage":
            self.standing._seen[said.peer] = float(said.capacity)
        return said

    patch.setattr(peers_view.PeersView, "learn", credulous)


def _take_memory_for_a_disk(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(peers_view.PeersView, "keeps", lambda self, peer: self.stands(peer))


def _commit_with_newcomers_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PushedChunk, "waits_for_keepers", lambda self, *_: False)


def _take_all_for_equal_in_the_first_minutes(patch: pytest.MonkeyPatch) -> None:
    has = standing.Standing.has
    patch.setattr(standing.Standing, "has", lambda self, peer: self.is_young or has(self, peer))


NEWCOMER_BUGS = [
    Bug("forget cold copies at a restart", _forget_cold_copies_at_a_restart),
    Bug("never offer a cold copy", _never_offer_a_cold_copy),
    Bug("believe what newcomers claim", _believe_what_newcomers_claim),
    Bug("take memory for a disk", _take_memory_for_a_disk),
    Bug("commit with newcomers alone", _commit_with_newcomers_alone),
    Bug("take all for equal in the first minutes", _take_all_for_equal_in_the_first_minutes),
]
"""It takes newcomers that vanish to find these."""


def _take_any_link(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(directory, "prove_pulse", lambda pulse, known, announcement: None)


def _let_an_old_pulse_prolong_a_record(patch: pytest.MonkeyPatch) -> None:
    merge = directory.Directory.merge

    def credulous(self: Any, data: bytes, now: float) -> Any:
        row = self._ids.row(bare(data)[:ID_BYTES])
        if row is not None:
            old = self._entries[row]
            self._renew(row, old, structs.replace(old, arrived=now))
        return merge(self, data, now)

    patch.setattr(directory.Directory, "merge", credulous)


PULSE_BUGS = [
    Bug("take any link", _take_any_link),
    Bug("let an old pulse prolong a record", _let_an_old_pulse_prolong_a_record),
]
"""It takes a forger to find these."""


def _acknowledge_before_the_write(patch: pytest.MonkeyPatch) -> None:
    do, over = StoreWriter.do, StoreWriter._over

    def early(self: Any, deed: Any, wanted: Any = None) -> None:
        do(self, deed, wanted)
        if isinstance(deed, Apply):
            asyncio.get_running_loop().call_soon(self._told, deed.number, None)

    def over_but_not_told(self: Any, deed: Any, error: Any) -> None:
        if isinstance(deed, Apply):
            self._count(deed, -1)
        else:
            over(self, deed, error)

    patch.setattr(StoreWriter, "do", early)
    patch.setattr(StoreWriter, "_over", over_but_not_told)


def _take_a_refused_write_for_a_success(patch: pytest.MonkeyPatch) -> None:
    def tried(self: Any, change: Callable[[], object]) -> None:
        with suppress(GiaannError):
            change()

    patch.setattr(StoreWriter, "_tried", tried)


WRITER_BUGS = [
    Bug("acknowledge before the write", _acknowledge_before_the_write),
    Bug("take a refused write for a success", _take_a_refused_write_for_a_success),
]
"""It takes disks that refuse writes to find these."""


def _take_an_earlier_edition_for_news(patch: pytest.MonkeyPatch) -> None:
    def is_news(self: Any, data: bytes) -> bool:
        return edition.Edition.read(data, self._manifest).number != self.number

    patch.setattr(edition.Editions, "is_news", is_news)


def _forget_the_edition_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gate.Gate, "recall_edition", lambda self, edition: None)


def _never_ask_for_a_newer_edition(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(founder_news.EditionNews, "announced", lambda self, said: 0)


def _go_by_the_rules_of_the_start(patch: pytest.MonkeyPatch) -> None:
    made = shared.Shared.__init__

    def init(self: Any, settings: Any, replicas: Any, others: Any, *more: Any) -> None:
        rules = others.rules
        patch.setattr(others, "_rules", lambda: rules)
        made(self, settings, replicas, others, *more)

    patch.setattr(shared.Shared, "__init__", init)


def _let_one_owner_be_enough_after_an_edition(patch: pytest.MonkeyPatch) -> None:
    right = edition.rules_of

    def rules_of(manifest: Any, newest: Any) -> Any:
        found = right(manifest, newest)
        return found._replace(quorum=1) if newest else found

    patch.setattr(edition, "rules_of", rules_of)


EDITION_BUGS = [
    Bug("take an earlier edition for news", _take_an_earlier_edition_for_news),
    Bug("forget the edition at a restart", _forget_the_edition_at_a_restart),
    Bug("never ask for a newer edition", _never_ask_for_a_newer_edition, seed=1),
    Bug("go by the rules of the start", _go_by_the_rules_of_the_start),
    Bug("let one owner be enough after an edition", _let_one_owner_be_enough_after_an_edition),
]
"""It takes a founder that raises the number of replicas to find these."""
