// What a brain on this machine knows: it has no peers and no replicas.
import { html } from "../shared/libraries.js";
import { count } from "../shared/format.js";

const FIGURES = [
  ["columns", "columns"],
  ["rows", "rows"],
  ["connections", "connections"],
];

export function BrainSummary({ status }) {
  const texts = status?.texts ?? [];
  return html`
    <section class="card" aria-labelledby="known-title">
      <header><h2 id="known-title">What it knows</h2></header>
      <dl class="figures">
        ${FIGURES.map(
          ([name, title]) => html`<div key=${name}>
            <dt>${title}</dt>
            <dd>${status ? count(status[name] ?? 0) : "…"}</dd>
          </div>`,
        )}
        <div>
          <dt>texts</dt>
          <dd>${count(texts.length)}</dd>
        </div>
      </dl>
    </section>
    <section class="card" aria-labelledby="texts-title">
      <header><h2 id="texts-title">Texts</h2></header>
      ${texts.length
        ? html`<table>
            <thead>
              <tr>
                <th scope="col">Text</th>
                <th scope="col" class="number">Chunks</th>
              </tr>
            </thead>
            <tbody>
              ${texts.map(
                (one) => html`<tr key=${one.name}>
                  <th scope="row">${one.name}</th>
                  <td class="number">${count(one.chunks)}</td>
                </tr>`,
              )}
            </tbody>
          </table>`
        : html`<p class="muted">It has learned no text yet.</p>`}
    </section>
  `;
}
