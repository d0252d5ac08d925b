// The words of a column with their counts: the most frequent first, and more on request.
import { html } from "../shared/libraries.js";
import { count } from "../shared/format.js";
import { hrefOf } from "../shared/route.js";

const LEADS = 3; // links that a row names

export function WordsTable({ column, most, onMore }) {
  const { words, size, at_least, concept } = column;
  const left = size - words.length;
  const top = Math.max(...words.map((word) => word.occurrences), 1);
  return html`<section class="card words" aria-labelledby="words-title">
    <header>
      <h2 id="words-title">Words</h2>
      <p class="muted">${left > 0 ? `the ${count(words.length)} most frequent of ${at_least ? "at least " : ""}${count(size)}` : `all ${count(size)}`}</p>
    </header>
    <table>
      <thead>
        <tr>
          <th scope="col">Word</th>
          <th scope="col" class="number">Seen</th>
          <th scope="col" class="number">Links</th>
          <th scope="col">Strongest</th>
        </tr>
      </thead>
      <tbody>
        ${words.map(
          (word) => html`<tr key=${word.feature ?? ""}>
            <th scope="row">
              ${word.feature === null ? html`<em>${concept}</em>` : word.feature}
              <span class="share" aria-hidden="true"
                ><span style=${{ width: `${(100 * word.occurrences) / top}%` }}></span
              ></span>
            </th>
            <td class="number">${count(word.occurrences)}</td>
            <td class="number">${count(word.connections)}</td>
            <td class="leads">
              ${word.leads.slice(0, LEADS).map(
                (lead) => html`${lead.concept === concept
                  ? html`<span>${lead.feature ?? concept}</span>`
                  : html`<a href=${hrefOf("columns", lead.concept)}
                      >${lead.concept}${lead.feature === null ? "" : `·${lead.feature}`}</a
                    >`}${" "}`,
              )}
            </td>
          </tr>`,
        )}
      </tbody>
    </table>
    ${left > 0 &&
    html`<p class="more">
      <span class="muted">${count(left)} more${most >= 256 ? " are too rare to be shown here" : ""}</span>
      ${most < 256 && html`<button type="button" onClick=${onMore}>Show more</button>`}
    </p>`}
  </section>`;
}
