// Charts of our own. A horizontal place is a share of the width, so that a chart needs no measuring and no redrawing.

import { el, svg } from "./dom.js";
import { number } from "./format.js";

export const at = (share) => `${(100 * Math.min(1, Math.max(0, share))).toFixed(3)}%`;

/** Round steps that divide a span into about so many parts. */
function ticksOf(low, high, wanted = 5) {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const out = [];
  for (let i = first; i * step <= high + step * 1e-9; i++) out.push(i * step);
  return out;
}

/** A scale from values to shares of the width: 0 to 1 as it is, others by what they hold, long positive ones by logarithm. */
export function makeScale(values, share = false) {
  const known = values.filter((one) => Number.isFinite(one));
  if (share) return { share: (value) => value, ticks: [0, 0.25, 0.5, 0.75, 1], low: 0, high: 1, log: false };
  let low = Math.min(...known);
  let high = Math.max(...known);
  const log = low > 0 && high > Math.max(1, 10 * low);
  if (log) {
    const [a, b] = [Math.log10(low) - 0.05, Math.log10(high) + 0.05];
    const powers = ticksOf(Math.ceil(a), Math.floor(b), 6).filter((one) => Number.isInteger(one));
    const ticks = powers.length > 1 ? powers.map((one) => 10 ** one) : ticksOf(low, high, 4).filter((one) => one > 0);
    return { share: (value) => (Math.log10(Math.max(value, 1e-300)) - a) / (b - a), ticks, low: 10 ** a, high: 10 ** b, log };
  }
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  [low, high] = [low >= 0 && low < room * 2 ? 0 : low - room, high + room];
  return { share: (value) => (value - low) / (high - low), ticks: ticksOf(low, high), low, high, log };
}

/** A value in few digits, as a tick has it. */
export const tidy = (value, digits = 6) => String(Number(value.toPrecision(digits))).replace("-", "−");

/** The ticks of a scale, as text below a chart. */
export function axis(scale) {
  const text = (tick) => {
    const share = scale.share(tick);
    const anchor = share < 0.03 ? "start" : share > 0.97 ? "end" : "middle";
    return svg("text", { x: at(share), y: 13, "text-anchor": anchor }, tidy(tick));
  };
  return svg("svg.axis", { height: 18, "aria-hidden": "true" }, scale.ticks.map(text));
}

function grid(scale, height) {
  return scale.ticks.map((tick) => {
    const x = at(scale.share(tick));
    return svg("line.grid", { x1: x, x2: x, y1: 0, y2: height });
  });
}

function ending(scale, value, side, middle) {
  const share = scale.share(value);
  if (share >= -0.001 && share <= 1.001) return [];
  return [svg("text.beyond", { x: side < 0 ? "0%" : "100%", dx: 3 * side, y: middle + 4, "text-anchor": side < 0 ? "end" : "start" }, side < 0 ? "◂" : "▸")];
}

/** A value with its interval on a scale; `line` is a value to see it against, `mark` what something known would get. */
export function intervalPlot(scale, { value, ci, group, line, mark, label }) {
  const height = 22;
  const middle = height / 2;
  const vertical = (name, where, title) =>
    svg("line", { class: name, x1: at(scale.share(where)), x2: at(scale.share(where)), y1: 0, y2: height }, svg("title", title));
  const inside = [grid(scale, height)];
  if (Number.isFinite(line)) inside.push(vertical("against", line, `group: ${number(line)}`));
  if (mark) inside.push(vertical("known", mark.value, `${mark.of}: ${number(mark.value)}`));
  if (ci) {
    const [low, high] = [Number.isFinite(ci[0]) ? ci[0] : scale.low, Number.isFinite(ci[1]) ? ci[1] : scale.high];
    inside.push(
      svg("line.interval", { x1: at(scale.share(low)), x2: at(scale.share(high)), y1: middle, y2: middle }),
      ending(scale, ci[0] ?? -Infinity, -1, middle),
      ending(scale, ci[1] ?? Infinity, 1, middle),
    );
  }
  if (Number.isFinite(value)) {
    const x = at(scale.share(value));
    const point = group
      ? svg("svg", { x, y: middle, overflow: "visible" }, svg("path.point", { d: "M-6 0L0-6L6 0L0 6Z" }))
      : svg("circle.point", { cx: x, cy: middle, r: 4 });
    inside.push(point);
  }
  return svg("svg.plot", { height, ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }) }, inside);
}

/** Parts of a whole as a bar; a part that is not 0 is at least a hair wide. */
export function stackedBar(parts, label) {
  const total = parts.reduce((sum, part) => sum + part.count, 0) || 1;
  let from = 0;
  const pieces = parts
    .filter((part) => part.count)
    .map((part) => {
      const x = from;
      from += part.count / total;
      return svg("rect", { class: `part ${part.kind}`, x: at(x), y: 2, height: 14, "--width": at(part.count / total) }, svg("title", `${part.name}: ${part.count}`));
    });
  return svg("svg.plot", { height: 18, role: "img", "aria-label": label }, pieces);
}

/** What a row is called, as deep as it stands in its tree. */
export function rowLabel(name, title, depth = 0, kind = "label") {
  return el("span", { class: kind, title, "--depth": depth }, name);
}

/** Rows on one scale, over its ticks. */
export function forest(scale, caption, rows) {
  return el("figure", el("figcaption", caption), rows, el("div.row", el("span"), axis(scale), el("span")));
}
