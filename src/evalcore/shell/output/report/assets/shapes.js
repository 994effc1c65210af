// What the documents of a run look like: distributions of scores, agreement of repeats, calibration.

import { copyRecipe, el, svg } from "./dom.js";
import { count, interval, number, percent } from "./format.js";
import { at, axis, makeScale, tidy } from "./charts.js";
import { aliasOf, metricName } from "./tree.js";

const TALL = 90;

/** Bars of counts: between edges, or one for each value. Each bar says its count. */
function drawBars({ counts, values, edges }, label) {
  const most = Math.max(...counts, 1);
  const width = 1 / counts.length;
  const name = (nth) => (values ? tidy(values[nth], 3) : `${tidy(edges[nth], 3)} to ${tidy(edges[nth + 1], 3)}`);
  const bars = counts.map((many, nth) => {
    const height = many ? Math.max(1, (many / most) * TALL) : 0;
    return svg("rect.bar", { x: at(nth * width + 0.05 * width), width: at(0.9 * width), y: TALL - height, height }, svg("title", `${name(nth)}: ${count(many)}`));
  });
  const base = svg("line.base", { x1: 0, x2: "100%", y1: TALL, y2: TALL });
  const said = counts.map((many, nth) => `${name(nth)}: ${many}`).join(", ");
  const texts = values
    ? values.map((value, nth) => svg("text", { x: at((nth + 0.5) * width), y: 13, "text-anchor": "middle" }, tidy(value, 3)))
    : [[edges[0], "0%", "start"], [edges.at(-1), "100%", "end"]].map(([value, x, anchor]) => svg("text", { x, y: 13, "text-anchor": anchor }, tidy(value, 3)));
  return [
    svg("svg.bars", { height: TALL + 1, role: "img", "aria-label": `${label}: ${said}` }, bars, base),
    svg("svg.axis", { height: 18, "aria-hidden": "true" }, texts),
  ];
}

function card(run, one, note, ...children) {
  const metric = one.metric ? el("span.quiet", ` ${metricName(one)}`) : null;
  return el("figure.card", el("figcaption", el("strong", aliasOf(run, one.task)), metric, el("small.quiet block", note)), children);
}

function drawShape(run, one) {
  const binary = one.values?.length === 2 && one.values[0] === 0 && one.values[1] === 1;
  const note = [`${count(one.n)} documents`, binary ? `${percent(one.counts[1] / one.n)} score 1` : null, one.beyond ? `${count(one.beyond)} not finite` : null, one.log ? "bars by logarithm" : null];
  return card(run, one, note.filter(Boolean).join(", "), drawBars(one, "documents by score"));
}

function drawStable(run, one) {
  const [least, most] = one.repeats;
  const note = `${percent(one.agree / one.documents)} of ${count(one.documents)} documents: all ${least === most ? most : `${least} to ${most}`} repeats score alike. Below, the mean score of a document's repeats.`;
  return card(run, one, note, one.means ? drawBars(one.means, "documents by mean of repeats") : null);
}

/** Confidence to the right, accuracy upwards; grey bars are what a calibrated model stays within. */
function drawCurve(run, one) {
  const size = 180;
  const y = (value) => ((1 - value) * size).toFixed(2);
  const inside = [svg("line.against", { x1: 0, x2: "100%", y1: size, y2: 0 })];
  const most = Math.max(...one.bins.map((bin) => bin.count));
  for (const bin of one.bins) {
    const x = at(bin.confidence);
    const out = bin.accuracy < bin.low || bin.accuracy > bin.high;
    const said = `confidence ${percent(bin.confidence)}, accuracy ${percent(bin.accuracy)}, ${count(bin.count)} documents; calibrated: ${percent(bin.low)} to ${percent(bin.high)}`;
    inside.push(
      svg("line.consistent", { x1: x, x2: x, y1: y(bin.low), y2: y(bin.high) }),
      svg("circle", { class: out ? "point out" : "point", cx: x, cy: y(bin.accuracy), r: (2.5 + 3.5 * Math.sqrt(bin.count / most)).toFixed(1) }, svg("title", said)),
    );
  }
  const rows = one.bins.map((bin) => `${percent(bin.confidence)} sure, ${percent(bin.accuracy)} right of ${bin.count}`).join("; ");
  const known = one.reference === null ? "" : `; a calibrated model would get about ${number(one.reference)}`;
  const note = `${count(one.n)} documents, calibration error ${number(one.value)} (${interval(one.ci)})${known}`;
  return card(run, one, [note, " ", copyRecipe(one.recipe)], svg("svg.curve", { height: size, role: "img", "aria-label": `accuracy by confidence: ${rows}` }, inside), axis(makeScale([0, 1], true)));
}

const KINDS = [
  ["shapes", "Scores", "How many documents have which score.", drawShape],
  ["stability", "Repeats", "Whether a model that is asked again scores the same.", drawStable],
  ["calibration", "Calibration", "How often the choice was right (upwards), by the model's confidence in it (to the right). A calibrated model stays within the grey bars; hollow points do not.", drawCurve],
];

/** The sections of a run's distributions; many charts are folded until someone opens them. */
export function drawShapes(run, section) {
  return KINDS.map(([kind, title, note, draw]) => {
    const drawn = (run[kind] ?? []).map((one) => draw(run, one));
    if (!drawn.length) return null;
    const cards = el("div.cards", drawn);
    return section(title, note, drawn.length > 24 ? el("details", el("summary", `${drawn.length} charts`), cards) : cards);
  });
}
