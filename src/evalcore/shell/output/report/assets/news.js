// What is new, asked of the page's own server every other second: how far runs are, and which state they are in.

import { el } from "./dom.js";
import { count } from "./format.js";

const PAUSE = 2000;

/** Tell what is new whenever there is something; nothing, once, when the server has ended. */
export async function follow(hear) {
  let at = "";
  while (true) {
    const news = document.hidden ? { status: 204 } : await fetch(`news?at=${at}`).catch(() => null);
    if (!news || (news.status !== 204 && !news.ok)) return hear(null);
    if (news.status !== 204) {
      const told = await news.json();
      at = told.at;
      hear(told);
    }
    await new Promise((done) => setTimeout(done, PAUSE));
  }
}

/** How far a run is, which goes on or was stopped. */
export function drawProgress({ progress, name, state }) {
  if (!progress || !progress.total) return null;
  const failed = progress.failed.map(([why, times]) => `${count(times)} failed: ${why}`);
  const words = progress.stage === "asking" ? `${count(progress.done)} of ${count(progress.total)} answered` : `${progress.stage}: ${count(progress.done)} of ${count(progress.total)}`;
  return el("span.progress", state === "going on" && el("progress", { max: progress.total, value: progress.done, "aria-label": `progress of ${name}` }), ` ${[words, ...failed].join(", ")}`);
}

/** What is said where the server has ended. */
export const GONE = "evalcore view has ended: this page is no longer renewed.";
