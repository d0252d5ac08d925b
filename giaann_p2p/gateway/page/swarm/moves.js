// Shards on their way to new owners, as happens when peers join or leave: no replica is lacking.
import { html } from "../shared/libraries.js";
import { count, many } from "../shared/format.js";
import { copiesOf, sumOf } from "./copies.js";
import { Copying } from "./copying.js";

export function Moves({ shards, replicas, peers }) {
  const { moves, spare } = copiesOf(shards, replicas);
  const going = sumOf(moves);
  return html`<section class="card moves" aria-labelledby="moves-title">
    <header>
      <h2 id="moves-title">Moves</h2>
      <p class="muted">${going ? "copying" : "nothing to do"}</p>
    </header>
    <p>
      ${going
        ? html`<strong>${count(going)}</strong> ${going === 1 ? "copy" : "copies"} on the way to new
            owners; the old ones serve until then`
        : "Every shard is where it should be"}${spare > 0 &&
      `, and ${many(spare, "old copy", "old copies")} not dropped yet`}
    </p>
    <${Copying} copies=${moves} peers=${peers} />
  </section>`;
}
