// How sure a token is, in words: its probability or, from a peer of an earlier release, its score.
import { many, percent } from "../shared/format.js";

export function certaintyOf(token) {
  const from = token.candidates > 0 ? `of ${many(token.candidates, "candidate")}` : "without candidates";
  if (token.probability !== undefined) return `${percent(token.probability)}, ${from}`;
  return `score ${token.score.toFixed(2)}, ${from}`;
}
