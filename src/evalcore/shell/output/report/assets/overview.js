// What a run came to.

import { el, section } from "./dom.js";
import { count, interval, level, number } from "./format.js";
import { findRun, head } from "./data.js";
import { runTabs } from "./route.js";
import { forest, intervalPlot, makeScale, rowLabel, stackedBar } from "./charts.js";
import { aliasOf, arrow, drawTree, metricName } from "./tree.js";
import { drawShapes } from "./shapes.js";
import { drawReproduce } from "./reproduce.js";

// --- forest -----------------------------------------------------------------------------------------------------

/** Every number of a run with its entry, and the value of the group that it is nearest below. */
function listPlotted(run) {
  const above = [];
  return run.tree.flatMap((entry) => {
    above.length = entry.depth;
    const line = (one) => above.findLast((group) => group?.has(metricName(one)))?.get(metricName(one));
    const out = entry.numbers.map((one) => ({ entry, one, line: line(one) }));
    above[entry.depth] = new Map(entry.numbers.map((one) => [metricName(one), one.value]));
    return out.filter(({ one }) => Number.isFinite(one.value));
  });
}

/** A value far from the others does not decide the scale, nor does an interval that is far longer than they are. */
function chooseScale(rows) {
  const values = rows.map(({ one }) => one.value);
  const span = Math.max(...values) - Math.min(...values) || Math.abs(values[0]) || 1;
  const ends = rows.flatMap(({ one }) => one.ci ?? []).filter((end) => Number.isFinite(end) && end > Math.min(...values) - 3 * span && end < Math.max(...values) + 3 * span);
  return makeScale([...values, ...ends]);
}

function drawPanel(title, rows) {
  const scale = chooseScale(rows);
  const least = Math.min(...rows.map(({ entry }) => entry.depth));
  const row = ({ entry, one, line }) => {
    const name = entry.alias ?? entry.name;
    const said = `${name}, ${metricName(one)}: ${number(one.value)}, interval ${interval(one.ci)}, n ${count(one.n)}`;
    return el(
      "div",
      { class: entry.group ? "row group" : "row" },
      rowLabel(name, entry.name, entry.depth - least),
      intervalPlot(scale, { ...one, group: entry.group, line, mark: one.reference, label: said }),
      el("span.number", number(one.value)),
    );
  };
  return forest(scale, [arrow(rows[0].one), el("strong", title), scale.log && el("span.quiet", " logarithmic")], rows.map(row));
}

function drawForest(run) {
  const panels = Map.groupBy(listPlotted(run), ({ one }) => metricName(one));
  const drawn = [...panels].map(([title, rows]) => drawPanel(title, rows));
  return drawn.length ? section("Intervals", "A dot is a task, a diamond a group, the dashed line the group that a task is in.", el("div.panels", drawn)) : null;
}

// --- outcomes ---------------------------------------------------------------------------------------------------

const OUTCOMES = [["scored", "scored"], ["unscorable", "unscorable"], ["failed", "failed"], ["not_emitted", "without a metric of their own"], ["not_run", "not run"]];

/** Bars of what is easily overlooked: documents that have a score, of a reply that was cut off or a filter's fallback. */
function drawDoubts(run, name, found) {
  const ends = run.endings?.[name];
  const all = found.scored + found.unscorable + found.failed;
  const fell = Object.entries(run.fell_back?.[name] ?? {}).map(([filter, many]) => ["fell", many, all, `documents: filter ${filter} fell back, as it found nothing`]);
  const cut = ends ? [["cut", ends.length ?? 0, ends.replies, "replies were cut off by max_gen_toks"]] : [];
  if (ends?.content_filter) cut.push(["cut", ends.content_filter, ends.replies, "replies were stopped by a content filter"]);
  if (ends?.empty) cut.push(["cut", ends.empty, ends.replies, "replies are empty"]);
  return [...cut, ...fell].map(([kind, many, of, what]) => {
    const words = `${count(many)} of ${count(of)} ${what}`;
    return [stackedBar([{ kind, name: what, count: many }, { kind: "rest", name: "others", count: of - many }], words), el("div.words quiet", words)];
  });
}

function drawOutcome(run, [name, found]) {
  const parts = OUTCOMES.map(([kind, text]) => ({ kind, name: text, count: found[kind] ?? 0 }));
  const words = parts.filter((part) => part.count || part.kind !== "not_emitted").map((part) => `${count(part.count)} ${part.name}`).join(", ");
  const reasons = ["failed", "unscorable"].flatMap((kind) => (found[`${kind}_reasons`] ?? []).map(([why, times]) => el("li", `${count(times)} ${kind}: ${why}`)));
  const doubts = drawDoubts(run, name, found).map((bar) => el("div.row outcome doubt", el("span"), bar));
  return [el("div.row outcome", rowLabel(aliasOf(run, name), name), stackedBar(parts, words), el("div.words", words, reasons.length ? el("ul", reasons) : null)), doubts];
}

function drawOutcomes(run) {
  const tasks = Object.entries(run.outcomes);
  if (!tasks.length) return null;
  return section("Documents", "What became of each task's documents. None is hidden: what has no score says why.", el("figure", el("figcaption", el("strong", "Outcomes")), tasks.map((one) => drawOutcome(run, one))));
}

// --- the run ----------------------------------------------------------------------------------------------------

function drawWarnings(run) {
  if (!run.warnings.length) return null;
  return el("details.warnings", { open: run.warnings.length < 6 }, el("summary", `${run.warnings.length} warning${run.warnings.length > 1 ? "s" : ""}`), el("ul", run.warnings.map((one) => el("li", one))));
}

/** What a run is, in a line. */
function drawLead(run) {
  const tasks = Object.values(run.outcomes);
  const sum = (kind) => tasks.reduce((total, one) => total + one[kind], 0);
  const [scored, lost] = [sum("scored"), sum("unscorable") + sum("failed")];
  const many = new Set(run.tree.filter((one) => !one.group).map((one) => one.name)).size;
  return el("p.lead", run.model && `${run.model} · `, `${count(many)} task${many === 1 ? "" : "s"} · `,
    tasks.length ? [`${count(scored + lost)} documents · `, lost ? el("strong", `${count(lost)} without a score`) : "all scored", " · "] : null,
    `${level(run.confidence)} intervals`);
}

function drawOverview(settings) {
  const run = findRun(settings.run);
  return [runTabs("Runs", head.runs, run, "overview", "run"), drawLead(run), drawWarnings(run), section("Numbers", "", drawTree(run)), drawForest(run), drawOutcomes(run), drawShapes(run, section), drawReproduce(run, section)];
}

export const overview = { name: "overview", title: head.runs.length > 1 ? "Each run" : "Overview", has: () => true, draw: drawOverview };
