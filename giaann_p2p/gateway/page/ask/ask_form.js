// Where a prompt is written: Enter sends it.
import { html, useState } from "../shared/libraries.js";

const NUMBERS = {
  max_tokens: { title: "Max tokens", usual: "40", min: 1, step: 1 },
  temperature: { title: "Temperature", usual: "0", min: 0, step: 0.1, max: 100 },
  top_p: { title: "Top-p", usual: "1", min: 0.01, step: 0.01, max: 1 },
  seed: { title: "Seed", usual: "0", min: 0, step: 1 },
};

const kept = { prompt: "", ...Object.fromEntries(Object.entries(NUMBERS).map(([n, o]) => [n, o.usual])) };

export function AskForm({ subwords, asking, onAsk, onStop }) {
  const [fields, setFields] = useState({ ...kept });
  const shown = subwords ? Object.keys(NUMBERS) : ["max_tokens"];
  const set = (name, value) => setFields(Object.assign(kept, { [name]: value }) && { ...kept });
  const send = (event) => {
    event.preventDefault();
    if (!fields.prompt.trim()) return;
    onAsk(fields.prompt, optionsOf(fields, shown));
  };
  return html`<form class="card ask-form" onSubmit=${send}>
    <label for="prompt">Prompt</label>
    <textarea
      id="prompt"
      rows="2"
      placeholder="Begin a sentence; the model continues it"
      value=${fields.prompt}
      onInput=${(event) => set("prompt", event.target.value)}
      onKeyDown=${(event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && send(event)}
    ></textarea>
    <div class="options">
      ${shown.map((name) => {
        const { title, ...bounds } = NUMBERS[name];
        return html`<label key=${name}>
          ${title}
          <input
            type="number"
            required
            min=${bounds.min}
            max=${bounds.max}
            step=${bounds.step}
            value=${fields[name]}
            onInput=${(event) => set(name, event.target.value)}
          />
        </label>`;
      })}
      <span class="buttons">
        ${asking && html`<button type="button" onClick=${onStop}>Stop <kbd>Esc</kbd></button>`}
        <button type="submit" class="main" disabled=${!fields.prompt.trim()}>Ask <kbd>Enter</kbd></button>
      </span>
    </div>
  </form>`;
}

/** Returns the options as numbers, without those that keep their defaults. */
function optionsOf(fields, shown) {
  const given = shown.filter((name) => name === "max_tokens" || fields[name] !== NUMBERS[name].usual);
  return Object.fromEntries(given.map((name) => [name, Number(fields[name])]));
}
