// A prompt and its answer. Escape stops the answer from anywhere in this view.
import { html, useEffect } from "../shared/libraries.js";
import { useFeed } from "../shared/feed.js";
import { Answer } from "./answer.js";
import { AskForm } from "./ask_form.js";
import { ask, choose, stop, useAsking } from "./asking.js";
import { TokenPanel } from "./token_panel.js";

export function AskView() {
  const { info } = useFeed();
  const asking = useAsking();
  const profile = info?.profile ?? "words";
  const send = (prompt, options) => ask(prompt, { ...options, explain: true });
  const going = asking.state === "asking";
  useEffect(() => {
    if (!going) return undefined;
    const key = (event) => {
      if (event.key === "Escape" && !event.isComposing && !event.defaultPrevented) stop();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [going]);
  const open = asking.chosen !== null && asking.chosen < asking.tokens.length;
  return html`<div class="view ask ${open ? "opened" : ""}">
    <div class="asked">
      <${AskForm}
        subwords=${profile === "subwords"}
        asking=${going}
        onAsk=${send}
        onStop=${stop}
      />
      ${asking.state === "idle"
        ? html`<p class="muted hint">
            The model continues what you write, from what it was taught. Each word is coloured by the
            evidence for it.
          </p>`
        : html`<${Answer} asking=${asking} profile=${profile} onChoose=${choose} />`}
    </div>
    ${open &&
    html`<${TokenPanel}
      tokens=${asking.tokens}
      chosen=${asking.chosen}
      profile=${profile}
      onClose=${() => choose(null)}
    />`}
  </div>`;
}
