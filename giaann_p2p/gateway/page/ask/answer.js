// An answer: its tokens, each marked by the evidence for it. Tab leads to the chosen token, arrow keys
// to the others, Enter opens one.
import { html, useEffect, useRef, useState } from "../shared/libraries.js";
import { many } from "../shared/format.js";
import { basisOf, legendOf } from "./basis.js";
import { certaintyOf } from "./certainty.js";

const SPOKEN_EVERY = 1500; // ms: a screen reader cannot follow single tokens

export function Answer({ asking, profile, onChoose }) {
  const { state, prompt, begun, tokens, ended, error, chosen } = asking;
  const [near, setNear] = useState(null);
  const words = useRef(null);
  const pointed = near ?? chosen;
  const at = pointed !== null && pointed < tokens.length ? pointed : null;
  const step = (event) => walk(event, at, tokens.length, words.current, onChoose);
  return html`<section class="card answer" aria-labelledby="answer-title">
    <header>
      <h2 id="answer-title">Answer</h2>
      <p class="muted" role="status">${statusOf(state, tokens, ended)}</p>
    </header>
    <p
      class="text"
      ref=${words}
      onKeyDown=${step}
      onMouseLeave=${() => setNear(null)}
      onFocusOut=${() => setNear(null)}
    >
      <span class="prompt">${prompt}${begun?.completion}</span>${tokens.map(
        (token, index) => html`<span
          key=${index}
          role="button"
          class="token ${basisOf(token, profile).kind}"
          tabindex=${index === (at ?? 0) ? 0 : -1}
          aria-label=${`${token.text.trim() || "space"}: ${basisOf(token, profile).gist}, ${certaintyOf(token)}`}
          aria-pressed=${index === chosen}
          onMouseEnter=${() => setNear(index)}
          onFocus=${() => setNear(index)}
          onClick=${() => onChoose(index)}
          >${token.text}</span
        >`,
      )}${state === "asking" && html`<span class="caret" aria-hidden="true"></span>`}
    </p>
    <${Spoken} text=${tokens.map((token) => token.text).join("")} going=${state === "asking"} />
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${begun?.lost && html`<p class="error">The swarm has lost some of what it knew: ${begun.lost}.</p>`}
    ${begun?.unknown?.length > 0 &&
    html`<p class="muted">Never learned: ${unknownIn(begun.unknown)}.</p>`}
    ${tokens.length > 0 &&
    html`<p class="detail">
      ${at === null
        ? html`<span class="muted">Point at a token to see the evidence for it; click or Enter opens it.</span>`
        : html`<b>${tokens[at].text.trim() || "␣"}</b> · ${basisOf(tokens[at], profile).gist} ·
          ${" "}${certaintyOf(tokens[at])}`}
    </p>`}
    <ul class="legend" aria-label="Evidence for a token">
      ${legendOf(profile).map(
        ({ name, kind, gist }) => html`<li key=${name}>
          <span class="token ${kind}">${name}</span> ${gist === `in ${name}` ? "" : gist}
        </li>`,
      )}
    </ul>
  </section>`;
}

/** The answer for screen readers, a few words at a time. */
function Spoken({ text, going }) {
  const [said, setSaid] = useState("");
  const newest = useRef(text);
  newest.current = text;
  useEffect(() => {
    if (!going) {
      setSaid(newest.current);
      return undefined;
    }
    const timer = setInterval(() => setSaid(newest.current), SPOKEN_EVERY);
    return () => clearInterval(timer);
  }, [going]);
  return html`<p class="unseen" aria-live="polite">${said}</p>`;
}

/** The unknown words: `worker/in` and `worker/the` become "in, the near worker". */
function unknownIn(names) {
  const nouns = [];
  const byNoun = new Map();
  for (const name of names) {
    const at = name.indexOf("/", 1);
    if (at < 0) nouns.push(name);
    else byNoun.set(name.slice(0, at), [...(byNoun.get(name.slice(0, at)) ?? []), name.slice(at + 1)]);
  }
  const near = [...byNoun].map(([noun, words]) => `${words.join(", ")} near ${noun}`);
  return [nouns.join(", "), ...near].filter(Boolean).join("; ");
}

function statusOf(state, tokens, ended) {
  const got = many(tokens.length, "token");
  const spent = tokens.reduce((sum, token) => sum + (token.cost?.ms ?? 0), 0);
  const speed = spent > 0 ? `, ${Math.round((1000 * tokens.length) / spent)} a second` : "";
  if (state === "asking") return tokens.length ? `${got} …` : "thinking …";
  if (state === "stopped") return `stopped after ${got}`;
  if (state === "failed") return "failed";
  if (!tokens.length) return "nothing in its memory continues this";
  return `${got}${speed}, ${ended?.stopped === "limit" ? "up to the limit" : "to the end"}`;
}

function walk(event, at, tokens, words, onChoose) {
  if (at === null || !event.target.matches(".token")) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    onChoose(at);
    return;
  }
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tokens - 1 }[event.key];
  if (to === undefined || to < 0 || to >= tokens) return;
  event.preventDefault();
  words.querySelectorAll(".token")[to].focus();
}
