// The group tree: every number with its interval and its documents, each with its recipe.

import { copyRecipe, el, table } from "./dom.js";
import { count, interval, level, number } from "./format.js";
import { axis, intervalPlot, makeScale } from "./charts.js";

const SHARES = makeScale([], true);
const ARROWS = new Map([[true, "↑"], [false, "↓"]]);
const WAYS = new Map([[true, "higher is better"], [false, "lower is better"]]);

/** A metric with its filter, if it has one of its own. */
export function metricName(one) {
  return one.filter === "none" ? one.metric : `${one.metric}, ${one.filter}`;
}

/** What a task or group is called in its run. */
export function aliasOf(run, name) {
  return run.tree.find((entry) => entry.name === name)?.alias ?? name;
}

/** A sign that says what it means. */
export function sign(kind, text, title) {
  return el("span", { class: kind, role: "img", "aria-label": title, title }, text);
}

/** Which way a metric points. */
export function arrow({ higher }) {
  return ARROWS.has(higher) ? sign("arrow", ARROWS.get(higher), WAYS.get(higher)) : null;
}

/** A button that opens and closes. */
function opener(attributes, open, toggle, text) {
  const button = el("button", { ...attributes, "aria-expanded": String(open), onclick: () => button.setAttribute("aria-expanded", String(toggle())) }, text);
  return button;
}

/** The metrics of a run that are shares, from 0 to 1; a group does not say so itself. */
function findShares(run) {
  const all = run.tree.flatMap((entry) => entry.numbers);
  return new Set(all.filter(({ bounds }) => bounds?.[0] === 0 && bounds[1] === 1).map(metricName));
}

function recipe(one, run) {
  const facts = [];
  const add = (name, ...what) => facts.push(el("dt", name), el("dd", what));
  if (one.reason) add("reason", one.reason);
  if (one.missing) add("missing", `the value is partial: nothing of ${one.missing.join(", ")}`);
  if (one.stderr !== undefined) add("standard error", number(one.stderr, 6));
  if (one.sampling_stderr !== undefined)
    add("of it", `${number(one.question_stderr, 6)} from the choice of questions, ${number(one.sampling_stderr, 6)} from drawing answers`);
  if (one.n_unscorable || one.n_failed)
    add("without a score", `${count(one.n_unscorable)} unscorable, ${count(one.n_failed)} failed: the value would lie between ${number(one.lowest)} and ${number(one.highest)}`);
  if (one.reference) add(one.reference.of, number(one.reference.value));
  if (one.clusters) add("clusters", count(one.clusters));
  if (one.tasks_as_sample?.ci)
    add("tasks as a sample", `${interval(one.tasks_as_sample.ci)}, if its ${one.tasks_as_sample.tasks} tasks are a random sample of such tasks`);
  for (const warning of one.warnings ?? []) add("warning", warning);
  for (const name of one.errata ?? []) add(name, run.errata[name] || "an erratum of lm-eval");
  if (one.signature) add("recipe", el("code", one.signature), " ", copyRecipe(one.signature));
  return el("dl", facts);
}

function flags(one) {
  const out = [];
  if (one.missing) out.push(el("span.flag", "partial"));
  if (one.value == null) out.push(el("span.flag", one.reason || "no value"));
  if (one.n_failed) out.push(el("span.flag", `${count(one.n_failed)} failed`));
  if (one.n_unscorable) out.push(el("span.flag", `${count(one.n_unscorable)} unscorable`));
  if (one.warnings?.length) out.push(el("span.flag", "doubtful"));
  return out;
}

function numberRows(entry, one, run, share, first) {
  const detail = el("tr.recipe", { hidden: true }, el("td", { colspan: 6 }, recipe(one, run)));
  const button = opener({ class: "plain" }, false, () => !(detail.hidden = !detail.hidden), metricName(one));
  const row = el(
    "tr",
    first,
    el("td.metric", arrow(one) ?? el("span.arrow"), button),
    el("td.plotted", share && one.value >= 0 && one.value <= 1 ? intervalPlot(SHARES, { value: one.value, ci: one.ci, group: entry.group }) : null),
    el("td.number value", number(one.value)),
    el("td.number ci", interval(one.ci)),
    el("td.number n", count(one.n)),
    el("td.flags", flags(one), one.signature && copyRecipe(one.signature)),
  );
  return [row, detail];
}

function nameCell(entry, toggle, span) {
  const facts = [entry.version !== undefined ? `version ${entry.version}` : null, entry.shots ? `${entry.shots}-shot` : null];
  const title = [entry.name, ...facts.filter(Boolean)].join(", ");
  return el("th", { scope: "rowgroup", rowspan: span, class: "name", title }, toggle, el("span", entry.alias ?? entry.name));
}

/** Whether each entry is below one that is closed. */
function hide(bodies, closed) {
  let under = Infinity;
  for (const { entry, body } of bodies) {
    if (entry.depth <= under) under = Infinity;
    body.hidden = entry.depth > under;
    if (under === Infinity && closed.has(entry)) under = entry.depth;
  }
}

/** The tree of a run as a table; groups open and close. */
export function drawTree(run) {
  const closed = new Set(run.tree.length > 60 ? run.tree.filter((entry) => entry.group && entry.depth) : []);
  const shares = findShares(run);
  const bodies = run.tree.map((entry) => ({ entry, body: drawEntry(entry) }));

  function drawEntry(entry) {
    const toggle = entry.group ? groupButton(entry) : el("span.leaf");
    const cell = nameCell(entry, toggle, Math.max(1, 2 * entry.numbers.length));
    const rows = entry.numbers.length
      ? entry.numbers.map((one, nth) => numberRows(entry, one, run, shares.has(metricName(one)), nth ? null : cell))
      : el("tr", cell, el("td.quiet reason", { colspan: 6 }, entry.reason ?? ""));
    return el("tbody", { class: entry.group ? "group" : null, "--depth": entry.depth }, rows);
  }

  function groupButton(entry) {
    const name = entry.alias ?? entry.name;
    return opener({ class: "toggle", "aria-label": `tasks of ${name}` }, !closed.has(entry), () => {
      if (!closed.delete(entry)) closed.add(entry);
      hide(bodies, closed);
      return !closed.has(entry);
    });
  }

  hide(bodies, closed);
  const heads = ["Task", "Metric", shares.size ? axis(SHARES) : null, "Value", `${level(run.confidence)} interval`, "n", ""];
  const caption = "Every number with its interval and the documents it rests on; a metric opens its recipe.";
  return table("tree", "Numbers", caption, heads, 2, bodies.map(({ body }) => body));
}
