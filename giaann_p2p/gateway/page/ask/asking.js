// The prompt that is being answered: it goes on while another view is shown.
import { post } from "../shared/api.js";
import { createStore, useStore } from "../shared/store.js";

const store = createStore({
  state: "idle", // or "asking", "done", "stopped", "failed"
  prompt: "",
  begun: null,
  tokens: [],
  ended: null,
  error: "",
  chosen: null, // the index of the token that is looked at
});

let going = null;

export const useAsking = () => useStore(store);

export const choose = (chosen) => store.set({ chosen });

export function stop() {
  going?.abort();
}

export async function ask(prompt, options) {
  stop();
  const mine = (going = new AbortController());
  const set = (changes) => going === mine && store.set(changes); // a newer prompt has taken over
  store.set({ state: "asking", prompt, begun: null, tokens: [], ended: null, error: "", chosen: null });
  try {
    for await (const { name, data } of post("/api/prompt", { prompt, ...options }, mine.signal)) {
      if (name === "begun") set({ begun: data });
      else if (name === "token") set({ tokens: [...store.get().tokens, data] });
      else if (name === "done") set({ state: "done", ended: data });
    }
  } catch (error) {
    if (error.name === "AbortError") set({ state: "stopped" });
    else set({ state: "failed", error: error.message });
  }
}
