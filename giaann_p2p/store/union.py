"""Merges the content of a shard here with its content elsewhere, counting each chunk once.

If one set of chunks includes the other, the result is the larger content; if they are disjoint, it
is the sum. Otherwise it is the other content plus the deltas that it lacks, if these are kept here.
"""

from collections.abc import Callable

from giaann_p2p.errors import StoreError, UsageError
from giaann_p2p.model.delta import Delta, contains, total
from giaann_p2p.model.difference import less
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.store.content import Content

Recall = Callable[[int, bytes, int], Delta]
"""Returns the kept delta that a shard got from a chunk of a job."""


def united(
    ours: Content, theirs: Content, kept: Callable[[int], Applied], recall: Recall
) -> Content:
    """Return the union for one shard; `kept` returns the chunks whose deltas `recall` can return.

    UsageError if the deltas that are needed are not kept; StoreError if the same chunks have
    another sum elsewhere.
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
    """Return the other content with our additional chunks added, or withdrawn, one by one."""
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
    """Subtract a chunk's delta; StoreError if the content does not contain all of it."""
    left = less(held, part)
    if left is None:
        raise StoreError(
            f"chunk {chunk - WITHDRAWN} cannot be withdrawn: what is here does not have all of it"
        )
    return left


def _with_all_of(ours: Content, united: Content) -> Content:
    """Return the content that replaces ours; StoreError if it lacks some of ours.

    Content only grows, so a peer that sends less content for more chunks is wrong. The one
    exception: if it has withdrawn chunks of ours that are not withdrawn here, its content may be
    less.
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
    """Return our chunks that must be added one by one, because the other set lacks them.

    The result is empty if one set includes the other, or if they are disjoint. A chunk that was
    withdrawn here and never was in the other set is left out, together with its withdrawal.
    """
    if not ours.meets(theirs) or ours <= theirs or theirs <= ours:
        return Applied()
    ahead = ours - theirs
    nothing = ahead.withdrawn & ahead
    return ahead - nothing - nothing.withdrawals if nothing else ahead
