// The data of the page: its head at once, chunks when they are needed. A chunk is gzipped JSON, in the page itself or
// in a file beside it that a script tag loads; either way its bytes must have the hash that the head names.

const waiting = new Map();
const loaded = new Map();

/** The head: everything but samples. */
export const head = JSON.parse(document.getElementById("head").textContent);

/** The run with a label, else the first. */
export const findRun = (label, runs = head.runs) => runs.find((run) => run.label === label) ?? runs[0];

const policy = globalThis.trustedTypes?.createPolicy("evalcore", { createScriptURL: (url) => url }) ?? {
  createScriptURL: (url) => url,
};

globalThis.evalcoreChunk = (id, text) => waiting.get(id)?.(text);

function loadText(id) {
  const inside = document.getElementById(`chunk-${id}`);
  if (inside) return Promise.resolve(inside.textContent);
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    waiting.set(id, resolve);
    script.onerror = () => reject(new Error(`${head.beside}/${id}.js is missing: keep it in the folder of this page`));
    script.src = policy.createScriptURL(`${encodeURIComponent(head.beside)}/${id}.js`);
    document.head.append(script);
  });
}

/** The bytes of a chunk, as they were packed; refused if they are not those that the page was made with. */
export async function loadBytes(id) {
  const text = await loadText(id);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) bytes[at] = letters.charCodeAt(at);
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  const hex = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  if (!hex.startsWith(id)) throw new Error(`chunk ${id} is not the one that this page was made with`);
  return bytes;
}

/** Unpack gzipped bytes. */
export function gunzip(bytes) {
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/** The content of a chunk, unpacked once. */
export function loadChunk(id) {
  if (!loaded.has(id)) loaded.set(id, loadBytes(id).then(gunzip).then(JSON.parse));
  return loaded.get(id);
}

/** Start a worker from the code that the page carries for it. */
export function startWorker() {
  const code = document.getElementById("worker").textContent;
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  return new Worker(policy.createScriptURL(url));
}
