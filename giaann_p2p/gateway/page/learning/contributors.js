// Who learned how much: compute peers sign what they learn.
import { html } from "../shared/libraries.js";
import { count } from "../shared/format.js";

const SHOWN = 50;

export function Contributors({ contributors }) {
  const sorted = [...contributors].sort((one, other) => other.chunks - one.chunks);
  const most = sorted[0]?.chunks || 1;
  return html`<section class="card contributors" aria-labelledby="contributors-title">
    <header>
      <h2 id="contributors-title">Contributors</h2>
      <p class="muted">${sorted.length ? "by what their compute peers learned" : ""}</p>
    </header>
    ${sorted.length
      ? html`<table>
          <thead>
            <tr>
              <th scope="col">Peer</th>
              <th scope="col" class="number">Chunks</th>
              <th scope="col" class="number">Sentences</th>
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
                <td class="number">${one.sentences === null ? "–" : count(one.sentences)}</td>
              </tr>`,
            )}
          </tbody>
        </table>`
      : html`<p class="muted">Who learned what is not known here.</p>`}
  </section>`;
}
