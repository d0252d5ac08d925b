"""The number of replicas of a shard that outvotes the others."""


def majority(count: int) -> int:
    """Return the smallest number that is more than half of `count`."""
    return count // 2 + 1
