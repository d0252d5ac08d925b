// The theme: the system's unless the user chose one, which is remembered in this browser.
import { html } from "./libraries.js";
import { createStore, useStore } from "./store.js";

const NEXT = { system: "light", light: "dark", dark: "system" };
const NAMES = { system: "as the system", light: "light", dark: "dark" };
const KEY = "giaann-theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

const chosen = document.documentElement.dataset.theme ?? "system";
const store = createStore({ chosen, dark: isDark(chosen) });

systemIsDark.addEventListener("change", () => choose(store.get().chosen));

function isDark(theme) {
  return theme === "system" ? systemIsDark.matches : theme === "dark";
}

function choose(theme) {
  const root = document.documentElement;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Then the choice is not remembered, but still applies.
  }
  store.set({ chosen: theme, dark: isDark(theme) });
}

/** Returns whether the page is dark now; what draws on a canvas has to know. */
export const useDark = () => useStore(store).dark;

export function ThemeSwitch() {
  const { chosen } = useStore(store);
  const glyph = { system: "◐", light: "○", dark: "●" }[chosen];
  return html`<button
    type="button"
    class="quiet theme"
    title=${`Theme: ${NAMES[chosen]}`}
    aria-label=${`Theme: ${NAMES[chosen]}. Change to ${NAMES[NEXT[chosen]]}`}
    onClick=${() => choose(NEXT[chosen])}
  >
    <span aria-hidden="true">${glyph}</span>
  </button>`;
}
