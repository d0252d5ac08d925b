// A bar for a share, with its text for those who do not see it.
import { html } from "./libraries.js";

export function Meter({ share, label, tone = "" }) {
  const filled = Math.min(1, Math.max(0, share || 0));
  return html`<span
    class="meter ${tone}"
    role="progressbar"
    aria-label=${label}
    aria-valuemin="0"
    aria-valuemax="100"
    aria-valuenow=${Math.round(100 * filled)}
  >
    <span style=${{ width: `${(100 * filled).toFixed(1)}%` }}></span>
  </span>`;
}
