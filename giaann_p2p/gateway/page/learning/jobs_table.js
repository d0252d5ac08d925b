// The texts that were learned or are being learned.
import { html } from "../shared/libraries.js";
import { count, many, rate as perSecond } from "../shared/format.js";
import { Meter } from "../shared/meter.js";

const SHOWN = 200;
const LEAST_RATE = 0.05; // chunks a second: less would be shown as 0

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
          <th scope="col" class="wide">Learned by</th>
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
  const { id, name, chunks, of, rate, mine, authors } = job;
  const all = of !== null && chunks >= of;
  const far = of === null ? many(chunks, "chunk") : `${count(chunks)} of ${many(of, "chunk")}`;
  return html`<tr>
    <th scope="row">${name ?? html`<code title=${id}>${id.slice(0, 12)}</code>`}</th>
    <td>
      <span class="measured">
        ${of !== null && html`<${Meter} share=${of ? chunks / of : 1} label="Learned" tone=${all ? "good" : ""} />`}
        <span>${far}${rate >= LEAST_RATE && html`<span class="muted"> · ${perSecond(rate)} a second</span>`}</span>
      </span>
    </td>
    <td class="wide">${learners(job)}${mine && authors > 0 && html`<span class="muted"> · taught here</span>`}</td>
  </tr>`;
}

function learners({ author, authors, mine, foreign }) {
  if (author) return html`<code>${author.slice(0, 8)}</code>`;
  if (authors) return many(authors, "peer");
  if (foreign) return "another program";
  return mine ? "here" : "not known";
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
