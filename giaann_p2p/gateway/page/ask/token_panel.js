// One token of an answer: the evidence for it, the candidates that it won against, the way through the
// columns that led to it, and what it cost.
import { html, useEffect, useState } from "../shared/libraries.js";
import { getJson } from "../shared/api.js";
import { bytes, many, percent } from "../shared/format.js";
import { hrefOf } from "../shared/route.js";
import { basisOf } from "./basis.js";
import { certaintyOf } from "./certainty.js";

const STEPS = 8; // columns of the way that are shown

export function TokenPanel({ tokens, chosen, profile, onClose }) {
  const token = tokens[chosen];
  const { kind, name, sentence } = basisOf(token, profile);
  const key = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault(); // it closes the panel, and does not stop the answer
    onClose();
  };
  return html`<aside class="card token-panel" aria-labelledby="token-title" onKeyDown=${key}>
    <header>
      <h2 id="token-title">Token ${chosen + 1}: <q>${visible(token.text)}</q></h2>
      <button type="button" class="quiet" aria-label="Close" onClick=${onClose}>✕</button>
    </header>
    <p><span class="token ${kind}">${name}</span> ${sentence}</p>
    <p class="muted">${certaintyOf(token)}</p>
    <${Rivals} tokens=${tokens} chosen=${chosen} />
    <h3>The way through the columns</h3>
    <${Way} tokens=${tokens.slice(0, chosen + 1)} />
    <p class="muted cost">${costOf(token.cost)}</p>
  </aside>`;
}

function Rivals({ tokens, chosen }) {
  const { rivals } = tokens[chosen];
  if (rivals?.length) {
    return html`<h3>Candidates</h3>
      <${Bars} rows=${rivals.map((one) => rowOf(one, one.probability, true))} chosen=${tokens[chosen]} />`;
  }
  return html`<${Leads} before=${tokens[chosen - 1]} token=${tokens[chosen]} />`;
}

/** Where the word before leads most strongly: shown when the model does not give the candidates. */
function Leads({ before, token }) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    if (!before) return undefined;
    const going = new AbortController();
    setFound(null);
    getJson(`/api/columns/${encodeURIComponent(before.concept)}?words=256&leads=8`, going.signal).then(
      (column) => setFound(column.words.find((word) => word.feature === before.feature)?.leads ?? []),
      (error) => error.name !== "AbortError" && setFound([]),
    );
    return () => going.abort();
  }, [before]);
  if (!before) return html`<p class="muted">It follows from the prompt itself.</p>`;
  return html`<h3>Where <q>${visible(before.text)}</q>, the word before, leads most strongly</h3>
    ${found === null && html`<p class="muted">looking …</p>`}
    ${found?.length === 0 && html`<p class="muted">Its row is not among the column's most frequent ones.</p>`}
    ${found?.length > 0 && html`<${Bars} rows=${found.map((one) => rowOf(one, one.strength))} chosen=${token} />`}`;
}

function rowOf(one, value, share = false) {
  const { concept, feature, text } = one;
  return { concept, feature, text, value, word: visible(text ?? feature ?? concept), shown: share ? percent(value) : value.toFixed(1) };
}

/** A space or the end of a line would look like nothing. */
const visible = (text) => text.trim() || (text.includes("\n") ? "↵" : "␣");

function Bars({ rows, chosen }) {
  const most = Math.max(...rows.map((row) => row.value), 1e-9);
  const is = (row) =>
    chosen && (row.concept ? row.concept === chosen.concept && row.feature === chosen.feature : row.text === chosen.word);
  return html`<ol class="bars">
    ${rows.map(
      (row, index) => html`<li key=${index} class=${is(row) ? "won" : ""}>
        <span class="word">${row.word}</span>
        ${row.concept ? html`<a href=${hrefOf("columns", row.concept)}>${visible(row.concept)}</a>` : html`<span></span>`}
        <span class="bar" aria-hidden="true"
          ><span style=${{ width: `${Math.max(1, (100 * row.value) / most)}%` }}></span
        ></span>
        <span class="number">${row.shown}</span>
      </li>`,
    )}
  </ol>`;
}

/** The columns that were active, the newest last; a column with several words is one step. */
function Way({ tokens }) {
  const steps = [];
  for (const { concept, text } of tokens) {
    const last = steps.at(-1);
    if (last?.concept === concept) last.words += text;
    else steps.push({ concept, words: text });
  }
  const shown = steps.slice(-STEPS);
  return html`<ol class="way">
    ${steps.length > shown.length && html`<li class="muted">… ${many(steps.length - shown.length, "column")} before</li>`}
    ${shown.map(
      (step, index) => html`<li key=${index}>
        <a href=${hrefOf("columns", step.concept)}>${visible(step.concept)}</a>${" "}
        <span class="muted">${step.words.trim()}</span>
      </li>`,
    )}
  </ol>`;
}

function costOf(cost) {
  if (!cost) return "";
  const said = [`${cost.ms.toFixed(1)} ms`];
  if (cost.rows) said.push(many(cost.rows, "row"));
  if (cost.round_trips) said.push(many(cost.round_trips, "round trip"));
  if (cost.bytes) said.push(bytes(cost.bytes));
  return `Cost: ${said.join(", ")}`;
}
