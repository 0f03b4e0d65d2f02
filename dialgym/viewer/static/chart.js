// A chart of lines over one axis of numbers, as SVG.

import { h, number, svg } from "./dom.js";

const LEFT = 52, RIGHT = 12, TOP = 14, BOTTOM = 34;

export function ticks(low, high, most = 6) {
  const span = high - low || 1;
  const raw = span / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((size) => span / size <= most) || 10 * power;
  const found = [];
  const start = Math.ceil(low / step) * step;
  for (let k = 0; k <= most && start + k * step <= high + step / 1e6; k++) found.push(Number((start + k * step).toPrecision(12)));
  return found;
}

function brief(value) {
  if (Math.abs(value) >= 1e6) return `${number(value / 1e6, 1).replace(".0", "")}M`;
  return Math.abs(value) >= 1e4 ? `${number(value / 1e3, 1).replace(".0", "")}k` : number(value, 2);
}

// lines: {name, xs, ys, kind}; levels: {name: y}
export function chart({ lines, levels = {}, label, about }) {
  const WIDTH = Math.min(1000, Math.max(300, document.documentElement.clientWidth - 70)), HEIGHT = WIDTH < 600 ? 230 : 300;
  const drawn = lines.filter((line) => line.xs.length);
  if (!drawn.length) return h("p.empty", null, "No points yet.");
  const xs = drawn.flatMap((line) => line.xs), ys = [...drawn.flatMap((line) => line.ys), ...Object.values(levels)].filter((y) => y !== null);
  let [low, high] = [Math.min(...ys), Math.max(...ys)];
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  low -= room; high += room;
  const first = Math.min(0, ...xs), last = Math.max(...xs) || 1;
  const x = (value) => LEFT + ((value - first) / (last - first || 1)) * (WIDTH - LEFT - RIGHT);
  const y = (value) => TOP + (1 - (value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const grid = ticks(low, high).map((value) => [
    svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: "grid" }),
    svg("text", { x: LEFT - 8, y: y(value) + 4, class: "tick end" }, brief(value)),
  ]);
  const below = ticks(first, last).map((value) => svg("text", { x: x(value), y: HEIGHT - BOTTOM + 18, class: "tick middle" }, brief(value)));
  const marks = Object.entries(levels).map(([name, value]) => [
    svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: "level" }),
    svg("text", { x: WIDTH - RIGHT, y: y(value) - 5, class: "tick end" }, name),
  ]);
  const paths = drawn.map((line) => {
    const points = line.xs.map((value, i) => (line.ys[i] === null ? null : `${x(value).toFixed(1)},${y(line.ys[i]).toFixed(1)}`)).filter(Boolean);
    if (points.length === 1 || line.kind === "dots") return points.map((point) => svg("circle", { cx: point.split(",")[0], cy: point.split(",")[1], r: 4, class: `dot ${line.kind}` }));
    return svg("polyline", { points: points.join(" "), class: `path ${line.kind}` });
  });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": about }, grid.flat(), marks.flat(), below, paths.flat(),
    svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 2, class: "tick end" }, label));
  const legend = h("div.legend", null, drawn.map((line) => h("span", null, h(`i.${line.kind}`), line.name)));
  return h("figure.chart", null, picture, legend);
}
