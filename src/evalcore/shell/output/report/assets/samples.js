// Every document: found by words and by what became of it, and looked at with its prompt, replies and filters.

import { el, show, showLater } from "./dom.js";
import { count, number } from "./format.js";
import { head, loadBytes, loadChunk, startWorker } from "./data.js";
import { readRoute, routeTo } from "./route.js";
import { drawDocument, NAMES, titleOf } from "./document.js";

const HEIGHT = 52;
const KEYS = ["task", "metric", "verdict", "flipped", "rule", "failure", "q"];
const RIGHT = 1, WRONG = 2, PARTIAL = 3, SCORED = 4, UNSCORED = 5;
const MOST_REASONS = 50;

let every = null;

/** All documents in rows of numbers: the task and the place in it; the index of each task beside. */
async function loadTable() {
  const tasks = await Promise.all(head.samples.tasks.map(async (task) => ({ ...task, ...(await loadChunk(task.index)) })));
  const size = tasks.reduce((sum, task) => sum + task.count, 0);
  const [taskOf, placeOf] = [new Uint16Array(size), new Uint32Array(size)];
  let row = 0;
  tasks.forEach((task, at) => {
    task.base = row;
    for (let place = 0; place < task.count; place++, row++) [taskOf[row], placeOf[row]] = [at, place];
  });
  return { tasks, size, taskOf, placeOf, verdicts: new Map() };
}

const locate = (row) => [every.tasks[every.taskOf[row]], every.placeOf[row]];

function judge(score, way) {
  if (score == null) return UNSCORED;
  if (!way) return SCORED;
  const good = way === "up" ? score : 1 - score;
  return good >= 1 ? RIGHT : good <= 0 ? WRONG : PARTIAL;
}

/** The verdict of each run on each document by a metric, 0 where there is none, and which documents flipped. */
function judgeAll(metric) {
  if (every.verdicts.has(metric)) return every.verdicts.get(metric);
  const runs = head.runs.map(() => new Uint8Array(every.size));
  const flipped = new Uint8Array(every.size);
  for (const task of every.tasks) {
    const at = metric ? task.columns.findIndex((one) => `${one.metric},${one.filter}` === metric) : 0;
    if (at < 0 || !task.columns.length) continue;
    const { way } = task.columns[at];
    const scores = task.runs.map((run) => run.scores[at]);
    for (let place = 0; place < task.count; place++) {
      let first;
      scores.forEach((own, run) => {
        if (task.keys[run][place] === null || !own) return;
        const score = own[place];
        runs[run][task.base + place] = judge(score, way);
        if (score === null || !way) return;
        if (first === undefined) first = score;
        else if (Math.abs(first - score) > 1e-12) flipped[task.base + place] = 1;
      });
    }
  }
  every.verdicts.set(metric, { runs, flipped });
  return every.verdicts.get(metric);
}

// --- what may be chosen -----------------------------------------------------------------------------------------

function listRules() {
  const found = new Map();
  for (const task of every.tasks)
    task.filters.forEach((filter, at) => {
      for (const run of task.runs)
        for (const letter of new Set(run.rules[at]))
          if (letter !== " ") found.set(`${filter.name} ${letter}`, letter === "-" ? `${filter.name}: fell back` : `${filter.name}: rule ${letter.charCodeAt(0) - 96}`);
    });
  return [...found].sort();
}

function listFailures() {
  const found = new Map();
  for (const task of every.tasks)
    for (const run of task.runs)
      for (const reason of new Set(run.lost.flatMap((one) => Object.values(one)))) {
        const [kind, why] = task.reasons[reason];
        found.set(kind, `${kind}, for any reason`);
        if (why) found.set(`${kind}: ${why}`, `${kind}: ${why.slice(0, 80)}`);
      }
  return [...found].sort().slice(0, MOST_REASONS);
}

function listMetrics() {
  const keys = every.tasks.flatMap((task) => task.columns.map((one) => `${one.metric},${one.filter}`));
  return [...new Set(keys)].map((key) => [key, key.replace(/,none$/, "").replace(",", ", ")]);
}

function makeRuleTest(rule) {
  const [name, letter] = [rule.slice(0, -2), rule.slice(-1)];
  const places = every.tasks.map((task) => task.filters.findIndex((one) => one.name === name));
  return (task, place, at) => places[at] >= 0 && task.runs.some((run) => run.rules[places[at]][place] === letter);
}

function makeFailureTest(failure) {
  const fits = every.tasks.map((task) => new Set(task.reasons.flatMap(([kind, why], at) => (failure === kind || failure === `${kind}: ${why}` ? [at] : []))));
  return (task, place, at) => fits[at].size > 0 && task.runs.some((run) => run.lost.some((one) => fits[at].has(one[place])));
}

/** The rows that fit, in order. */
function choose(settings, hits) {
  const { runs, flipped } = judgeAll(settings.metric ?? "");
  const verdict = NAMES.indexOf(settings.verdict);
  const task = settings.task ? every.tasks.findIndex((one) => one.name === settings.task) : -1;
  const tests = [settings.rule ? makeRuleTest(settings.rule) : null, settings.failure ? makeFailureTest(settings.failure) : null].filter(Boolean);
  const out = new Uint32Array(every.size);
  let size = 0;
  for (let row = 0; row < every.size; row++) {
    if (hits && !hits[row]) continue;
    const at = every.taskOf[row];
    if (settings.task && at !== task) continue;
    if (settings.flipped && Boolean(flipped[row]) !== (settings.flipped === "yes")) continue;
    if (verdict > 0 && !runs.some((one) => one[row] === verdict)) continue;
    if (tests.length && !tests.every((test) => test(every.tasks[at], every.placeOf[row], at))) continue;
    out[size++] = row;
  }
  return out.subarray(0, size);
}

// --- search -----------------------------------------------------------------------------------------------------

let finder = null;

/** The worker, and the parts it has been given; texts are sent part by part, so that the page stays free. */
function startFinder() {
  finder = { worker: startWorker(), seq: 0, hits: null, heard: () => {}, loaded: 0, total: 0 };
  const parts = every.tasks.flatMap((task) => (task.texts.length ? task.texts : [[0, null]]).map(([from, id], at, all) => ({ task, from, until: all[at + 1]?.[0] ?? task.count, id })));
  finder.total = parts.length;
  finder.worker.onmessage = ({ data }) => {
    if (data.loaded) finder.loaded = data.loaded;
    else if (data.seq === finder.seq) for (const row of data.rows) finder.hits[row] = 1;
    if (data.loaded || data.seq === finder.seq) finder.heard(data);
  };
  (async () => {
    for (const { task, from, until, id } of parts) {
      const bytes = id ? await loadBytes(id) : null;
      const ids = [];
      for (let place = from; place < until; place++) ids.push(`${task.name} ${titleOf(task, place)} ${task.lines?.[place] ?? ""}`);
      finder.worker.postMessage({ base: task.base + from, ids, bytes }, bytes ? [bytes.buffer] : []);
    }
  })().catch((error) => finder.heard({ error }));
}

function find(q, full) {
  finder.seq += 1;
  finder.hits = q ? new Uint8Array(every.size) : null;
  finder.worker.postMessage({ seq: finder.seq, q, full });
}

// --- the view ---------------------------------------------------------------------------------------------------

function picker(name, label, options, settings, changed) {
  if (options.length < 2 && !settings[name] && name !== "failure" && name !== "rule") return null;
  if (!options.length) return null;
  const all = [["", "all"], ...options].map(([value, text]) => el("option", { value, selected: (settings[name] ?? "") === value }, text));
  return el("label", label, " ", el("select", { name, onchange: (event) => changed(name, event.target.value) }, all));
}

/** Rows of one height, of which only those in sight exist. */
function makeList(drawRow, opened) {
  const inside = el("div", { role: "none", class: "rows" });
  const frame = el("div.samples", { tabindex: 0, role: "listbox", "aria-label": "Samples", onscroll: () => draw(), onkeydown: press }, inside);
  let [rows, at, drawn] = [new Uint32Array(0), -1, ""];

  function draw(force) {
    const first = Math.max(0, Math.floor(frame.scrollTop / HEIGHT) - 4);
    const end = Math.min(rows.length, first + Math.ceil((frame.clientHeight || 600) / HEIGHT) + 9);
    if (!force && drawn === `${first} ${end}`) return;
    drawn = `${first} ${end}`;
    const shown = [];
    for (let i = first; i < end; i++) {
      shown.push(el("div", { role: "option", id: `row-${i}`, class: "sample", "aria-selected": String(i === at), "aria-setsize": rows.length, "aria-posinset": i + 1, "--row": i, onclick: () => move(i) }, drawRow(rows[i])));
    }
    inside.style.height = `${rows.length * HEIGHT}px`;
    show(inside, shown);
    if (at >= first && at < end) frame.setAttribute("aria-activedescendant", `row-${at}`);
    else frame.removeAttribute("aria-activedescendant");
  }

  function move(to, quiet) {
    if (!rows.length) return;
    at = Math.min(rows.length - 1, Math.max(0, to));
    const room = frame.clientHeight;
    if (at * HEIGHT < frame.scrollTop) frame.scrollTop = at * HEIGHT;
    else if ((at + 1) * HEIGHT > frame.scrollTop + room) frame.scrollTop = (at + 1) * HEIGHT - room;
    draw(true);
    if (!quiet) opened(rows[at]);
  }

  function press(event) {
    const page = Math.max(1, Math.floor(frame.clientHeight / HEIGHT) - 1);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(to);
  }

  return {
    frame,
    draw: () => draw(true),
    select: (row) => move(rows.indexOf(row), true),
    fill(given, row) {
      rows = given;
      at = row === null ? -1 : rows.indexOf(row);
      if (frame.scrollTop > rows.length * HEIGHT) frame.scrollTop = 0;
      draw(true);
    },
  };
}

/** The row of a document that an address names: by its key in a run, the first that has it if none is named. */
function findRow({ task, of, doc, run }) {
  const found = every.tasks.find((one) => one.name === (of ?? task)) ?? (every.tasks.length === 1 ? every.tasks[0] : null);
  if (!found || doc === undefined) return null;
  const named = head.runs.findIndex((one) => one.label === run);
  const lists = named >= 0 ? [found.keys[named]] : found.keys;
  const place = lists.map((keys) => keys.findIndex((key) => String(key) === doc)).find((one) => one >= 0) ?? found.ids?.indexOf(doc) ?? -1;
  return place < 0 ? null : found.base + place;
}

function fillView(view, settings) {
  const said = el("p.quiet", { role: "status" });
  const pane = el("section.document", { "aria-label": "Document" }, el("p.quiet", "Choose a sample: by a click, or with the arrow keys in the list."));
  const list = makeList(drawRow, open);
  let opened = null;

  function drawRow(row) {
    const [task, place] = locate(row);
    const { runs, flipped } = judgeAll(settings.metric ?? "");
    const chips = runs.map((verdicts, run) => el("span", { class: `chip ${NAMES[verdicts[row]]}`, title: `${head.runs[run].label} ${head.runs[run].name}` }, `${runs.length > 1 ? `${head.runs[run].label} ` : ""}${NAMES[verdicts[row]]}`));
    const answers = task.runs.map((run) => run.answers?.[place]).filter(Boolean).join(" | ");
    return [
      el("span.first", el("b", titleOf(task, place)), " ", chips, flipped[row] && runs.length > 1 ? el("span.flag", "flipped") : null, el("span.quiet", task.name)),
      el("span.second", { dir: "auto" }, task.lines?.[place] ?? "", answers ? el("span.quiet", ` → ${answers}`) : null),
    ];
  }

  function remember() {
    const kept = Object.fromEntries(KEYS.map((key) => [key, settings[key]]));
    const place = opened === null ? {} : { doc: keyOf(opened), of: settings.task ? null : locate(opened)[0].name };
    history.replaceState(null, "", routeTo("samples", { ...kept, ...place }));
  }

  function keyOf(row) {
    const [task, place] = locate(row);
    return task.keys.map((keys) => keys[place]).find((key) => key !== null);
  }

  function open(row) {
    opened = row;
    remember();
    drawPane();
  }

  async function drawPane() {
    const row = opened;
    await showLater(pane, async () => {
      const drawn = await drawDocument(...locate(row), judgeAll(settings.metric ?? "").runs.map((one) => one[row]));
      if (row !== opened) return;
      show(pane, drawn);
      // After its examples comes what a prompt asks.
      for (const prompt of pane.querySelectorAll(".prompt")) prompt.scrollTop = prompt.scrollHeight;
      // On a phone the document is below the list.
      if (pane.offsetTop > list.frame.offsetTop + 9) pane.scrollIntoView({ block: "nearest" });
    });
  }

  function fill(note = "") {
    const rows = choose(settings, settings.q ? finder.hits : null);
    list.fill(rows, opened);
    const part = finder.loaded < finder.total && settings.q ? `, ${finder.loaded} of ${finder.total} parts searched` : "";
    said.textContent = `${count(rows.length)} of ${count(every.size)} samples${part}${note}`;
  }

  function change(name, value) {
    settings = { ...settings, [name]: value };
    remember();
    fill();
  }

  function type(event, full) {
    settings = { ...settings, q: event.target.value.trim() };
    remember();
    find(settings.q, full);
    view.setAttribute("aria-busy", String(Boolean(settings.q)));
    finder.heard = (data) => {
      if (data.error) return show(said, data.error.message);
      if (data.done && finder.loaded === finder.total) view.removeAttribute("aria-busy");
      fill(full ? ", in all texts" : "");
    };
    if (!settings.q) fill();
  }

  const search = el("input", { type: "search", value: settings.q ?? "", "aria-describedby": "search-help", oninput: (event) => type(event, false), onkeydown: (event) => event.key === "Enter" && type(event, true) });
  const tasks = every.tasks.map((task) => [task.name, `${task.name} (${count(task.count)})`]);
  const verdicts = NAMES.slice(1).map((name) => [name, name]);
  const help = head.samples.redacted ? "Prompts, replies and golds were left out of this page." : "Search looks at ids and the beginning of each prompt and reply; Enter looks at all of every text.";
  show(
    view,
    el("form.choices", { role: "search", onsubmit: (event) => event.preventDefault() },
      el("label.wide", "Search ", search, el("small", { id: "search-help" }, help)),
      picker("task", "Task", tasks, settings, change),
      picker("metric", "Verdict by", listMetrics(), settings, change),
      picker("verdict", head.runs.length > 1 ? "Verdict in any run" : "Verdict", verdicts, settings, change),
      head.runs.length > 1 ? picker("flipped", "Flipped", [["yes", "yes"], ["no", "no"]], settings, change) : null,
      picker("rule", "Rule", listRules(), settings, change),
      picker("failure", "Without a score", listFailures(), settings, change)),
    said,
    el("div.browser", list.frame, pane),
  );
  finder.heard = () => {};
  fill();
  new ResizeObserver(() => list.draw()).observe(list.frame);
  const row = findRow(settings);
  if (settings.doc !== undefined && row === null) show(pane, el("p", { role: "alert" }, `There is no document ${settings.doc} of ${settings.of ?? settings.task ?? "any task"} in this page.`));
  if (row !== null) {
    opened = row;
    list.select(row);
    drawPane();
  }
  if (settings.q) type({ target: search }, false);
}

function drawSamples(settings) {
  const view = el("div", el("p.quiet", "Opening samples…"));
  showLater(view, async () => {
    every ??= await loadTable();
    // The view is put into the page first.
    await null;
    if (!view.isConnected || readRoute().view !== "samples") return;
    finder ?? startFinder();
    fillView(view, settings);
  });
  return [el("h2", "Samples"), view];
}

export const samples = { name: "samples", title: "Samples", has: () => head.samples?.count > 0, draw: drawSamples };
