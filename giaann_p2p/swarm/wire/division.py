"""Refusals of questions that name shards while these are being divided."""

from giaann_p2p.swarm.wire.messages import BUSY, Refusal

DIVIDING = Refusal(f"{BUSY}: this peer is dividing its shards; ask again in a moment")
COUNTS_OTHERWISE = Refusal(f"{BUSY}: this peer counts another number of shards; ask again")
"""What a question comes to if the other peer sends its edition of the swarm's rules instead of an
answer (see `node.calls`)."""
