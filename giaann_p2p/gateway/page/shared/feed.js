// What the gateway sends unasked, from `/api/events`: the newest status, peers, jobs, and the
// rates of the last minutes. It connects again by itself for as long as the page is open.
import { getJson } from "./api.js";
import { createStore, useStore } from "./store.js";

const KEPT = 300; // seconds of rates
const QUIET = 20_000; // rates come each second: after so many ms of nothing, the line is dead
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8_000;
const HIDDEN = 60_000; // a hidden page closes its connection after so many ms
const SERIES = ["t", "reads", "writes", "tokens"];

const store = createStore({
  line: "connecting", // or "live", or "reconnecting"
  info: null,
  status: null,
  peers: null,
  jobs: null,
  rates: Object.fromEntries(SERIES.map((name) => [name, []])),
});

let source = null;
let pause = FIRST_PAUSE;
let retry = 0;
let watchdog = 0;
let hiding = 0;

export const useFeed = () => useStore(store);

export function listen() {
  connect();
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(hangUp, HIDDEN);
    else if (!source) connect();
  });
}

function connect() {
  hangUp();
  const mine = new EventSource("/api/events");
  source = mine;
  source.onopen = () => {
    pause = FIRST_PAUSE;
    store.set({ line: "live" });
    getJson("/api/info").then(
      (info) => store.set({ info }),
      () => mine === source && lost(), // a later connection may live
    );
    heard();
  };
  source.onerror = lost;
  for (const name of ["status", "peers", "jobs"]) {
    source.addEventListener(name, (event) => {
      store.set({ [name]: JSON.parse(event.data) });
      heard();
    });
  }
  source.addEventListener("rates", (event) => {
    store.set({ rates: extended(store.get().rates, JSON.parse(event.data)) });
    heard();
  });
  heard();
}

function hangUp() {
  clearTimeout(retry);
  clearTimeout(watchdog);
  source?.close();
  source = null;
}

/** Try again, after ever longer pauses: a browser gives up for good after an HTTP error. */
function lost() {
  hangUp();
  store.set({ line: "reconnecting" });
  retry = setTimeout(connect, pause * (0.75 + Math.random() / 2));
  pause = Math.min(2 * pause, LONGEST_PAUSE);
}

function heard() {
  clearTimeout(watchdog);
  watchdog = setTimeout(lost, QUIET);
}

function extended(rates, now) {
  const last = rates.t.at(-1) ?? 0;
  if (now.t <= last) return rates; // the same moment again, after connecting anew
  const gap = rates.t.length && now.t - last > 10 ? 1 : 0; // a hole is drawn as one
  return Object.fromEntries(
    SERIES.map((name) => {
      const hole = gap ? [name === "t" ? last + 1 : null] : [];
      return [name, [...rates[name], ...hole, now[name]].slice(-KEPT)];
    }),
  );
}
