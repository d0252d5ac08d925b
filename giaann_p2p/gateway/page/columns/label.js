// A label of the picture that fits: SVG does not shorten texts by itself.
const SIZE = 13; // px, as in columns.css
const WEIGHT = 650; // the noun's own: other words are narrower
let pen = null;

function widthOf(text) {
  if (!pen) {
    pen = document.createElement("canvas").getContext("2d");
    pen.font = `${WEIGHT} ${SIZE}px ${getComputedStyle(document.body).fontFamily}`;
  }
  return pen.measureText(text).width;
}

/** Returns a text, cut at its end to at most `width` pixels. */
export function shortened(text, width) {
  if (widthOf(text) <= width) return text;
  const letters = [...text]; // whole ones, not halves of pairs
  let fits = 0;
  let over = letters.length;
  while (over - fits > 1) {
    const middle = (fits + over) >> 1;
    if (widthOf(`${letters.slice(0, middle).join("")}…`) <= width) fits = middle;
    else over = middle;
  }
  return `${letters.slice(0, fits).join("")}…`;
}
