// Where the reader is: the part of the address behind #, such as #samples?task=gsm8k&verdict=wrong.

import { el } from "./dom.js";

/** The view and its settings. */
export function readRoute(text = location.hash) {
  const [view, query] = text.replace(/^#/, "").split("?");
  return { view, settings: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a view with settings; those that are empty are left out. */
export function routeTo(view, settings = {}) {
  const kept = Object.entries(settings).filter(([, value]) => value !== "" && value != null);
  return `#${view}${kept.length ? `?${new URLSearchParams(kept)}` : ""}`;
}

/** Links to a view of each run; nothing where there is one run alone. */
export function runTabs(title, runs, chosen, view, key) {
  const link = (run) => el("a", { href: routeTo(view, { [key]: run.label }), "aria-current": run === chosen && "true" }, `${run.label} ${run.name}`);
  return runs.length > 1 ? el("nav.tabs", { "aria-label": title }, el("span.quiet", title), runs.map(link)) : null;
}
