// A noun's column: a picture and a table. The noun is in the address, so that "back" walks back.
import { html, useEffect, useState } from "../shared/libraries.js";
import { getJson } from "../shared/api.js";
import { count, many } from "../shared/format.js";
import { ColumnGraph } from "./column_graph.js";
import { NounSearch } from "./noun_search.js";
import { WordsTable } from "./words_table.js";
import { hrefOf } from "../shared/route.js";

const SOME = 32;
const LOTS = 256;
const LEADS = 8;
const BEGINNINGS = 40; // nouns that are offered when none is chosen

export function ColumnsView({ of }) {
  const [most, setMost] = useState(SOME);
  const { column, error } = useColumn(of, most);
  useEffect(() => setMost(SOME), [of]);
  return html`<div class="view columns">
    <div class="finding">
      <${NounSearch} noun=${of} />
      <div role="status" aria-live="polite">
        ${error && html`<p class="card error">${error}</p>`}
        ${of && !error && !column && html`<p class="muted hint">reading the column …</p>`}
        ${column && html`<p class="unseen">The column of ${column.concept} is shown.</p>`}
      </div>
    </div>
    ${column &&
    html`<div class="halves">
      <section class="card" aria-labelledby="column-title">
        <header>
          <h2 id="column-title">The column of <q>${column.concept}</q></h2>
          <p class="muted">${summary(column)}</p>
        </header>
        <${ColumnGraph} column=${column} />
      </section>
      <${WordsTable} column=${column} most=${most} onMore=${() => setMost(LOTS)} />
    </div>`}
    ${!of && html`<${Beginnings} />`}
  </div>`;
}

/** Returns a noun's column once it has arrived; until then the former one is shown. */
function useColumn(noun, words) {
  const [found, setFound] = useState({});
  useEffect(() => {
    if (!noun) {
      setFound({});
      return undefined;
    }
    const going = new AbortController();
    const path = `/api/columns/${encodeURIComponent(noun)}?words=${words}&leads=${LEADS}`;
    getJson(path, going.signal).then(
      (column) => setFound({ column }),
      (error) => error.name !== "AbortError" && setFound({ error: `${error.message}.` }),
    );
    return () => going.abort();
  }, [noun, words]);
  return found;
}

function summary({ size, at_least, undecided, lies }) {
  const said = [`${at_least ? "at least " : ""}${many(size, "word")}`];
  if (undecided) said.push(`owners differ in ${count(undecided)}`);
  if (lies?.length) said.push(`${many(lies.length, "wrong row")} outvoted`);
  return said.join(" · ");
}

/** The most frequent nouns, to begin with. */
function Beginnings() {
  const [found, setFound] = useState(null);
  useEffect(() => {
    const going = new AbortController();
    getJson(`/api/search?q=&most=${BEGINNINGS}`, going.signal).then(setFound, () => {});
    return () => going.abort();
  }, []);
  return html`<section class="card beginnings" aria-labelledby="beginnings-title">
    <header>
      <h2 id="beginnings-title">Concept columns</h2>
      <p class="muted">${found?.of ? many(found.of, "noun") : ""}</p>
    </header>
    <p>
      Every noun has a column, with a neuron for each word that was read near it. Search a noun to see
      its words, and the columns that they lead to.
    </p>
    ${found?.found.length > 0 &&
    html`<ul class="nouns">
      ${found.found.map(
        (one) => html`<li key=${one.noun}>
          <a href=${hrefOf("columns", one.noun)}>${one.noun}</a>${" "}
          <span class="muted">${count(one.occurrences)}</span>
        </li>`,
      )}
    </ul>`}
    ${found?.note && html`<p class="muted">${found.note}</p>`}
  </section>`;
}
