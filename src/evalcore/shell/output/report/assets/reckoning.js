// Numbers of other documents and weights, as evalcore's core makes them: sums, then the fold of the group tree.

/** Σ, with the error of each addition kept (Neumaier). */
function sum(values) {
  let [total, lost] = [0, 0];
  for (const value of values) {
    const next = total + value;
    lost += Math.abs(total) >= Math.abs(value) ? total - next + value : value - next + total;
    total = next;
  }
  return total + lost;
}

const keysOf = (keys) => (typeof keys === "number" ? Array.from({ length: keys }, (_, at) => at) : keys);

const NONE = { value: null, n: 0, size: 0, exact: true };

/** A number that is no ratio of sums, moved by the influences of the documents that are gone. */
function shiftNumber(number, scores, all, dropped, zero) {
  const same = { value: number.value, n: number.n, size: number.size, exact: !(zero.changed && number.lost) };
  if (!dropped.size) return same;
  if (!scores?.i) return { ...same, value: null, exact: false };
  const keys = scores.keys ?? all;
  const gone = scores.i.filter((_, at) => dropped.has(keys[at]));
  const left = number.n - gone.length;
  return left > 0 ? { value: number.value - sum(gone) / left, n: left, size: (number.size * left) / number.n, exact: same.exact && !gone.length } : NONE;
}

/** A task's number without some documents. It is exact for ratios of sums, else of first order by influences. */
function closeNumber(number, scores, all, dropped, zero) {
  if (!number.exact) return shiftNumber(number, scores, all, dropped, zero);
  let { a, b, scored, lost } = number;
  if (dropped.size && scores) {
    const keys = scores.keys ?? all;
    const kept = [...scores.a.keys()].filter((at) => !dropped.has(keys[at]));
    [a, scored] = [sum(kept.map((at) => scores.a[at])), kept.length];
    b = scores.b ? sum(kept.map((at) => scores.b[at])) : scored;
    lost = scores.lost.filter((key) => !dropped.has(key)).length;
  }
  const extra = zero.on && number.zero ? lost : 0;
  b += extra;
  if (!b) return NONE;
  const ratio = (number.factor * a) / b;
  return { value: number.log ? Math.exp(ratio) : ratio, n: scored + extra, size: number.average ? b : scored + extra, exact: !(zero.on && lost && !number.zero) };
}

const LINKS = { plain: [(x) => x, (x) => x], log: [Math.log, Math.exp] };

function shareOf(node, rule, key, tasks, rules, weights) {
  if (!node.children) {
    const found = tasks.get(node.name)?.get(key);
    return Number.isFinite(found?.value) ? { terms: [[node.name, 1]], size: found.size } : { terms: [], size: 0 };
  }
  const parts = node.children.map((child) => {
    const own = child.children ? rules(child, key) : null;
    return { name: child.name, ...shareOf(child, own ?? rule, key, tasks, rules, own ? own.weights : null) };
  });
  const size = (name) => tasks.get(name).get(key).size;
  const weigh = (name, own) => (weights ? (weights[name] ?? 0) : rule.size ? own : 1);
  const leaves = [...new Set(parts.flatMap((part) => part.terms.map(([name]) => name)))];
  const terms =
    rule.over === "leaves"
      ? leaves.map((name) => [name, weigh(name, size(name))])
      : parts.filter((part) => part.terms.length).flatMap((part) => part.terms.map(([name, one]) => [name, one * weigh(part.name, part.size)]));
  const total = sum(terms.map(([, weight]) => weight));
  return { terms: total > 0 ? terms.map(([name, weight]) => [name, weight / total]) : [], size: sum(leaves.map(size)) };
}

/** A group's number: a weighted average where its rule is one, else of first order by the slopes of its tasks. */
function closeGroup(node, rule, key, tasks, before, rules) {
  if (rule.value === null) return { value: null, exact: true };
  const byRule = rule.over && rule.mean && (!rule.pools || Object.keys(rule.slopes).every((name) => before.tasks[name]?.numbers[key]?.average));
  if (!byRule) {
    const moved = Object.entries(rule.slopes).map(([name, slope]) => slope * (tasks.get(name)?.get(key)?.value - before.tasks[name]?.numbers[key]?.value));
    const value = rule.value + sum(moved);
    return { value: Number.isFinite(value) ? value : null, exact: moved.every((one) => one === 0) };
  }
  const spec = rule.pools ? { ...rule, over: "leaves", size: true, weights: null } : rule;
  const { terms } = shareOf(node, spec, key, tasks, rules, spec.weights);
  if (!terms.length) return { value: null, exact: true };
  const links = new Set(terms.map(([name]) => before.tasks[name].numbers[key].link));
  const [forward, inverse] = LINKS[links.size === 1 ? [...links][0] : "plain"] ?? LINKS.plain;
  const merged = new Map();
  for (const [name, weight] of terms) merged.set(name, (merged.get(name) ?? 0) + weight);
  const found = [...merged].map(([name, weight]) => [tasks.get(name).get(key), weight]);
  const partial = listLeaves(node).some((name) => before.tasks[name]?.numbers[key] && !terms.some(([one]) => one === name));
  const n = sum(found.map(([one]) => one.n));
  return { n, value: inverse(sum(found.map(([one, weight]) => weight * forward(one.value)))), exact: !links.has(null) && found.every(([one]) => one.exact), partial };
}

const listLeaves = (node) => (node.children ? node.children.flatMap(listLeaves) : [node.name]);

/** Every group of the trees, once. */
export function listGroups(trees) {
  const out = new Map();
  const visit = (node) => {
    if (!node.children) return;
    out.set(node.name, out.get(node.name) ?? node);
    node.children.forEach(visit);
  };
  trees.forEach(visit);
  return out;
}

/** All numbers under a choice: `without` tasks, `dropped` documents by task, `zero` for lost ones, `weights` by group. */
export function reckon(before, chunks, { without, dropped, zero, weights }) {
  const rule = { on: zero, changed: zero !== (before.rule === "zero") };
  const tasks = new Map();
  for (const [name, task] of Object.entries(before.tasks)) {
    const chunk = chunks.get(name);
    const all = chunk ? keysOf(chunk.keys) : [];
    const close = (key, number) => closeNumber(number, chunk?.numbers[key], all, dropped.get(name) ?? new Set(), rule);
    tasks.set(name, new Map(Object.entries(task.numbers).map(([key, number]) => [key, without.has(name) ? NONE : close(key, number)])));
  }
  const rules = (node, key) => {
    const own = node.rules[key];
    const given = weights.get(node.name);
    return own && given && own.over && !own.pools ? { ...own, over: "children", weights: given } : own?.over ? own : null;
  };
  const groups = new Map();
  for (const [name, node] of listGroups(before.trees)) {
    const close = (key) => closeGroup(node, rules(node, key) ?? node.rules[key], key, tasks, before, rules);
    groups.set(name, new Map(Object.keys(node.rules).map((key) => [key, close(key)])));
  }
  return new Map([...tasks, ...groups]);
}
