// The progress of repair: the ready replicas, of all that there should be.
import { html } from "../shared/libraries.js";
import { count } from "../shared/format.js";
import { Meter } from "../shared/meter.js";
import { copiesOf, sumOf } from "./copies.js";
import { Copying } from "./copying.js";

export function Repair({ shards, replicas, peers }) {
  const wanted = shards.length * replicas;
  const there = shards.reduce((sum, holders) => sum + Math.min(replicas, holding(holders, "ready")), 0);
  const cold = shards.reduce((sum, holders) => sum + holding(holders, "cold"), 0);
  const { repairs } = copiesOf(shards, replicas);
  const going = sumOf(repairs);
  return html`<section class="card repair" aria-labelledby="repair-title">
    <header>
      <h2 id="repair-title">Repair</h2>
      <p class="muted">${state(there, wanted, going)}</p>
    </header>
    <${Meter}
      share=${wanted ? there / wanted : 0}
      label="Replicas ready"
      tone=${there < wanted ? "fair" : "good"}
    />
    <p>
      <strong>${count(there)}</strong> of ${count(wanted)} replicas ready${going
        ? `, ${count(going)} being copied`
        : ""}${cold ? `, ${count(cold)} on disk, about to be loaded` : ""}
    </p>
    <${Copying} copies=${repairs} peers=${peers} tone="fair" />
  </section>`;
}

const holding = (holders, state) => holders.filter(([, one]) => one === state).length;

function state(there, wanted, going) {
  if (going) return "copying";
  return there < wanted ? "waits for peers with room" : "nothing to do";
}
