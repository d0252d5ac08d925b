"""Merges the content of a shard here with its content elsewhere, counting each chunk once.

If one set of chunks includes the other, the result is the larger content. If the sets are disjoint,
it is the sum. Otherwise it is the content from elsewhere plus the deltas that it lacks, if these
deltas are kept here.
"""

from collections.abc import Callable

from giaann_p2p.errors import StoreError, UsageError
from giaann_p2p.model.delta import Delta, contains, total
from giaann_p2p.model.difference import less
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.store.content import Content

Recall = Callable[[int, bytes, int], Delta]
"""Returns the kept delta that a shard got from a chunk; takes shard, job and chunk."""


def united(
    ours: Content, theirs: Content, kept: Callable[[int], Applied], recall: Recall
) -> Content:
    """Return the union of one shard's content here and elsewhere.

    `kept` returns the chunks of a shard whose deltas `recall` can return. UsageError if a needed
    delta is not kept; StoreError if the same chunks have another sum elsewhere.
    """
    if not ours.applied:
        return theirs
    if ours.applied[0] == theirs.applied[0] and ours.digest != theirs.digest:
        raise StoreError(
            f"shard {theirs.shards[0]} differs here and elsewhere, although both have applied the "
            "same chunks: one of them is wrong"
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
    """Return the content from elsewhere, changed by each chunk or withdrawal that only we have."""
    shard, ahead = int(theirs.shards[0]), beyond(ours, theirs.applied[0])
    if not ahead <= kept(shard):
        raise UsageError(
            f"shard {shard} cannot be merged: here and elsewhere it has some chunks in "
            "common, each has others, and the deltas of these are not kept here"
        )
    chunks = [(job, chunk) for job in ahead for chunk in ahead.of(job)]
    added = [recall(shard, *one) for one in chunks if one[1] < WITHDRAWN]
    delta = total([*added, theirs.delta])
    for job, chunk in chunks:
        if chunk >= WITHDRAWN:
            delta = withdrawn(delta, recall(shard, job, chunk), chunk)
    return delta


def withdrawn(held: Delta, part: Delta, chunk: int) -> Delta:
    """Subtract a chunk's delta from content; StoreError if the content lacks a part of it."""
    left = less(held, part)
    if left is None:
        raise StoreError(
            f"chunk {chunk - WITHDRAWN} cannot be withdrawn: the content lacks a part of its delta"
        )
    return left


def _with_all_of(ours: Content, united: Content) -> Content:
    """Return `united`, which replaces our content; StoreError if it lacks a part of ours.

    Content only grows, so a peer that sends less content for more chunks is wrong. There is one
    exception: a peer that has withdrawn chunks which are not withdrawn here may send less.
    """
    there, here = united.applied[0], ours.applied[0]
    if (there.withdrawn - here.withdrawn).meets(here):
        return united
    if not contains(united.delta, ours.delta):
        raise StoreError(
            f"shard {united.shards[0]} is wrong elsewhere: it is said to have all chunks that are "
            "here, but lacks some of their rows"
        )
    return united


def beyond(ours: Applied, theirs: Applied) -> Applied:
    """Return our chunks that the other set lacks and whose deltas must be added to it one by one.

    The result is empty if one set includes the other, or if the sets are disjoint. A chunk that was
    withdrawn here and is not in the other set is left out, together with its withdrawal.
    """
    if not ours.meets(theirs) or ours <= theirs or theirs <= ours:
        return Applied()
    ahead = ours - theirs
    nothing = ahead.withdrawn & ahead
    return ahead - nothing - nothing.withdrawals if nothing else ahead
