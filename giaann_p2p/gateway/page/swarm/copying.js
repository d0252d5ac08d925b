// The peers that copy shards, each with its progress.
import { html } from "../shared/libraries.js";
import { count } from "../shared/format.js";
import { Meter } from "../shared/meter.js";

export function Copying({ copies, peers, tone = "" }) {
  const readyOf = new Map(peers.map((one) => [one.name, one.ready]));
  if (!copies.size) return null;
  return html`<ul class="copying">
    ${[...copies].map(([peer, left]) => {
      const ready = readyOf.get(peer) ?? 0;
      return html`<li key=${peer}>
        <code>${peer}</code>${" "}
        <${Meter} share=${ready / (ready + left)} label=${`Copied by ${peer}`} tone=${tone} />
        <span>${count(left)} to go</span>
      </li>`;
    })}
  </ul>`;
}
