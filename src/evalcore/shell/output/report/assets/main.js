// The page: a navigation of the views that have something to show, and the view that the address names.

import { el, show } from "./dom.js";
import { head } from "./data.js";
import { readRoute, routeTo } from "./route.js";
import { overview } from "./overview.js";
import { comparison } from "./comparison.js";
import { samples } from "./samples.js";
import { whatIf } from "./what_if.js";

/** Every view, the first of which opens: its name in the address, its title, whether there is anything to show, and a function that draws it. */
const VIEWS = [comparison, overview, samples, whatIf];

function start() {
  const views = VIEWS.filter((view) => view.has(head));
  const links = new Map(views.map((view) => [view.name, el("a", { href: routeTo(view.name) }, view.title)]));
  const main = document.querySelector("main");
  show(document.querySelector("nav"), [...links.values()]);

  function draw() {
    const { view, settings } = readRoute();
    const shown = views.find((one) => one.name === view) ?? views[0];
    for (const [name, link] of links) {
      if (name === shown.name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${shown.title} · ${head.title}`;
    show(main, shown.draw(settings));
  }

  addEventListener("hashchange", draw);
  // On paper nothing can be opened.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));
  draw();
}

start();
