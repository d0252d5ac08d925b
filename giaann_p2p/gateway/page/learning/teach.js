// Where a text is taught: typed, chosen, or dropped. If the gateway teaches nothing, how to allow it.
import { html, useRef, useState } from "../shared/libraries.js";
import { count, many, rate } from "../shared/format.js";
import { Meter } from "../shared/meter.js";
import { teach, useTeaching } from "./teaching.js";

const LARGEST = 32 << 20; // bytes of a text that the gateway takes

export function Teach({ allowed, brain }) {
  const [over, setOver] = useState(false);
  const [wrong, setWrong] = useState("");
  const take = async (files) => {
    setWrong("");
    for (const file of files) {
      const problem = allowed ? await taken(file) : `${file.name} is not learned: this gateway teaches nothing.`;
      if (problem) setWrong(problem);
    }
  };
  const drag = (is) => (event) => {
    if (!event.dataTransfer.types.includes("Files")) return; // text goes where it is dropped
    event.preventDefault();
    setOver(is && allowed);
  };
  return html`<section
    class="card teach ${over ? "over" : ""}"
    aria-labelledby="teach-title"
    onDragOver=${drag(true)}
    onDragLeave=${drag(false)}
    onDrop=${(event) => {
      drag(false)(event);
      take(event.dataTransfer.files);
    }}
  >
    <header><h2 id="teach-title">Teach a text</h2></header>
    ${allowed
      ? html`<${Lesson} onFiles=${take} />`
      : html`<p>
          This gateway teaches nothing. To let everybody who can open this page teach it, start it again with
          ${" "}<code>giaann serve --allow-training</code>; or teach from the command line with
          ${" "}<code>${brain ? "giaann solo train FILE" : "giaann train FILE"}</code>.
        </p>`}
    ${wrong && html`<p class="error" role="alert">${wrong}</p>`}
    <${Lessons} />
  </section>`;
}

function Lesson({ onFiles }) {
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const chooser = useRef(null);
  const send = (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    teach(name.trim() || firstWords(text), text);
    setText("");
    setName("");
  };
  return html`<form onSubmit=${send}>
    <label for="lesson">Text</label>
    <textarea
      id="lesson"
      rows="5"
      placeholder="Write or paste English sentences, or drop files here"
      value=${text}
      onInput=${(event) => setText(event.target.value)}
    ></textarea>
    <div class="options">
      <label class="grow">
        Name
        <input
          type="text"
          maxlength="256"
          placeholder="the first words of the text"
          value=${name}
          onInput=${(event) => setName(event.target.value)}
        />
      </label>
      <span class="buttons">
        <input
          ref=${chooser}
          type="file"
          hidden
          multiple
          accept="text/plain,.txt,.md"
          aria-label="Text files"
          onChange=${(event) => {
            onFiles([...event.target.files]);
            event.target.value = "";
          }}
        />
        <button type="button" onClick=${() => chooser.current.click()}>Choose files …</button>
        <button type="submit" class="main" disabled=${!text.trim()}>Teach</button>
      </span>
    </div>
  </form>`;
}

/** Teaches a file; returns what is wrong with it, in words. */
async function taken(file) {
  if (file.size > LARGEST) return `${file.name} is too large; teach it with giaann train.`;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    if (!text.trim()) return `${file.name} is empty.`;
    teach(file.name, text);
    return "";
  } catch {
    return `${file.name} cannot be read as UTF-8 text.`;
  }
}

const firstWords = (text) => text.trim().split(/\s+/).slice(0, 5).join(" ").slice(0, 60);

function Lessons() {
  const lessons = useTeaching();
  if (!lessons.length) return null;
  return html`<ul class="lessons" aria-live="polite" aria-label="Texts taught from this page">
    ${lessons.map(
      (one) => html`<li key=${one.id} class=${one.state}>
        <span class="lesson-name">${one.name}</span>
        <${Meter}
          share=${one.share}
          label=${`${one.name}: learned`}
          tone=${{ learned: "good", unfinished: "fair", failed: "bad" }[one.state] ?? ""}
        />
        <span class=${one.state === "failed" ? "error" : "muted"}>${progressOf(one)}</span>
      </li>`,
    )}
  </ul>`;
}

function progressOf({ state, done, of, rate: speed, waiting, report, error }) {
  if (state === "failed") return error;
  if (state === "waiting") return "waits for its turn";
  if (state === "learned") return report.known ? "was known already" : reported(report);
  if (state === "unfinished") return `not finished: ${reported(report)}`;
  if (waiting) return waiting;
  if (!done) return "reading …";
  const far = of ? `${count(done)} of ${many(of, "chunk")}` : many(done, "chunk");
  return speed ? `${far}, ${rate(speed)} sentences/s` : far;
}

function reported(report) {
  const skipped = Object.entries(report.skips ?? {}).map(([why, { count: n }]) => `${count(n)} ${why}`);
  const unit = report.unit ?? "sentences";
  const learned = `learned ${count(report.sequences ?? report.sentences)} of ${count(report.sentences)} ${unit}`;
  const given = Object.keys(report.given_up ?? {}).length;
  return [learned, skipped.length && `skipped ${skipped.join(", ")}`, given && `gave up ${many(given, "chunk")}`]
    .filter(Boolean)
    .join("; ");
}
