// One document: what it was asked, what each run replied, what each filter left of that, and what it scored.

import { el } from "./dom.js";
import { count, number } from "./format.js";
import { head, loadChunk } from "./data.js";
import { metricName } from "./tree.js";

/** Verdicts by number. */
export const NAMES = ["absent", "right", "wrong", "partial", "scored", "unscored"];

/** What a document is called: its id, else its number in the first run that has it. */
export function titleOf(task, place) {
  return task.ids?.[place] ?? `#${task.keys.map((keys) => keys[place]).find((key) => key !== null)}`;
}

/** Spans that do not overlap, with the names of the filters that found each. */
function mergeSpans(spans) {
  const ends = [...new Set(spans.flatMap(([from, to]) => [from, to]))].sort((a, b) => a - b);
  return ends.slice(1).flatMap((to, at) => {
    const names = spans.filter((one) => one[0] <= ends[at] && one[1] >= to).map((one) => one[2]);
    return names.length ? [[ends[at], to, names.join(", ")]] : [];
  });
}

function marked(text, spans) {
  const out = [];
  let from = 0;
  for (const [start, end, names] of mergeSpans(spans)) {
    out.push(text.slice(from, start), el("mark", { title: `kept by ${names}` }, text.slice(start, end)));
    from = end;
  }
  return [...out, text.slice(from)];
}

/** A text; of a long one, which would hold up the browser, its beginning and its end. */
function cut(text, most = 100_000) {
  if (!(text.length > most)) return text;
  return [text.slice(0, most / 2), el("i", { dir: "ltr" }, ` … ${count(text.length - most)} characters are not shown … `), text.slice(-most / 2)];
}

const block = (label, ...inside) => el("pre", { class: /^Prompt/.test(label) ? "prompt" : null, dir: "auto", tabindex: 0, role: "group", "aria-label": label }, inside.flat().map((one) => cut(one)));

function drawReplies(replies, spans, gold) {
  if (replies.every(Array.isArray)) {
    const best = Math.max(...replies.map((one) => one[1]));
    const right = Number.parseInt(gold, 10);
    return el("ol.continuations", { start: 0 }, replies.map(([text, value, greedy], at) => {
      const shown = value === best && replies.length > 1 ? el("mark", { title: "the likeliest" }, text) : text;
      return el("li", { dir: "auto" }, shown, el("span.quiet", ` ${number(value)}${greedy ? ", greedy" : ""}${at === right && replies.length > 1 ? ", gold" : ""}`));
    }));
  }
  const many = replies.length > 1;
  return replies.map((reply, at) => {
    if (reply.failed !== undefined) return el("p.flag", `failed: ${reply.failed}`);
    const own = spans.filter((one) => one[0] === at).map(([, from, to, name]) => [from, to, name]);
    return block(many ? `Reply ${at + 1} of ${replies.length}` : "Reply", marked(reply, own));
  });
}

/** What a filter did, step by step; a step that left what it was given says so. */
function drawFilter({ name, steps }, found) {
  if (!found) return null;
  const [kept, traced] = found;
  const texts = (some) => some.map((one) => el("code", { dir: "auto" }, cut(one, 300))).flatMap((one, at) => (at ? [" · ", one] : [one]));
  const line = ([after, notes], at) => el("li", el("b", steps[at]), ": ", [...new Set(notes)].filter(Boolean).join("; ") || (after ? "changed" : "unchanged"), after ? [" → ", texts(after)] : null);
  return el("details", { open: true },
    el("summary", name, " → ", kept ? texts(kept) : "–"),
    traced ? el("ol", traced.map(line)) : el("p.quiet", "Its steps are not known: the log has only what was left."));
}

function drawScores(task, place, run) {
  const score = (at) => {
    const reason = task.runs[run].lost[at][place];
    if (reason !== undefined) return el("span.flag", task.reasons[reason].filter(Boolean).join(": "));
    const value = task.runs[run].scores[at]?.[place];
    return typeof value === "number" ? number(value) : value == null ? "–" : String(value);
  };
  return el("dl", task.columns.map((one, at) => [el("dt", metricName(one)), el("dd", score(at))]));
}

function drawSide(task, place, run, verdict, texts) {
  const { label, name } = head.runs[run];
  const key = task.keys[run][place];
  const title = el("h4", head.runs.length > 1 ? `${label} ${name} ` : "", el("span", { class: `chip ${NAMES[verdict]}` }, NAMES[verdict]));
  if (key === null) return el("div.side", title, el("p.quiet", "This run has not got the document."));
  const body = [];
  if (texts) {
    const { part, at } = texts;
    const own = part.runs[run];
    const found = task.filters.map((_, filter) => own.filters[filter][at]);
    const spans = found.flatMap((one, filter) => (one?.[2] ?? []).map((span) => [...span, task.filters[filter].name]));
    const generated = own.replies[at]?.some((one) => !Array.isArray(one));
    if (own.prompts?.[at]) body.push(el("h5", "Its own prompt"), block("Prompt of this run", own.prompts[at]));
    body.push(el("h5", generated ? "Reply" : "Log-likelihoods"), own.replies[at]?.length ? drawReplies(own.replies[at], spans, part.golds[at]) : el("p.quiet", "no reply"));
    if (generated) body.push(el("h5", "Filters"), task.filters.map((filter, nth) => drawFilter(filter, found[nth])));
  }
  return el("div.side", title, drawScores(task, place, run), body);
}

/** The document at a place of a task, with the verdict of each run. */
export async function drawDocument(task, place, verdicts) {
  const nth = task.texts.findLastIndex(([from]) => from <= place);
  const part = nth < 0 ? null : await loadChunk(task.texts[nth][1]);
  const texts = part && { part, at: place - task.texts[nth][0] };
  return [
    el("h3", `${task.name} ${titleOf(task, place)}`),
    texts ? [el("h4", "Gold"), block("Gold", part.golds[texts.at] || "–"), el("h4", "Prompt"), block("Prompt", part.prompts[texts.at])] : null,
    el("div.sides", head.runs.map((_, run) => drawSide(task, place, run, verdicts[run], texts))),
  ];
}
