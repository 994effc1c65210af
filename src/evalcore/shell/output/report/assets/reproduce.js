// How to make a run again, and what it took.

import { copyButton, el, table } from "./dom.js";

function copied(title, text) {
  return el("div", el("h3", title, " ", copyButton(text, `copy ${title.toLowerCase()}`)), el("pre", { tabindex: 0 }, text));
}

function drawUsage({ told, rows }) {
  const body = rows.map(([name, value]) => el("tr", el("td", name), el("td.number", value)));
  return table("usage", "Usage", told || "Requests, tokens, time and cost", ["What answers took", "all commands of this run"], 1, el("tbody", body));
}

/** Command, config and versions. */
export function drawReproduce(run, section) {
  const made = run.reproduce;
  if (!made) return null;
  return [
    run.usage ? section("Usage", "", drawUsage(run.usage)) : null,
    section(
      "Reproduce",
      made.note,
      made.command ? copied("Command", made.command) : null,
      made.config ? copied("Config", made.config) : null,
      made.versions ? copied("Versions", made.versions) : null,
      made.model_identity ? el("p", "Model as it identified itself: ", el("code", made.model_identity)) : null,
    ),
  ];
}
