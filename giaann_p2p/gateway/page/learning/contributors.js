// The contributors' board: who learned how much. Peers sign what they learn, so each chunk counts for
// the peers that signed it.
import { html } from "../shared/libraries.js";
import { count, many, percent } from "../shared/format.js";

const SHOWN = 50;

export function Contributors({ contributors }) {
  const sorted = [...contributors].sort((one, other) => other.chunks - one.chunks);
  const most = sorted[0]?.chunks || 1;
  const all = sorted.reduce((sum, one) => sum + one.chunks, 0) || 1;
  return html`<section class="card contributors" aria-labelledby="contributors-title">
    <header>
      <h2 id="contributors-title">Contributors</h2>
      <p class="muted">${sorted.length ? `${many(sorted.length, "peer")}, by the chunks that they signed` : ""}</p>
    </header>
    ${sorted.length
      ? html`<table>
          <thead>
            <tr>
              <th scope="col">Peer</th>
              <th scope="col" class="number">Chunks</th>
              <th scope="col" class="number">Share</th>
              <th scope="col" class="number">Texts</th>
            </tr>
          </thead>
          <tbody>
            ${sorted.slice(0, SHOWN).map(
              (one) => html`<tr key=${one.author}>
                <th scope="row">
                  <code>${one.author.slice(0, 8)}</code>
                  <span class="share" aria-hidden="true"
                    ><span style=${{ width: `${(100 * one.chunks) / most}%` }}></span
                  ></span>
                </th>
                <td class="number">${count(one.chunks)}</td>
                <td class="number">${percent(one.chunks / all)}</td>
                <td class="number">${count(one.texts)}</td>
              </tr>`,
            )}
          </tbody>
        </table>
        ${sorted.length > SHOWN && html`<p class="muted">and ${count(sorted.length - SHOWN)} more</p>`}`
      : html`<p class="muted">It is not known here who learned what.</p>`}
  </section>`;
}
