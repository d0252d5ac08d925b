// The page: a header with the views, and the view that the address names.
import { html, render, useEffect, useRef } from "./shared/libraries.js";
import { listen, useFeed } from "./shared/feed.js";
import { hrefOf, useRoute } from "./shared/route.js";
import { ThemeSwitch } from "./shared/theme.js";
import { SwarmView } from "./swarm/swarm_view.js";
import { AskView } from "./ask/ask_view.js";
import { ColumnsView } from "./columns/columns_view.js";
import { LearningView } from "./learning/learning_view.js";

const VIEWS = {
  swarm: { title: "Swarm", show: SwarmView },
  ask: { title: "Ask", show: AskView },
  columns: { title: "Columns", show: ColumnsView },
  learning: { title: "Learning", show: LearningView },
};
const LINES = { connecting: "connecting", live: "live", reconnecting: "reconnecting" };

function App() {
  const { view, of } = useRoute();
  const { info, line } = useFeed();
  const main = useRef(null);
  const before = useRef(view);
  const name = info?.name ?? "";
  const titles = { ...VIEWS, swarm: { ...VIEWS.swarm, title: titleOfFirst(info) } };

  useEffect(() => {
    document.title = `${titles[view].title}${name ? ` · ${name}` : ""} · giaann`;
    // Another view begins at its top, for eyes and for screen readers.
    if (before.current !== view) {
      main.current.focus({ preventScroll: true }); // the header would cover what it scrolls to
      scrollTo(0, 0);
    }
    before.current = view;
  }, [view, name]);

  const { show: View } = VIEWS[view];
  return html`
    <a class="skip" href="#content" onClick=${(event) => skip(event, main.current)}>
      Skip to the content
    </a>
    <header class="top">
      <div class="brand">
        <img src="/assets/icon.svg" alt="" width="22" height="22" />
        <strong>giaann</strong>
        ${name && html`<span class="name" title=${name}>${name}</span>`}
      </div>
      <nav aria-label="Views">
        ${Object.entries(titles).map(
          ([key, { title }]) => html`<a
            key=${key}
            href=${hrefOf(key)}
            aria-current=${key === view ? "page" : undefined}
            >${title}</a
          >`,
        )}
      </nav>
      <div class="side">
        <span class="line ${line}" role="status">
          <span class="dot" aria-hidden="true"></span>${LINES[line]}
        </span>
        <${ThemeSwitch} />
      </div>
    </header>
    <main id="content" ref=${main} tabindex="-1">
      <h1 class="unseen">${titles[view].title}</h1>
      <${View} of=${of} />
    </main>
  `;
}

const titleOfFirst = (info) => (info?.kind === "brain" ? "Brain" : "Swarm");

function skip(event, main) {
  event.preventDefault(); // the hash names the view
  main.focus();
}

/** A file that is dropped where nothing accepts it would replace the page. */
function keep(event) {
  if (event.defaultPrevented || !event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = "none";
}

addEventListener("dragover", keep);
addEventListener("drop", keep);
listen();
render(html`<${App} />`, document.getElementById("page"));
