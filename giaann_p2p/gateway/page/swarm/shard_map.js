// Shards × replicas as a heat map: a cell for each shard, with a bar for each replica. The
// colour and the pattern of a bar show its state, so that it can be read without colours.
import { html, useState } from "../shared/libraries.js";
import { count, many } from "../shared/format.js";

const BARS = ["ready", "syncing", "cold", "missing"];
const LEGEND = {
  ready: "ready",
  syncing: "being copied",
  cold: "on disk only",
  missing: "missing",
};

export function ShardMap({ shards, replicas, marked }) {
  const [at, setAt] = useState(null);
  const bars = shards.map((holders) => barsOf(holders, replicas));
  const chosen = at !== null && at < shards.length ? at : null;
  const totals = totalsOf(shards, replicas);
  return html`<section class="card shards" aria-labelledby="shards-title">
    <header>
      <h2 id="shards-title">Shards × replicas</h2>
      <p class="muted">${many(shards.length, "shard")}, ${many(replicas, "replica")} of each wanted</p>
    </header>
    <div
      class="map ${sizeOf(shards.length)}"
      role="listbox"
      tabindex="0"
      aria-label="Shards; arrow keys walk through them"
      aria-activedescendant=${chosen === null ? undefined : `shard-${chosen}`}
      onKeyDown=${(event) => walk(event, chosen, shards.length, setAt)}
      onFocus=${() => chosen === null && shards.length && setAt(0)}
      onMouseLeave=${() => setAt(null)}
    >
      ${bars.map(
        (states, shard) => html`<div
          key=${shard}
          id=${`shard-${shard}`}
          role="option"
          class="shard ${worst(states)} ${holds(shards[shard], marked) ? "marked" : ""}"
          aria-selected=${chosen === shard}
          aria-label=${said(shard, shards[shard], replicas)}
          onMouseEnter=${() => setAt(shard)}
          onClick=${() => setAt(shard)}
        >
          ${states.map((state, index) => html`<i key=${index} class=${state}></i>`)}
        </div>`,
      )}
    </div>
    <p class="detail" aria-live="polite">
      ${chosen === null
        ? html`<span class="muted">Point at a shard, or walk with the arrow keys, to see who holds it.</span>`
        : said(chosen, shards[chosen], replicas)}
    </p>
    <ul class="legend" aria-label="Legend">
      ${BARS.map(
        (state) => html`<li key=${state}>
          <i class=${state} aria-hidden="true"></i>${LEGEND[state]} <b>${count(totals[state])}</b>
        </li>`,
      )}
    </ul>
  </section>`;
}

const sizeOf = (shards) =>
  shards <= 16 ? "large" : shards <= 80 ? "middle" : shards <= 320 ? "small" : "tiny";

const holds = (holders, peer) => peer && holders.some(([name]) => name === peer);

function barsOf(holders, replicas) {
  const states = holders.map(([, state]) => state);
  states.sort((one, other) => BARS.indexOf(one) - BARS.indexOf(other));
  while (states.length < replicas) states.push("missing");
  return states;
}

/** A shard that nobody serves is lost, at least for now; one that lacks a replica is thin. */
function worst(states) {
  if (!states.includes("ready")) return "lost";
  return states.includes("missing") ? "thin" : "whole";
}

function totalsOf(shards, replicas) {
  const totals = Object.fromEntries(BARS.map((state) => [state, 0]));
  for (const holders of shards) {
    for (const state of barsOf(holders, replicas)) totals[state] += 1;
  }
  return totals;
}

function said(shard, holders, replicas) {
  const of = (state) => holders.filter(([, one]) => one === state).map(([name]) => name);
  const ready = of("ready");
  const parts = [`Shard ${shard}: ${ready.length} of ${replicas} ready`];
  if (ready.length) parts[0] += ` (${ready.join(", ")})`;
  for (const state of ["syncing", "cold"]) {
    if (of(state).length) parts.push(`${LEGEND[state]} at ${of(state).join(", ")}`);
  }
  if (!holders.length) parts.push("nobody holds it");
  return parts.join("; ");
}

function walk(event, at, shards, setAt) {
  const down = columnsOf(event.currentTarget);
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: down, ArrowUp: -down };
  const ends = { Home: 0, End: shards - 1 };
  const to = event.key in ends ? ends[event.key] : (at ?? 0) + (steps[event.key] ?? NaN);
  if (!(to >= 0 && to < shards)) return;
  event.preventDefault();
  setAt(to);
}

/** How many cells a row has now: the browser decides by the width. */
function columnsOf(map) {
  const cells = [...map.children];
  const next = cells.findIndex((cell) => cell.offsetTop > cells[0].offsetTop);
  return next === -1 ? cells.length : next;
}
