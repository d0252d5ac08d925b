// State that outlives a view: a value that is replaced, never changed, and those who watch it.
import { useEffect, useReducer } from "./libraries.js";

export function createStore(initial) {
  let value = initial;
  const watchers = new Set();
  return {
    get: () => value,
    /** Replaces some fields. */
    set(changes) {
      value = { ...value, ...changes };
      for (const watch of watchers) watch();
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

/** Returns a store's value, and draws the component again whenever it changes. */
export function useStore(store) {
  const [, draw] = useReducer((count) => count + 1, 0);
  const shown = store.get();
  useEffect(() => {
    if (store.get() !== shown) draw(); // it changed between drawing and watching
    return store.watch(draw);
  }, [store]);
  return shown;
}
