// The vendored libraries, in one place: no other module knows where they are.
export {
  html,
  render,
  useEffect,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from "../vendor/htm/standalone.module.js";

/** uPlot is a plain script, loaded by index.html before the modules run. */
export const UPlot = globalThis.uPlot;
