// A field that finds nouns: a combobox, whose suggestions come from the gateway while one types.
import { html, useEffect, useRef, useState } from "../shared/libraries.js";
import { getJson } from "../shared/api.js";
import { count } from "../shared/format.js";
import { go } from "../shared/route.js";

const PAUSE = 120; // ms without a key before the gateway is asked
const MOST = 12;

export function NounSearch({ noun }) {
  const [text, setText] = useState(noun);
  const [found, setFound] = useState(null);
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const field = useRef(null);
  useEffect(() => setText(noun), [noun]);
  useEffect(() => {
    if (!open) return undefined;
    const going = new AbortController();
    const query = `/api/search?q=${encodeURIComponent(text.trim())}&most=${MOST}`;
    const timer = setTimeout(() => {
      getJson(query, going.signal).then(setFound, (error) => {
        if (error.name !== "AbortError") setFound({ found: [], of: 0, note: error.message });
      });
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      going.abort();
    };
  }, [text, open]);

  const nouns = (open && found?.found) || [];
  const walkTo = (target) => {
    setOpen(false);
    setAt(-1);
    if (target.trim()) go("columns", target.trim());
  };
  const key = (event) => {
    if (event.key === "Escape") setOpen(false);
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    setOpen(true);
    const step = event.key === "ArrowDown" ? 1 : -1;
    setAt(Math.max(-1, Math.min(nouns.length - 1, at + step)));
  };
  const send = (event) => {
    event.preventDefault();
    walkTo(nouns[at]?.noun ?? text);
  };
  const shown = open && (nouns.length > 0 || found?.note || (found && text.trim()));

  return html`<form class="search" role="search" onSubmit=${send}>
    <label for="noun">Noun</label>
    <div class="field">
      <input
        id="noun"
        ref=${field}
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck=${false}
        placeholder="Search a noun"
        aria-expanded=${nouns.length > 0}
        aria-controls="nouns"
        aria-autocomplete="list"
        aria-activedescendant=${at >= 0 && at < nouns.length ? `noun-${at}` : undefined}
        value=${text}
        onInput=${(event) => {
          setText(event.target.value);
          setAt(-1);
          setOpen(true);
        }}
        onFocus=${() => setOpen(true)}
        onBlur=${() => setOpen(false)}
        onKeyDown=${key}
      />
      <div class="suggestions" hidden=${!shown}>
        <ul id="nouns" role="listbox" aria-label="Nouns">
          ${nouns.map(
            (one, index) => html`<li
              key=${one.noun}
              id=${`noun-${index}`}
              role="option"
              aria-selected=${index === at}
              onMouseDown=${(event) => event.preventDefault()}
              onClick=${() => walkTo(one.noun)}
            >
              ${one.noun} <span class="muted">${count(one.occurrences)}</span>
            </li>`,
          )}
        </ul>
        ${found && html`<p class="muted">${summary(found, nouns.length)}</p>`}
      </div>
    </div>
    <button type="submit" class="main">Show</button>
  </form>`;
}

function summary({ of, note }, shown) {
  const said = of > shown ? `${count(shown)} of ${count(of)} nouns` : of ? "" : "No noun begins like this";
  return [said, note].filter(Boolean).join("; ");
}
