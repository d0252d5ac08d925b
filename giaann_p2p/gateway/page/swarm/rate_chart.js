// One rate over the last minutes: its value now, and a line drawn by uPlot.
import { html, UPlot, useEffect, useRef } from "../shared/libraries.js";
import { rate } from "../shared/format.js";
import { useDark } from "../shared/theme.js";

const HEIGHT = 92;
const DIGIT = 6.5; // px of a digit of the axis, about
const LEAST_SPAN = 60; // seconds that the axis shows at least
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

export function RateChart({ name, title, note, times, values }) {
  const place = useRef(null);
  const chart = useRef(null);
  const dark = useDark();
  const newest = values.at(-1) ?? 0;
  const peak = Math.max(0, ...values);

  useEffect(() => {
    const node = place.current;
    const plot = (chart.current = new UPlot(options(node), [times, values], node));
    const watch = new ResizeObserver(() => plot.setSize({ width: node.clientWidth, height: HEIGHT }));
    watch.observe(node);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [dark]);
  useEffect(() => chart.current?.setData([times, values]), [times, values]);

  return html`<figure class="card rate ${name}">
    <figcaption>
      <span>${title}</span>
      <strong>${rate(newest)}</strong>
      <span class="muted note">${note}</span>
    </figcaption>
    <div
      class="plot"
      ref=${place}
      role="img"
      aria-label=${`${title}: ${rate(newest)} now, at most ${rate(peak)} in the last minutes`}
    ></div>
  </figure>`;
}

function options(node) {
  const { color, borderTopColor: grid, outlineColor: text } = getComputedStyle(node);
  const font = `11px ${getComputedStyle(node).fontFamily}`;
  return {
    width: node.clientWidth,
    height: HEIGHT,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: true, range: (_, least, most) => [Math.min(least, most - LEAST_SPAN), most] },
      y: { range: (_, least, most) => [0, Math.max(4, (most ?? 0) * 1.15)] },
    },
    axes: [
      {
        stroke: text,
        font,
        size: 22,
        space: 70,
        grid: { show: false },
        ticks: { show: false },
        values: (_, times) => times.map((t) => clock.format(1000 * t)),
        incrs: [60, 120, 300],
      },
      {
        stroke: text,
        font,
        size: (_, marks) => 12 + DIGIT * Math.max(1, ...(marks ?? []).map((mark) => mark.length)),
        space: 26,
        grid: { stroke: grid, width: 1 },
        ticks: { show: false },
        values: (_, marks) => marks.map(rate),
      },
    ],
    series: [
      {},
      {
        stroke: color,
        width: 1.5,
        fill: color.replace(/^rgb\((.+)\)$/, "rgba($1, 0.12)"),
        points: { show: false },
      },
    ],
  };
}
