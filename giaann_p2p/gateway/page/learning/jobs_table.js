// The texts that were learned or are being learned.
import { html } from "../shared/libraries.js";
import { count } from "../shared/format.js";
import { Meter } from "../shared/meter.js";

const SHOWN = 200;

export function JobsTable({ jobs }) {
  const { jobs: all, note } = jobs;
  const shown = all.slice(-SHOWN).reverse();
  return html`<section class="card jobs" aria-labelledby="jobs-title">
    <header>
      <h2 id="jobs-title">Texts</h2>
      <p class="muted">${count(all.length)}</p>
    </header>
    ${shown.length > 0 &&
    html`<table>
      <thead>
        <tr>
          <th scope="col">Text</th>
          <th scope="col">Learned</th>
          <th scope="col" class="wide">Taught by</th>
        </tr>
      </thead>
      <tbody>
        ${shown.map((one) => html`<${Row} key=${one.id} job=${one} />`)}
      </tbody>
    </table>`}
    ${!shown.length && html`<p class="muted">No text is known here yet.</p>`}
    ${all.length > SHOWN && html`<p class="muted">and ${count(all.length - SHOWN)} more</p>`}
    ${note && html`<p class="muted note">${sentence(note)}</p>`}
  </section>`;
}

function Row({ job }) {
  const { id, name, chunks, of, author, mine, foreign } = job;
  const all = of !== null && chunks >= of;
  const far = of === null ? `${count(chunks)} chunks` : `${count(chunks)} of ${count(of)} chunks`;
  return html`<tr>
    <th scope="row">${name ?? html`<code title=${id}>${id.slice(0, 12)}</code>`}</th>
    <td>
      <span class="measured">
        ${of !== null && html`<${Meter} share=${of ? chunks / of : 1} label="Learned" tone=${all ? "good" : ""} />`}
        <span>${far}</span>
      </span>
    </td>
    <td class="wide">${mine ? "here" : author ? html`<code>${author.slice(0, 8)}</code>` : "elsewhere"}${foreign ? ", from another program" : ""}</td>
  </tr>`;
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
