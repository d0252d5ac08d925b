// A column as a picture: its words, and the columns that they lead to most strongly. Pointing at one
// or reaching it by Tab shows its links alone; a click or Enter on another column walks there.
import { html, useEffect, useRef, useState } from "../shared/libraries.js";
import { count } from "../shared/format.js";
import { hrefOf } from "../shared/route.js";
import { planOf } from "./column_plan.js";
import { shortened } from "./label.js";

const MOST_WORDS = 16;
const MOST_TARGETS = 16;

export function ColumnGraph({ column }) {
  const place = useRef(null);
  const [width, setWidth] = useState(0);
  const [near, setNear] = useState(null); // "word:…" or "column:…"
  useEffect(() => {
    const watch = new ResizeObserver(() => setWidth(place.current.clientWidth));
    watch.observe(place.current);
    setWidth(place.current.clientWidth);
    return () => watch.disconnect();
  }, []);
  useEffect(() => setNear(null), [column]);
  return html`<div class="graph" ref=${place} onMouseLeave=${() => setNear(null)}>
    ${width > 0 && html`<${Picture} column=${column} width=${width} near=${near} onNear=${setNear} />`}
  </div>`;
}

function Picture({ column, width, near, onNear }) {
  const { words, targets, links, left, right, height } = planOf(column, width, MOST_WORDS, MOST_TARGETS);
  const lit = (link) => near === `word:${link.word}` || near === `column:${link.target}`;
  const of = (kind, key) =>
    near === null || near === `${kind}:${key}` || links.some((l) => lit(l) && (kind === "word" ? l.word : l.target) === key);
  const events = (name) => ({
    onMouseEnter: () => onNear(name),
    onFocus: () => onNear(name),
    onBlur: () => onNear(null),
  });
  return html`<svg
    width=${width}
    height=${height}
    viewBox=${`0 0 ${width} ${height}`}
    role="group"
    aria-label=${`The column of ${column.concept}: ${words.length} words, which lead to ${targets.length} other columns`}
  >
    <text class="title" x=${left} y="16" text-anchor="end">its words</text>
    <text class="title" x=${right} y="16">lead to the columns of</text>
    <rect class="stack" x="1" y="26" width=${left + 10} height=${height - 28} rx="10" />
    <g aria-hidden="true">
      ${links.map(
        (link) => html`<path
          key=${`${link.word}>${link.target}`}
          class=${near === null ? "link" : lit(link) ? "link lit" : "link dim"}
          d=${curve(left + 4, link.from, right - 12, link.to)}
          stroke-width=${(1 + 5 * link.share).toFixed(2)}
        />`,
      )}
    </g>
    ${words.map(
      (word) => html`<g
        key=${word.key}
        class="word ${word.feature === null ? "noun" : ""} ${of("word", word.key) ? "" : "dim"}"
        tabindex="0"
        role="img"
        aria-label=${wordSaid(word, column, links)}
        ...${events(`word:${word.key}`)}
      >
        <title>${word.feature ?? column.concept}</title>
        <rect class="hit" x="4" y=${word.y - 14} width=${left + 4} height="28" rx="6" />
        <text x=${left - 10} y=${word.y} text-anchor="end" dominant-baseline="central">
          ${shortened(word.feature ?? column.concept, left - 20)}
        </text>
        <circle cx=${left + 2} cy=${word.y} r="5" />
      </g>`,
    )}
    ${targets.map(
      (target) => html`<a
        key=${target.name}
        class="target ${of("column", target.name) ? "" : "dim"}"
        href=${hrefOf("columns", target.name)}
        aria-label=${`Walk to the column of ${target.name}`}
        ...${events(`column:${target.name}`)}
      >
        <title>${target.name}</title>
        <rect class="hit" x=${right - 18} y=${target.y - 14} width=${width - right + 17} height="28" rx="6" />
        <circle cx=${right - 8} cy=${target.y} r="5" />
        <text x=${right + 4} y=${target.y} dominant-baseline="central">
          ${shortened(target.name, width - right - 8)}
        </text>
      </a>`,
    )}
    ${!links.length &&
    html`<text class="title" x=${(left + width) / 2} y=${height / 2} text-anchor="middle">no links to other columns</text>`}
  </svg>`;
}

function curve(x1, y1, x2, y2) {
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}


function wordSaid(word, column, links) {
  const mine = links.filter((link) => link.word === word.key).map((link) => link.target);
  const leads = mine.length ? `leads to ${mine.join(", ")}` : "leads to no other column shown";
  return `${word.feature ?? column.concept}, ${count(word.occurrences)} times, ${leads}`;
}
