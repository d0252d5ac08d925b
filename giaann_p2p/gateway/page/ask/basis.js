// What spoke for a token, from what was learned word for word to a mere guess. Each has a colour and
// a line of its own, in ask.css.
const SUBWORDS = {
  recall: ["recall", "All its own rows agree: it was learned like this."],
  "own rows": ["own", "The row of the last token in its own column."],
  "any column": ["any", "The row of the last token in any column."],
  "no evidence": ["guess", "Nothing but how frequent tokens are."],
};
const WORDS = {
  exact: ["recall", "Learned word for word: each segment was hit by the token before."],
  seq: ["own", "The same words in the same order, with gaps."],
  none: ["any", "Words that were seen together, in any order."],
  biased: ["any", "Words that were seen together; a wrong order counts less."],
};

const basesOf = (profile) => (profile === "subwords" ? SUBWORDS : WORDS);

/** Returns the bases of a profile that the legend shows, as `[name, class, sentence]`. */
export const legendOf = (profile) =>
  Object.entries(basesOf(profile))
    .filter(([name]) => name !== "biased")
    .map(([name, [kind, sentence]]) => ({ name, kind, sentence }));

export function basisOf(token) {
  const [kind, sentence] = SUBWORDS[token.tier] ?? WORDS[token.tier] ?? ["guess", ""];
  return { name: token.tier, kind, sentence };
}
