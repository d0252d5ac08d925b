// The texts that this page teaches, one after the other: they go on while another view is shown.
import { postText } from "../shared/api.js";
import { createStore, useStore } from "../shared/store.js";

const store = createStore({ lessons: [] }); // the newest first
let learning = false;
let number = 0;

export const useTeaching = () => useStore(store).lessons;

export function teach(name, text) {
  number += 1;
  const lesson = { id: number, name, text, state: "waiting", share: 0, rate: 0, done: 0, of: null };
  store.set({ lessons: [lesson, ...store.get().lessons] });
  if (!learning) learnAll();
}

async function learnAll() {
  learning = true;
  for (let lesson = first(); lesson; lesson = first()) await learn(lesson);
  learning = false;
}

const first = () => store.get().lessons.findLast((one) => one.state === "waiting");

async function learn({ id, name, text }) {
  const set = (changes) =>
    store.set({
      lessons: store.get().lessons.map((one) => (one.id === id ? { ...one, ...changes } : one)),
    });
  set({ state: "learning", text: "" }); // it need not be kept
  const path = `/api/train?${new URLSearchParams({ name })}`;
  try {
    for await (const event of postText(path, text)) {
      if (event.name === "progress") set(event.data);
      else set(ended(event.data));
    }
  } catch (error) {
    set({ state: "failed", error: error.message });
  }
}

/** How a lesson has ended: with a part of its text if it was interrupted, or gave up some of it. */
function ended(report) {
  const partly = report.interrupted || report.complete === false;
  return partly ? { state: "unfinished", report } : { state: "learned", share: 1, report };
}
