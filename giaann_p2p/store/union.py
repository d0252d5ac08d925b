"""What a shard holds here, and what it holds elsewhere: in one, each chunk once.

Where all of one's chunks are among the other's, that is the other; where they have none in common,
it is the sum. For the rest it is theirs and the deltas of what they lack, if these are kept here.
"""

from collections.abc import Callable

from giaann_p2p.errors import StoreError, UsageError
from giaann_p2p.model.delta import Delta, contains, total
from giaann_p2p.model.difference import less
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.store.content import Content

Recall = Callable[[int, bytes, int], Delta]
"""Reads back what a shard got from a chunk of a job."""


def united(
    ours: Content, theirs: Content, kept: Callable[[int], Applied], recall: Recall
) -> Content:
    """Return it for one shard; `kept` are the chunks whose deltas `recall` reads back.

    UsageError if it cannot be told; StoreError if the same chunks came to something else there.
    """
    if not ours.applied:
        return theirs
    if ours.applied[0] == theirs.applied[0] and ours.digest != theirs.digest:
        raise StoreError(
            f"shard {theirs.shards[0]} here and elsewhere comes from the same chunks, "
            "but is not the same: one of them is wrong"
        )
    if ours.applied[0] <= theirs.applied[0]:
        return _with_all_of(ours, theirs)
    if theirs.applied[0] <= ours.applied[0]:
        return ours
    applied = ours.applied[0] | theirs.applied[0]
    if not ours.applied[0].meets(theirs.applied[0]):
        delta = total([ours.delta, theirs.delta])
    else:
        delta = _with_ours(ours.applied[0], theirs, kept, recall)
    return _with_all_of(ours, Content(theirs.shards, [applied], delta))


def _with_ours(
    ours: Applied, theirs: Content, kept: Callable[[int], Applied], recall: Recall
) -> Delta:
    """Return what a shard holds elsewhere, with our chunks added, and withdrawn, one by one."""
    shard, ahead = int(theirs.shards[0]), beyond(ours, theirs.applied[0])
    if not ahead <= kept(shard):
        raise UsageError(
            f"shard {shard} here and what it is to take in have some chunks in "
            "common, and each has others"
        )
    chunks = [(job, chunk) for job in ahead for chunk in ahead.of(job)]
    added = [recall(shard, *one) for one in chunks if one[1] < WITHDRAWN]
    delta = total([*added, theirs.delta])
    for job, chunk in chunks:
        if chunk >= WITHDRAWN:
            delta = withdrawn(delta, recall(shard, job, chunk), chunk)
    return delta


def withdrawn(held: Delta, part: Delta, chunk: int) -> Delta:
    """Return what is left without what a chunk brought; StoreError if that is not all here."""
    left = less(held, part)
    if left is None:
        raise StoreError(
            f"chunk {chunk - WITHDRAWN} cannot be withdrawn: what is here does not have all of it"
        )
    return left


def _with_all_of(ours: Content, united: Content) -> Content:
    """Return what is to take the place of what a shard holds; StoreError if that would lose some.

    What was learned only grows: whoever sends less than is here, of more chunks, sends wrong; but
    where chunks are withdrawn there that are not so here, less is what it should be.
    """
    there, here = united.applied[0], ours.applied[0]
    if (there.withdrawn - here.withdrawn).meets(here):
        return united
    if not contains(united.delta, ours.delta):
        raise StoreError(
            f"shard {united.shards[0]} elsewhere is said to come from chunks that are here, too, "
            "but lacks some of what is here: it is wrong"
        )
    return united


def beyond(ours: Applied, theirs: Applied) -> Applied:
    """Return which of our chunks are to be added one by one: those that they lack, where some are
    in common and each has others; none where one's sum is part of the other, or apart from it.

    Nor what was withdrawn here and never was there.
    """
    if not ours.meets(theirs) or ours <= theirs or theirs <= ours:
        return Applied()
    ahead = ours - theirs
    nothing = ahead.withdrawn & ahead
    return ahead - nothing - nothing.withdrawals if nothing else ahead
