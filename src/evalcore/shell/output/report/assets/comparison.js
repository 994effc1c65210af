// Several runs: every number beside that of a baseline, and what of the differences is more than luck.

import { copyRecipe, el, section, show, showLater, table } from "./dom.js";
import { count, interval, level, number } from "./format.js";
import { findRun, head, loadChunk } from "./data.js";
import { routeTo, runTabs } from "./route.js";
import { forest, intervalPlot, makeScale, rowLabel } from "./charts.js";
import { aliasOf, arrow, metricName, sign } from "./tree.js";

const FIRST = 50;
const compared = head.comparison;
const nameOf = (label) => `${label} ${findRun(label).name}`;

/** What a task is called in the runs that have it. */
const shortName = (task) => head.runs.map((run) => aliasOf(run, task)).find((name) => name !== task) ?? task;

/** A difference with its sign. */
function signed({ difference, points }) {
  return `${difference > 0 ? "+" : ""}${number(difference, points ? 1 : 4)}${points ? " points" : ""}`;
}

/** A line of a run against the baseline: run minus baseline, whichever was compared first, in points where they are shares. */
function turn(base, run, nth) {
  const pair = compared.pairs.find((one) => [one.a, one.b].includes(base) && [one.a, one.b].includes(run));
  const line = pair?.lines[nth];
  if (!line) return null;
  const way = pair.a === run ? 1 : -1;
  const unit = way * (line.points ? 100 : 1);
  const ends = line.ci_low === null ? null : [unit * line.ci_low, unit * line.ci_high].sort((a, b) => a - b);
  const difference = line.difference === null ? null : unit * line.difference;
  const won = way > 0 ? [line.better, line.worse] : [line.worse, line.better];
  return { ...line, difference, ci: ends, won, pair, swapped: way < 0, kind: judgeLine(line, difference) };
}

function judgeLine(line, difference) {
  if (!line.evidence) return "none";
  if (line.higher_is_better === null) return "moved";
  return difference > 0 === line.higher_is_better ? "better" : "worse";
}

const SIGNS = { better: ["▲", "better"], worse: ["▼", "worse"], moved: ["◆", "different, direction unknown"], none: ["?", "no evidence"] };

// --- matrix -----------------------------------------------------------------------------------------------------

/** How strong a difference is among those of its metric that are no luck. */
function findStrongest(base) {
  const most = new Map();
  compared.numbers.forEach((one, nth) => {
    for (const run of head.runs) {
      const line = run.label === base ? null : turn(base, run.label, nth);
      if (line?.evidence) most.set(metricName(one), Math.max(most.get(metricName(one)) ?? 0, Math.abs(line.difference)));
    }
  });
  return most;
}

function drawCell(base, run, one, nth, strongest) {
  const value = el("span", number(one.values[head.runs.indexOf(run)]));
  if (run.label === base) return el("td.number heat", { "data-run": base }, value);
  const line = turn(base, run.label, nth);
  if (!line || line.difference === null) return el("td.number heat none", { "data-run": run.label }, value, el("small", line?.reason ?? "not compared"));
  const heat = line.evidence && `${8 + 20 * Math.min(1, Math.abs(line.difference) / strongest.get(metricName(one)))}%`;
  return el("td", { class: `number heat ${line.kind}`, title: line.sentence, "data-run": run.label, "--heat": heat }, value, el("small", sign("sign", ...SIGNS[line.kind]), ` ${signed(line)}`));
}

function drawMatrix(base) {
  const strongest = findStrongest(base);
  const { numbers, rows } = compared;
  const taskAt = (at) => rows[at] && `${rows[at].depth} ${numbers[rows[at].number].task}`;
  const row = ({ depth, number: nth }, at) => {
    const one = numbers[nth];
    let span = 1;
    while (taskAt(at + span) === taskAt(at)) span++;
    const name = taskAt(at - 1) === taskAt(at) ? null : el("th", { scope: "row", rowspan: span, class: one.group ? "name group" : "name", title: one.task, "--depth": depth }, shortName(one.task));
    return el("tr", name, el("td.metric", arrow(one), metricName(one)), head.runs.map((run) => drawCell(base, run, one, nth, strongest)));
  };
  const heads = ["Task", "Metric", ...head.runs.map((run) => `${run.label} ${run.name}${run.label === base ? " (baseline)" : ""}`)];
  const caption = `Each run's own number, and its paired difference to ${base}: ▲ better, ▼ worse, ◆ different where no direction is known, ? and grey: no evidence.`;
  return table("matrix", "Runs and tasks", caption, heads, 2, el("tbody", rows.map(row)));
}

// --- differences ------------------------------------------------------------------------------------------------

function drawDifference(scale, { one, line, depth }) {
  const told = `${one.task}, ${metricName(one)}: ${signed(line)}, interval ${interval(line.ci, line.points ? 1 : 4)}`;
  return el(
    "div",
    { class: `row difference ${line.kind}` },
    rowLabel(shortName(one.task), one.task, depth, one.group ? "label strong" : "label"),
    intervalPlot(scale, { value: line.difference, ci: line.ci, group: one.group, line: 0, label: told }),
    el("p.sentence", line.sentence),
    copyRecipe(line.recipe),
  );
}

/** Which end of a scale is whose. */
function tellSides(base, run, one) {
  const is = one.higher == null ? "higher" : "better";
  const [left, right] = one.higher === false ? [run, base] : [base, run];
  return `◂ ${left} ${is} · ${right} ${is} ▸`;
}

function drawForests(base, run) {
  const places = new Map(compared.rows.map((row) => [row.number, row.depth]));
  const rows = [...places].map(([nth, depth]) => ({ one: compared.numbers[nth], line: turn(base, run, nth), depth })).filter(({ line }) => line);
  const panels = [...Map.groupBy(rows, ({ one }) => metricName(one))].map(([title, rows]) => {
    const values = rows.flatMap(({ line }) => [line.difference, ...(line.ci ?? [])]).filter(Number.isFinite);
    const scale = makeScale(values.length ? [0, ...values] : [-1, 0, 1]);
    const [{ one, line }] = rows;
    const caption = [arrow(one), el("strong", title), el("span.quiet", line.points ? " in points · " : " · ", tellSides(base, run, one))];
    return forest(scale, caption, rows.map((row) => drawDifference(scale, row)));
  });
  return panels.length ? el("div.differences", panels) : el("p.quiet", "These two runs share no number.");
}

// --- flips ------------------------------------------------------------------------------------------------------

function drawKeys(title, keys, task, documents, holder) {
  const item = (key) => {
    const [id, text] = documents[task]?.[key] ?? [key, ""];
    const name = head.samples?.count ? el("a", { href: routeTo("samples", { task, doc: key, run: holder }) }, id) : id;
    return el("li", name, text ? ` ${text}` : null);
  };
  const list = el("ul", keys.slice(0, FIRST).map(item));
  const more = el("button", { onclick: () => (show(list, keys.map(item)), more.remove()) }, `show all ${count(keys.length)}`);
  return el("div", el("h4", `${title}: ${count(keys.length)}`), list, keys.length > FIRST ? more : null);
}

function drawFlip(base, run, nth) {
  const one = compared.numbers[nth];
  const line = turn(base, run, nth);
  if (!line?.won[0] && !line?.won[1]) return null;
  const does = one.higher === null ? "is higher" : "does better";
  const body = el("div.flips");
  const fold = el("details", { ontoggle: open }, el("summary", `${shortName(one.task)}, ${metricName(one)}: ${run} ${does} on ${count(line.won[0])}, ${base} on ${count(line.won[1])}`), body);
  async function open() {
    if (!fold.open || body.firstChild) return;
    await showLater(body, async () => {
      const { flips, documents } = await loadChunk(line.pair.flips);
      const [won, lost] = line.swapped ? flips[nth].toReversed() : flips[nth];
      show(body, drawKeys(`${run} ${does}`, won, one.task, documents, line.pair.a), drawKeys(`${base} ${does}`, lost, one.task, documents, line.pair.a));
    });
  }
  return fold;
}

// --- the view ---------------------------------------------------------------------------------------------------

function drawAgainst(base, run) {
  const flips = compared.numbers.map((_, nth) => drawFlip(base, run, nth)).filter(Boolean);
  return section(
    `${nameOf(run)} against ${nameOf(base)}`,
    `${run} − ${base} on the documents that both have a score for, with ${level(compared.confidence)} intervals. Grey: no evidence.`,
    drawForests(base, run),
    flips.length ? [el("h3", "Documents that flipped"), flips] : null,
  );
}

function drawNotes() {
  const { correction, sections } = compared;
  const one = ({ title, lines }) => [el("h3", title), el("ul", lines.map((line) => el("li", line)))];
  return section("Notes", correction, sections.map(one));
}

function drawComparison(settings) {
  const { reason, lead } = compared;
  if (reason) return [section("Runs and tasks", "", el("p.warnings", `These runs are not compared: ${reason}`), drawMatrix(head.runs[0].label))];
  const chosen = findRun(settings.base);
  const base = chosen.label;
  return [
    lead.length ? el("div.warnings", lead.map((line) => el("p", line))) : null,
    section("Runs and tasks", "", runTabs("Baseline", head.runs, chosen, "comparison", "base"), drawMatrix(base)),
    head.runs.filter((run) => run.label !== base).map((run) => drawAgainst(base, run.label)),
    drawNotes(),
  ];
}

export const comparison = { name: "comparison", title: "Comparison", has: (data) => Boolean(data.comparison), draw: drawComparison };
