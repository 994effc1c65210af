// A line above a page about runs that is served: the way back, how far its runs are, and whether it is out of date.

import { el, show } from "./dom.js";
import { head } from "./data.js";
import { GONE, drawProgress, follow } from "./news.js";

const place = el("div.news", { role: "status" });

function drawRun(run) {
  if (run.state === "finished" || run.state === "recorded") return null;
  const lines = run.progress?.lines ?? [];
  return el("div", el("p", el("strong", run.name), ` ${run.state} `, drawProgress(run), run.state === "stopped" && " (the same evalcore run goes on)"), lines.length ? el("ul", lines.map((line) => el("li", line))) : null);
}

function hear(news) {
  if (!news) return place.append(el("p.quiet", GONE));
  const old = news.state !== head.served;
  if (old && (head.waiting || head.problem)) return location.reload();
  const again = old && el("p", el("button", { onclick: () => location.reload() }, "There are new numbers: reload"));
  show(place, again, news.runs.map(drawRun));
}

function drawInstead() {
  const said = head.problem ? el("p", { role: "alert" }, head.problem) : el("p", `No task of ${head.waiting.join(" and ")} is scored yet. Numbers appear here as soon as there are some.`);
  show(document.querySelector("main"), el("section", el("h2", head.problem ? "This run cannot be shown" : "Nothing scored yet"), said));
}

if (head.problem || head.waiting) drawInstead();
document.querySelector("header").append(el("p", el("a", { href: "../../" }, "All runs")), place);
follow(hear);
