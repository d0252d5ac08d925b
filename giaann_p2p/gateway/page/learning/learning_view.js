// What was learned, by whom, and where to teach more.
import { html } from "../shared/libraries.js";
import { useFeed } from "../shared/feed.js";
import { Contributors } from "./contributors.js";
import { JobsTable } from "./jobs_table.js";
import { Teach } from "./teach.js";

export function LearningView() {
  const { info, jobs } = useFeed();
  return html`<div class="view learning">
    ${info && html`<${Teach} allowed=${info.training} brain=${info.kind === "brain"} />`}
    <div class="halves">
      ${jobs && html`<${JobsTable} jobs=${jobs} />`}
      ${jobs && info?.kind !== "brain" && html`<${Contributors} contributors=${jobs.contributors ?? []} />`}
    </div>
  </div>`;
}
