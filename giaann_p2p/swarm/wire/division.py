"""Refusals of questions that name shards while these are being divided."""

from giaann_p2p.swarm.wire.messages import BUSY, Refusal

DIVIDING = Refusal(f"{BUSY}: this peer is dividing its shards; ask again in a moment")
COUNTS_OTHERWISE = Refusal(f"{BUSY}: this peer counts another number of shards; ask again")
"""The outcome that a caller gets if the other peer answers its question with another edition of the
swarm's rules (see `node.calls`)."""
