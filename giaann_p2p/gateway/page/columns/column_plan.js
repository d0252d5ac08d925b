// Where everything of a column's picture goes: the column's words stand in a column of their own at
// the left, the columns that they lead to at the right, and nothing overlaps, however long a word.
const ROW = 30; // px between two words
const TOP = 34; // px above the first, for the titles
const TURNS = 6; // sweeps that put linked things at the same height

/** Returns the words, the other columns and the links of a picture, with their places. */
export function planOf(column, width, mostWords, mostTargets) {
  const words = column.words.slice(0, mostWords).map((word) => ({ ...word, key: word.feature ?? "" }));
  const links = strongest(words, column.concept, mostTargets);
  const targets = [...new Set(links.map((link) => link.target))].map((name) => ({ name }));
  const byName = new Map(targets.map((target) => [target.name, target]));
  const byKey = new Map(words.map((word) => [word.key, word]));
  place(words);
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (const target of targets) {
      target.pull = mean(links.filter((l) => l.target === target.name), (l) => byKey.get(l.word).y);
    }
    targets.sort((one, other) => one.pull - other.pull || one.name.localeCompare(other.name));
    place(targets);
  }
  center(words, targets);
  const left = Math.round(Math.min(190, width * 0.34));
  const right = width - Math.round(Math.min(200, width * 0.36));
  for (const target of targets) {
    target.strength = sum(links.filter((link) => link.target === target.name));
  }
  const most = Math.max(...links.map((link) => link.strength), 1e-9);
  for (const link of links) {
    link.from = byKey.get(link.word).y;
    link.to = byName.get(link.target).y;
    link.share = link.strength / most;
  }
  const height = TOP + ROW * Math.max(words.length, targets.length, 1);
  return { words, targets, links, left, right, height };
}

/** Returns the strongest links from words to other columns, to at most so many columns. */
function strongest(words, concept, mostTargets) {
  const byPair = new Map();
  for (const word of words) {
    for (const { concept: target, strength } of word.leads) {
      if (target === concept) continue;
      const key = `${word.key}\n${target}`;
      const link = byPair.get(key) ?? { word: word.key, target, strength: 0 };
      link.strength += strength;
      byPair.set(key, link);
    }
  }
  const links = [...byPair.values()].sort((one, other) => other.strength - one.strength);
  const targets = new Set();
  return links.filter((link) => {
    if (!targets.has(link.target) && targets.size >= mostTargets) return false;
    targets.add(link.target);
    return true;
  });
}

function place(things) {
  things.forEach((thing, index) => {
    thing.y = TOP + ROW * (index + 0.5);
  });
}

function center(words, targets) {
  const [few, lots] = words.length < targets.length ? [words, targets] : [targets, words];
  const shift = (ROW * (lots.length - few.length)) / 2;
  for (const thing of few) thing.y += shift;
}

const sum = (links) => links.reduce((all, link) => all + link.strength, 0);

const mean = (links, of) => links.reduce((all, link) => all + of(link), 0) / (links.length || 1);
