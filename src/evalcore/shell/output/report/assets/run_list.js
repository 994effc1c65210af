// Every run of a folder, the newest first; those that are ticked are compared.

import { el, show, table } from "./dom.js";
import { count, interval, number } from "./format.js";
import { head } from "./data.js";
import { GONE, drawProgress, follow } from "./news.js";

const CHIPS = { finished: "right", recorded: "scored", "going on": "partial", stopped: "partial", unreadable: "wrong" };
const MOST = 20;
const ticked = new Set();
const said = el("p.quiet", { role: "status" });
const list = el("div");
const search = el("input", { type: "search", oninput: () => draw() });
const compare = el("button", { onclick: () => location.assign(`runs/${[...ticked].join(",")}/`) }, "Compare ticked runs");
let shown = head;

function drawTick(run) {
  const mark = ({ target }) => {
    if (target.checked) ticked.add(run.id);
    else ticked.delete(run.id);
    tell();
  };
  return el("td", el("input", { type: "checkbox", id: `tick-${run.id}`, checked: ticked.has(run.id), onchange: mark, "aria-label": `compare ${run.name}` }));
}

function drawRow(run) {
  const { model, tasks, number: found, label, more, reason } = run.summary;
  const going = run.state === "going on" || run.state === "stopped";
  const lines = going && run.progress ? run.progress.lines : [];
  return el(
    "tr",
    drawTick(run),
    el("th", { scope: "row" }, el("a", { id: `run-${run.id}`, href: `runs/${run.id}/` }, run.name), model && el("div.quiet", el("small", model))),
    el("td", tasks.join(", ")),
    el("td", el("span", { class: `chip ${CHIPS[run.state]}` }, run.state), going && drawProgress(run), run.state === "unreadable" && el("div.quiet", el("small", reason)), lines.map((line) => el("div.quiet", el("small", line)))),
    el("td", label, more ? el("small.quiet", ` and ${count(more)} more`) : null),
    el("td.number", found ? number(found.value) : "–"),
    el("td.number", found && found.low != null && found.high != null ? interval([found.low, found.high]) : "–"),
    el("td.number", found ? count(found.n) : "–"),
    el("td.number", new Date(1000 * run.changed).toLocaleString()),
  );
}

function tell(note = "") {
  compare.disabled = ticked.size < 2 || ticked.size > MOST;
  const many = `${count(shown.runs.length)} run${shown.runs.length === 1 ? "" : "s"}`;
  said.textContent = [many, ticked.size ? `${ticked.size} ticked` : "tick two or more to compare them", ...shown.notes, note].filter(Boolean).join("; ");
}

function draw() {
  const words = search.value.toLowerCase().split(/\s+/);
  const has = (run) => words.every((word) => `${run.name} ${run.summary.model} ${run.summary.tasks.join(" ")} ${run.state}`.toLowerCase().includes(word));
  const focus = document.activeElement?.id;
  const rows = shown.runs.filter(has);
  const heads = ["", "Run", "Tasks", "State", "Number", "Value", "Interval", "n", "Changed"];
  const none = el("p", "No run was found here yet. It appears as soon as `evalcore run` begins one.");
  show(list, shown.runs.length ? table("runs", "Runs", "", heads, 5, el("tbody", rows.map(drawRow))) : none);
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  tell();
}

function hear(news) {
  if (!news) return tell(GONE);
  shown = news;
  for (const id of ticked) if (!news.runs.some((run) => run.id === id)) ticked.delete(id);
  draw();
}

show(document.querySelector("main"), el("form.choices", { role: "search", onsubmit: (event) => event.preventDefault() }, el("label.wide", "Find ", search), compare), said, list);
document.querySelector("nav").remove();
draw();
follow(hear);
