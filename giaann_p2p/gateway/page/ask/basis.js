// The evidence for a token, from text learned word for word to a mere guess. Each has a colour and
// a line of its own, in ask.css.
const SUBWORDS = {
  recall: ["recall", "learned like this", "All its own rows agree: it was learned like this."],
  "own rows": ["own", "in its own column", "The row of the last token in its own column."],
  "any column": ["any", "in any column", "The row of the last token in any column."],
  "no evidence": ["guess", "a guess", "No evidence but how frequent tokens are."],
};
const WORDS = {
  exact: ["recall", "word for word", "Learned word for word: each segment was hit by the token before."],
  seq: ["own", "in order, with gaps", "The same words in the same order, with gaps."],
  none: ["any", "in any order", "Words that were seen together, in any order."],
  biased: ["any", "a wrong order counts less", "Words that were seen together; a wrong order counts less."],
  "own rows": ["own", "followed in its column", "What followed a word of the prompt in its own column."],
  "any column": ["any", "followed in other columns", "What followed a word of the prompt in the most frequent columns."],
  "no evidence": ["guess", "a guess", "No evidence but how frequent nouns are."],
};

const basesOf = (profile) => (profile === "subwords" ? SUBWORDS : WORDS);

/** Returns the bases of a profile that the legend shows, with a few words on each. */
export const legendOf = (profile) =>
  Object.entries(basesOf(profile))
    .filter(([name]) => name !== "biased")
    .map(([name, [kind, gist]]) => ({ name, kind, gist }));

export function basisOf(token, profile) {
  const [kind, gist, sentence] = basesOf(profile)[token.tier] ?? ["guess", token.tier, ""];
  return { name: token.tier, kind, gist, sentence };
}
