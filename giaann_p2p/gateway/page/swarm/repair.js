// How far copying is: replicas that are ready, of those that there should be.
import { html } from "../shared/libraries.js";
import { count } from "../shared/format.js";
import { Meter } from "../shared/meter.js";
import { totalsOf } from "./shard_map.js";

export function Repair({ shards, replicas, peers }) {
  const wanted = shards.length * replicas;
  const { ready, syncing, cold } = totalsOf(shards, replicas);
  const there = Math.min(ready, wanted);
  const copying = peers.filter((one) => one.syncing && !one.silent);
  return html`<section class="card repair" aria-labelledby="repair-title">
    <header>
      <h2 id="repair-title">Repair</h2>
      <p class="muted">${state(there, wanted, syncing)}</p>
    </header>
    <${Meter}
      share=${wanted ? there / wanted : 0}
      label="Replicas ready"
      tone=${there < wanted ? "fair" : "good"}
    />
    <p>
      <strong>${count(there)}</strong> of ${count(wanted)} replicas ready${syncing
        ? `, ${count(syncing)} being copied`
        : ""}${cold ? `, ${count(cold)} on disk, about to be loaded` : ""}
    </p>
    ${copying.length > 0 &&
    html`<ul class="copying">
      ${copying.map(
        (one) => html`<li key=${one.name}>
          <code>${one.name}</code>
          <${Meter}
            share=${one.ready / (one.ready + one.syncing)}
            label=${`Copied by ${one.name}`}
            tone="fair"
          />
          <span>${count(one.syncing)} to go</span>
        </li>`,
      )}
    </ul>`}
  </section>`;
}

function state(there, wanted, syncing) {
  if (syncing) return "copying";
  return there < wanted ? "waits for peers with room" : "nothing to do";
}
