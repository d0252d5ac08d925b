// What is being copied, by peer: a replica that its shard lacks is a repair; one of a shard that has
// all its replicas is a move to a new owner, which the old ones serve until it is there.

/** Returns how many shards each peer copies as repairs and as moves, and old copies still held. */
export function copiesOf(shards, replicas) {
  const repairs = new Map();
  const moves = new Map();
  let spare = 0;
  for (const holders of shards) {
    const ready = holders.filter(([, state]) => state === "ready").length;
    const copies = ready < replicas ? repairs : moves;
    for (const [peer, state] of holders) {
      if (state === "syncing") copies.set(peer, (copies.get(peer) ?? 0) + 1);
    }
    spare += Math.max(0, ready - replicas);
  }
  return { repairs, moves, spare };
}

export const sumOf = (copies) => [...copies.values()].reduce((all, one) => all + one, 0);
