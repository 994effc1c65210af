// Searches samples beside the page, so that typing is never held up: ids and the beginnings of texts at each
// keystroke, all of their texts if asked. Case and accents do not matter.

const BEGIN = 1024;
const END = "\u0001";
const ASCII = /^[\x00-\x7f]*$/;
const parts = [];
let order = { seq: 0, q: "", full: false };
let last = null;

function fold(text) {
  return (ASCII.test(text) ? text : text.normalize("NFKD").replace(/\p{M}+/gu, "")).toLowerCase();
}

const unpack = (bytes) => new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();

const replyText = (one) => (typeof one === "string" ? one : Array.isArray(one) ? one[0] : one.failed);

/** The texts of each document of a part, cut after so many characters. */
function listTexts(part, content, most) {
  const cut = (text) => fold(text.slice(0, most));
  return part.ids.map((id, at) => {
    if (!content) return fold(id);
    const texts = [id, cut(content.prompts[at])];
    for (const run of content.runs) {
      if (run.prompts?.[at]) texts.push(cut(run.prompts[at]));
      texts.push(cut((run.replies[at] ?? []).map(replyText).join("\n")));
    }
    if (most === Infinity) texts.push(fold(content.golds[at]));
    return `${fold(texts[0])}\n${texts.slice(1).join("\n")}`;
  });
}

function join(texts) {
  const ends = new Uint32Array(texts.length);
  let size = 0;
  texts.forEach((text, at) => (ends[at] = size += text.length + 1));
  return { all: texts.join(END) + END, ends };
}

/** The documents of a part that have the words, each found once. */
function findIn({ all, ends }, base, q, out) {
  let row = 0;
  for (let at = all.indexOf(q); at >= 0; at = all.indexOf(q, ends[row])) {
    while (ends[row] <= at) row++;
    out.push(base + row);
  }
}

const pause = () => new Promise((done) => setTimeout(done));

/** Search all parts, or with the words of the last search those that came since. */
async function search(mine, from = -1) {
  const q = fold(mine.q).replaceAll(END, "");
  // What has the longer words has the shorter ones, so parts that were found to lack these need no look.
  const known = parts.length;
  const skip = from < 0 && last?.done && !mine.full && !last.full && q.includes(last.q) ? last.found : null;
  const found = from < 0 ? new Set() : last.found;
  last = { q, full: mine.full, found, done: false };
  let hits = [];
  let until = performance.now() + 25;
  const post = (done) => {
    postMessage({ seq: mine.seq, rows: Uint32Array.from(hits), done, looked: parts.length });
    hits = [];
  };
  for (let at = Math.max(from, 0); at < parts.length; at++) {
    if (skip && at < known && !skip.has(at)) continue;
    const before = hits.length;
    const texts = mine.full && parts[at].bytes ? join(listTexts(parts[at], await unpack(parts[at].bytes), Infinity)) : parts[at].texts;
    if (order !== mine) return;
    findIn(texts, parts[at].base, q, hits);
    if (hits.length > before) found.add(at);
    if (performance.now() > until) {
      post(false);
      await pause();
      if (order !== mine) return;
      until = performance.now() + 25;
    }
  }
  last.done = true;
  post(true);
}

let queue = Promise.resolve();

/** A part: the ids of its documents and, where the page has texts, their gzipped bytes. */
async function addPart({ base, ids, bytes }) {
  const part = { base, ids, bytes };
  part.texts = join(listTexts(part, bytes ? await unpack(bytes) : null, BEGIN));
  parts.push(part);
  postMessage({ loaded: parts.length });
  if (order.q && last?.done) await search(order, parts.length - 1);
}

onmessage = ({ data }) => {
  if (data.ids) {
    queue = queue.then(() => addPart(data));
  } else {
    order = data;
    if (data.q) search(order);
    else last = null;
  }
};
