// Numbers as people read them.

/** A value with four decimals, a large one with one; few digits where there are very many. */
export function number(value, digits = 4) {
  if (value == null) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size >= 1000 && size < 1e7) return value.toLocaleString("en-US", { maximumFractionDigits: 1 }).replace("-", "−");
  const text = size !== 0 && (size < 1e-4 || size >= 1e7) ? value.toPrecision(3) : value.toFixed(digits);
  return text.replace("-", "−");
}

/** An interval, or nothing where there is none. */
export function interval(ci, digits = 4) {
  return ci ? `${number(ci[0], digits)} to ${number(ci[1], digits)}` : "–";
}

/** A count with separators. */
export function count(value) {
  return value == null ? "–" : value.toLocaleString("en-US");
}

/** The level of an interval. */
export function level(confidence) {
  return `${Number((100 * confidence).toFixed(4))} %`;
}

/** A share in percent. */
export function percent(share) {
  return share == null ? "–" : `${(100 * share).toFixed(share > 0 && share < 0.01 ? 2 : 1)} %`;
}
