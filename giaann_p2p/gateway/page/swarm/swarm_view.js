// The state of the swarm, or of the brain, as the gateway sends it unasked.
import { html, useState } from "../shared/libraries.js";
import { useFeed } from "../shared/feed.js";
import { BrainSummary } from "./brain_summary.js";
import { Moves } from "./moves.js";
import { PeersTable } from "./peers_table.js";
import { RateChart } from "./rate_chart.js";
import { Repair } from "./repair.js";
import { ShardMap } from "./shard_map.js";
import { Verdict } from "./verdict.js";

export function SwarmView() {
  const { info, line, status, peers, rates } = useFeed();
  const [marked, onMark] = useState(null);
  const brain = info?.kind === "brain";
  const replicas = status?.replicas ?? info?.replicas; // `info` is as old as the connection
  return html`<div class="view swarm ${line === "reconnecting" ? "stale" : ""}">
    ${line === "reconnecting" &&
    html`<p class="banner" role="alert">
      Reconnecting to the gateway … the figures shown are from before.
    </p>`}
    <${Verdict} status=${status} brain=${brain} />
    ${brain
      ? html`<${BrainSummary} status=${status} />
          <div class="rates"><${Tokens} rates=${rates} /></div>`
      : peers &&
        info &&
        html`
          <div class="halves">
            <${PeersTable}
              peers=${peers.peers}
              full=${new Set((status?.full ?? []).map((peer) => peer.slice(0, 8)))}
              now=${Date.now() / 1000}
              marked=${marked}
              onMark=${onMark}
            />
            <${ShardMap} shards=${peers.shards} replicas=${replicas} marked=${marked} />
          </div>
          <div class="rates">
            <${Rate} name="reads" title="Reads a second" note="all storage peers" rates=${rates} />
            <${Rate} name="writes" title="Writes a second" note="all storage peers" rates=${rates} />
            <${Tokens} rates=${rates} />
          </div>
          <div class="copies">
            <${Repair} shards=${peers.shards} replicas=${replicas} peers=${peers.peers} />
            <${Moves} shards=${peers.shards} replicas=${replicas} peers=${peers.peers} />
          </div>
        `}
  </div>`;
}

const Rate = ({ name, title, note, rates }) =>
  html`<${RateChart} name=${name} title=${title} note=${note} times=${rates.t} values=${rates[name]} />`;

const Tokens = ({ rates }) =>
  html`<${Rate} name="tokens" title="Tokens a second" note="through this gateway" rates=${rates} />`;
