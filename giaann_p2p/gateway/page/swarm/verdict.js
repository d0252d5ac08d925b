// The state of the swarm: a word, a sentence, and what to do.
import { html } from "../shared/libraries.js";
import { many } from "../shared/format.js";

const SAID = {
  healthy: { word: "Healthy", tone: "good", glyph: "✓" },
  starting: { word: "Starting", tone: "fair", glyph: "…" },
  degraded: { word: "Degraded", tone: "fair", glyph: "!" },
  full: { word: "Full", tone: "bad", glyph: "!" },
  lost: { word: "Data lost", tone: "bad", glyph: "×" },
  unreachable: { word: "Unreachable", tone: "bad", glyph: "×" },
};

export function Verdict({ status, brain }) {
  if (!status) return html`<section class="verdict card waiting" aria-label="Verdict">…</section>`;
  const { word, tone, glyph } = SAID[status.verdict] ?? { word: status.verdict, glyph: "?" };
  return html`<section class="verdict card ${tone}" aria-label="Verdict">
    <span class="glyph" aria-hidden="true">${glyph}</span>
    <div role="status" aria-live="polite">
      <h2>${word}</h2>
      <p>${brain ? "A brain on this machine: everything it knows is at hand." : why(status)}</p>
      ${status.do && html`<p class="todo"><strong>What to do:</strong> ${status.do}.</p>`}
    </div>
  </section>`;
}

/** The swarm's state in a sentence or two, the gravest first. */
function why(status) {
  const said = [...reasons(status)];
  if (said.length) return `${said.join(". ")}.`;
  return status.verdict === "healthy" ? "Every shard has all the replicas it should have." : "";
}

function* reasons({ verdict, why: cause, health, shards, silent = [], gone = [], filling = [], excluded = {} }) {
  if (cause) yield capital(cause);
  if (health && verdict !== "starting") {
    if (health.lost) yield `${many(health.lost, "shard")} of ${shards} served by nobody`;
    if (health.under) yield `${many(health.under, "shard")} of ${shards} with too few replicas`;
    if (health.unsettled) yield `${many(health.unsettled, "replica")} being copied`;
  }
  if (silent.length) yield `No answer from ${names(silent)}`;
  if (gone.length) yield `Vanished, and may come back: ${names(gone)}`;
  if (filling.length) yield `Nearly full: ${names(filling.map((one) => one.peer))}`;
  const apart = Object.keys(excluded);
  if (apart.length) yield `Different from the other owners: ${names(apart)}`;
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const MOST_NAMED = 4;
const SHORT = 8; // letters of a peer's name, as commands show it

function names(peers) {
  const shown = peers.slice(0, MOST_NAMED).map((peer) => peer.slice(0, SHORT));
  const more = peers.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}
