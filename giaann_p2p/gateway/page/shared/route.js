// Which view is shown, from the hash: `#/columns/honey` is the view `columns` of `honey`. Each step
// is an entry of the browser's history, so "back" works.
import { useEffect, useState } from "./libraries.js";

export const VIEWS = ["swarm", "ask", "columns", "learning"];

function route() {
  const [view, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return { view: VIEWS.includes(view) ? view : VIEWS[0], of: decoded(rest.join("/")) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody typed a lone % into the address
  }
}

export const hrefOf = (view, of = "") => `#/${view}${of ? `/${encodeURIComponent(of)}` : ""}`;

export function go(view, of = "") {
  location.hash = hrefOf(view, of);
}

export function useRoute() {
  const [now, setNow] = useState(route);
  useEffect(() => {
    const note = () => setNow(route());
    addEventListener("hashchange", note);
    return () => removeEventListener("hashchange", note);
  }, []);
  return now;
}
