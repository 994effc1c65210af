// What if: some documents left out, lost ones counted otherwise, a group's children weighed otherwise.

import { el, show, showLater, table } from "./dom.js";
import { count, number } from "./format.js";
import { findRun, head, loadChunk } from "./data.js";
import { runTabs } from "./route.js";
import { aliasOf, metricName } from "./tree.js";
import { listGroups, reckon } from "./reckoning.js";

const FAILURES = [["", "as in the run"], ["exclude", "left out"], ["zero", "counted as 0"]];

/** Document ids such as "3, 7, 10-20". */
function readIds(text) {
  const out = new Set();
  for (const [, low, high] of text.matchAll(/(\d+)(?:\s*[-–]\s*(\d+))?/g)) {
    const from = Number(low);
    if (!Number.isSafeInteger(from)) out.add(low); // such keys are texts
    else for (let id = from; id <= Math.min(Number(high ?? low), from + 1e6, Number.MAX_SAFE_INTEGER); id++) out.add(id);
  }
  return out;
}

function drawResults(run, found) {
  const rows = run.tree.flatMap((entry) =>
    entry.numbers.map((one) => {
      const key = `${one.metric},${one.filter}`;
      const now = found.get(entry.name)?.get(key);
      if (!now) return null;
      const apart = now.value === null ? null : now.value - one.value;
      const moved = apart !== null && Math.abs(apart) < 1e-12 * Math.max(1, Math.abs(one.value)) ? 0 : apart;
      const how = now.value === null ? "no value" : [now.exact ? "exact" : "first order", now.partial ? "partial" : null].filter(Boolean).join(", ");
      const name = el("th", { scope: "row", class: entry.group ? "name group" : "name", "--depth": entry.depth }, entry.alias ?? entry.name);
      const value = el("td", { class: "number value", "data-name": entry.name, "data-key": key, "data-value": now.value ?? "" }, number(now.value));
      const change = moved === null ? "–" : moved === 0 ? "0" : (moved > 0 ? "+" : "") + number(moved);
      return el("tr", { class: moved ? "moved" : null }, name, el("td", metricName(one)), value, el("td.number quiet", number(one.value)), el("td.number", change), el("td.number", now.n === undefined ? "" : count(now.n)), el("td", how));
    }),
  );
  return table("what-if", "Numbers under this choice", null, ["Task", "Metric", "Value", "In the run", "Change", "n", ""], 2, el("tbody", rows));
}

function drawFor(run) {
  const before = run.what_if;
  const names = Object.keys(before.tasks);
  const alias = (name) => aliasOf(run, name);
  const groups = [...listGroups(before.trees)].filter(([, node]) => Object.values(node.rules).some((rule) => rule.over && rule.mean && !rule.pools));
  const chunks = new Map();
  const choice = { without: new Set(), texts: new Map(), failures: "", weights: new Map() };
  const results = el("div");
  const told = el("p", { role: "status" });

  async function update() {
    const dropped = new Map([...choice.texts].map(([name, text]) => [name, readIds(text)]).filter(([, ids]) => ids.size));
    for (const name of dropped.keys()) if (!chunks.has(name)) chunks.set(name, await loadChunk(before.tasks[name].chunk));
    const zero = (choice.failures || before.rule) === "zero";
    const found = reckon(before, chunks, { without: choice.without, dropped, zero, weights: choice.weights });
    show(results, drawResults(run, found));
    const gone = [...dropped].map(([name, ids]) => `${count(ids.size)} ids of ${alias(name)}`);
    const said = [choice.without.size ? `without ${[...choice.without].map(alias).join(", ")}` : null, gone.length ? `without ${gone.join(", ")}` : null, choice.failures ? `documents without a score ${new Map(FAILURES).get(choice.failures)}` : null, choice.weights.size ? `${[...choice.weights.keys()].map(alias).join(", ")} weighed otherwise` : null];
    show(told, said.filter(Boolean).join("; ") || "Nothing is changed yet: these are the numbers of the run.");
  }

  const redraw = () => showLater(results, update);

  const option = ([value, text]) => el("option", { value }, text);
  const failures = el("select", { onchange: () => redraw((choice.failures = failures.value)) }, FAILURES.map(option));
  const tick = (name) => {
    const box = el("input", { type: "checkbox", checked: true, onchange: () => redraw(box.checked ? choice.without.delete(name) : choice.without.add(name)) });
    return el("label", box, el("span", alias(name)));
  };
  const task = el("select", { onchange: () => (ids.value = choice.texts.get(task.value) ?? "") }, names.map((name) => option([name, alias(name)])));
  const ids = el("input", { type: "text", placeholder: "3, 7, 10-20", onchange: () => redraw(choice.texts.set(task.value, ids.value)) });
  const inputs = el("div.options");
  const group = el("select", { onchange: drawWeights }, option(["", "none"]), groups.map(([name]) => option([name, alias(name)])));

  function drawWeights() {
    const node = new Map(groups).get(group.value);
    const fields = (node?.children ?? []).map((child) => [child.name, el("input", { type: "number", min: 0, step: "any", value: choice.weights.get(node.name)?.[child.name] ?? 1, onchange: weigh })]);
    function weigh() {
      const given = fields.map(([name, field]) => [name, Math.max(0, Number(field.value) || 0)]);
      redraw(choice.weights.set(node.name, Object.fromEntries(given)));
    }
    show(inputs, fields.map(([name, field]) => el("label", field, el("span", alias(name)))));
    if (node && !choice.weights.has(node.name)) weigh();
  }

  const field = (text, control) => el("label", text, control);
  const box = (title, ...inside) => el("fieldset", el("legend", title), inside);
  redraw();
  return [
    el("p.quiet", "Numbers under another choice of documents and weights. Weighted means are exact; others are of first order, by the influence of each document, and say so. Intervals are those of the run alone."),
    box("Tasks that count", el("div.options", names.map(tick))),
    box("Documents", el("div.fields", field("without a score", failures), before.tasks[names[0]].chunk ? [field("leave out of", task), field("these ids", ids)] : null)),
    groups.length ? box("Weights of a group's children", field("group ", group), inputs) : null,
    el("p", el("button", { onclick: reset }, "as in the run")),
    told,
    results,
  ];

  function reset(event) {
    show(event.target.closest("section"), drawFor(run));
  }
}

function drawWhatIf(settings) {
  const runs = head.runs.filter((run) => run.what_if);
  const chosen = findRun(settings.run, runs);
  return [runTabs("Runs", runs, chosen, "what-if", "run"), el("h2", "What if"), el("section", drawFor(chosen))];
}

export const whatIf = { name: "what-if", title: "What if", has: () => head.runs.some((run) => run.what_if), draw: drawWhatIf };
