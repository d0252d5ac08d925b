// The peers: what each does, how full and how busy it is, and whether it answers.
import { html } from "../shared/libraries.js";
import { bytes, count, many, rate, span } from "../shared/format.js";
import { Meter } from "../shared/meter.js";

const SHOWN = 100; // rows: a thousand peers are to be counted, not read

export function PeersTable({ peers, full, now, marked, onMark }) {
  const sorted = [...peers].sort(inOrder);
  const versions = peers.some((one) => one.version);
  return html`<section class="card peers" aria-labelledby="peers-title">
    <header>
      <h2 id="peers-title">Peers</h2>
      <p class="muted">${summary(peers)}</p>
    </header>
    <table>
      <thead>
        <tr>
          <th scope="col">Peer</th>
          <th scope="col" class="wide">Role</th>
          <th scope="col">State</th>
          <th scope="col" class="wide">Shards ready</th>
          <th scope="col">Room</th>
          <th scope="col">Load</th>
          ${versions && html`<th scope="col" class="wide">Version</th>`}
          <th scope="col" class="wide number">Runs for</th>
        </tr>
      </thead>
      <tbody>
        ${sorted.slice(0, SHOWN).map(
          (one) => html`<${Row}
            key=${`${one.name} ${one.role}`}
            peer=${one}
            full=${full.has(one.name)}
            now=${now}
            versions=${versions}
            marked=${marked === one.name}
            onMark=${onMark}
          />`,
        )}
      </tbody>
    </table>
    ${peers.length > SHOWN && html`<p class="muted">and ${count(peers.length - SHOWN)} more</p>`}
    ${!peers.length && html`<p class="muted">No peer has been heard of yet.</p>`}
  </section>`;
}

function Row({ peer, full, now, versions, marked, onMark }) {
  const mark = peer.role === "storage" ? peer.name : null;
  const state = stateOf(peer, full);
  const there = span(now - peer.since);
  return html`<tr
    class="${state.tone} ${marked ? "marked" : ""}"
    data-peer=${peer.name}
    data-state=${state.word}
    onMouseEnter=${() => onMark(mark)}
    onMouseLeave=${() => onMark(null)}
  >
    <th scope="row">
      <code>${peer.name}</code>
      <span class="narrow muted">${peer.role}</span>
      <span class="narrow muted">${there}</span>
    </th>
    <td class="wide">${peer.role}</td>
    <td>
      <span class="state ${state.tone}"><span aria-hidden="true">${state.glyph}</span> ${state.word}</span>
    </td>
    <td class="wide">${shards(peer)}</td>
    <td>${room(peer)}</td>
    <td>${load(peer)}</td>
    ${versions && html`<td class="wide">${peer.version ?? ""}</td>`}
    <td class="wide number">${there}</td>
  </tr>`;
}

/** Silent peers first, because users look for them; then by role and name. */
function inOrder(one, other) {
  return (
    other.silent - one.silent ||
    other.role.localeCompare(one.role) ||
    one.name.localeCompare(other.name)
  );
}

function summary(peers) {
  const of = (role) => peers.filter((one) => one.role === role && !one.silent).length;
  const silent = peers.filter((one) => one.silent).length;
  const said = [`${count(of("storage"))} storage`, `${count(of("compute"))} compute`];
  return [...said, ...(silent ? [`${count(silent)} silent`] : [])].join(" · ");
}

function stateOf({ silent, state, syncing }, full) {
  if (silent) return { word: "silent", tone: "bad", glyph: "✕" };
  if (full) return { word: "full", tone: "bad", glyph: "■" };
  if (state !== "active") return { word: state, tone: "fair", glyph: "◐" };
  if (syncing) return { word: "copying", tone: "fair", glyph: "◑" };
  return { word: "active", tone: "good", glyph: "●" };
}

function shards({ role, ready, owns, syncing }) {
  if (role !== "storage") return html`<span class="muted">–</span>`;
  const label = `${count(ready)} of ${count(owns)}`;
  return html`<span class="measured">
    <${Meter} share=${owns ? ready / owns : 0} label=${`Shards ready: ${label}`} />
    <span>${label}${syncing ? ` (+${count(syncing)})` : ""}</span>
  </span>`;
}

function room({ role, used, capacity, slots, device }) {
  if (role !== "storage") {
    return html`${many(slots, "slot")}${device && html` <span class="muted">${device}</span>`}`;
  }
  const share = capacity ? used / capacity : 0;
  return html`<span class="measured">
    <${Meter}
      share=${share}
      tone=${share > 0.85 ? "bad" : ""}
      label=${`Used: ${bytes(used)} of ${bytes(capacity)}`}
    />
    <span>${bytes(used)} <span class="muted">of ${bytes(capacity)}</span></span>
  </span>`;
}

function load({ role, silent, load: { queue, reads, writes, growth } }) {
  if (silent) return html`<span class="muted">–</span>`;
  const said = role === "storage" ? storing(reads, writes) : computing(queue, writes, growth);
  const busy = said.filter(Boolean);
  return busy.length ? busy.join(", ") : html`<span class="muted">idle</span>`;
}

const storing = (reads, writes) => [
  reads && `${rate(reads)} reads/s`,
  writes && `${rate(writes)} writes/s`,
];

/** A compute peer announces the speed that it reaches at work, whether or not it works now. */
function computing(queue, writes, growth) {
  const speeds = [writes && `${rate(writes)} sentences/s`, growth && `${rate(growth)} tokens/s`];
  const fast = speeds.filter(Boolean).join(", ");
  return [queue && `${count(queue)} waiting`, fast && `${fast} at work`];
}
