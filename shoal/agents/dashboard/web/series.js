/* A group's releases as columns, and what can be told of them without drawing.
   A column set is {at, v, low, high, n, sd, seq, total, stride}; unknown(i) is a release that says nothing yet. */

/* A JSON object whose keys are names from data, as a Map. As keys of plain objects, `constructor` and `__proto__` would
   find what every object inherits. */
const byName = (object) => new Map(Object.entries(object ?? {}));

/* One part of a group's columns, as the server sends them. */
const columns = (row, part) => ({ seq: row[0], total: row[1], stride: row[2], at: row[3], n: row[4], sd: row[5], v: row[6][part][0], low: row[6][part][1], high: row[6][part][2], extras: row[7] || {}, users: row[8] && row[8][0], error: row[8] && row[8][1] });

/* Whether a release is only the middle of its range, for nothing has come: of a mean. */
const empty = (c, i, isMean) => isMean && c.n[i] === 0 && c.sd == null;

/* The last release of a group; with an end, the one of the period that ends there, or null. */
function last(c, isMean, end = null) {
  const i = end == null ? c.at.length - 1 : c.at.lastIndexOf(end);
  return i < 0 ? null : { at: c.at[i], v: c.v[i], low: c.low[i], high: c.high[i], n: c.n[i], sd: c.sd && c.sd[i], none: c.v[i] == null || empty(c, i, isMean) };
}

/* The end of the last complete period, of groups with a release for each period. The last period of a file may have been cut off
   by the end of the file. So may that of a stream which has less than half of the samples of those before it. */
function completeEnd(list, isLive) {
  const totals = new Map();
  for (const c of list) { c.at.forEach((t, i) => totals.set(t, (totals.get(t) ?? 0) + (c.n[i] ?? 0))); }
  const ends = [...totals.keys()].sort((a, b) => a - b), before = ends.slice(-8, -1).map((t) => totals.get(t)).sort((a, b) => a - b);
  const isShort = before.length && (!isLive || totals.get(ends.at(-1)) < before[before.length >> 1] / 2);
  return ends.at(isShort ? -2 : -1) ?? null;
}

/* One row per pixel: the last value in it, and all that noise intervals reach in it. Gaps stay gaps.
   A release holds until the next one, or, where `slot` is a length of time, it is of the slot that it ends, and of no other. */
function thin(c, width, isMean, slot = 0) {
  const out = { from: [], to: [], v: [], low: [], high: [], none: [] }, first = c.at[0], whole = Math.max(1e-9, c.at[c.at.length - 1] - first), keep = c.at.length <= width;
  let before = -1;
  for (let i = 0; i < c.at.length; i++) {
    const px = keep ? i : Math.floor((c.at[i] - first) / whole * width), none = c.v[i] == null ? 1 : empty(c, i, isMean) ? 2 : 0;
    const j = out.from.length - 1;
    if (px !== before || none || out.none[j]) {
      out.from.push(c.at[i] - slot); out.v.push(c.v[i]); out.low.push(c.low[i]); out.high.push(c.high[i]); out.none.push(none);
    } else {
      out.v[j] = c.v[i]; out.low[j] = Math.min(out.low[j], c.low[i]); out.high[j] = Math.max(out.high[j], c.high[i]);
    }
    out.to[out.from.length - 1] = slot ? c.at[i] : null;
    before = px;
  }
  return out;
}

/* What an axis shows: the noise of all releases but those with far more noise than most; zero too, if it is asked for. */
function reach(list, whole, zero, isMean) {
  const widths = [];
  const unknown = (c, i) => (c.none ? c.none[i] === 2 : empty(c, i, isMean));
  for (const c of list) { for (let i = 0; i < c.v.length; i++) { if (c.v[i] != null && !unknown(c, i)) { widths.push(c.high[i] - c.low[i]); } } }
  widths.sort((a, b) => a - b);
  const most = whole || !widths.length ? Infinity : 2.5 * widths[widths.length >> 1] + 1e-12;
  let low = Infinity, high = -Infinity;
  for (const c of list) {
    for (let i = 0; i < c.v.length; i++) {
      if (c.v[i] == null || (!whole && unknown(c, i)) || c.high[i] - c.low[i] > most) { continue; }
      low = Math.min(low, c.low[i] ?? c.v[i]); high = Math.max(high, c.high[i] ?? c.v[i]);
    }
  }
  if (low === Infinity) { const c = list.find((each) => each.v.some((x) => x != null)), i = c ? c.v.findLastIndex((x) => x != null) : -1; [low, high] = c ? [c.low[i] ?? c.v[i], c.high[i] ?? c.v[i]] : [0, 1]; }
  if (zero) { low = Math.min(0, low); high = Math.max(0, high); }
  if (high - low < 1e-9 * Math.max(1, Math.abs(high))) { const m = Math.abs(high) * 0.05 || 1; low -= m; high += m; }
  const pad = (high - low) * 0.07;
  return [zero && low === 0 ? 0 : low - pad, zero && high === 0 ? 0 : high + pad];
}

/* From the first release to a little beyond the last, for it holds until the next one; or from the first slot to the last. */
function timeReach(at, slot = 0) {
  const first = at[0], end = at[at.length - 1], step = at.length > 1 ? end - at[at.length - 2] : 1;
  return slot ? [first - slot, end] : [first, end + (end > first ? Math.min(step, (end - first) * 0.03) : 1)];
}

/* The length of a slot, as releases show it: the shortest time between two of a group's. */
function slotOf(columns) {
  let least = Infinity;
  for (const c of columns) { for (let i = 1; i < c.at.length; i++) { least = Math.min(least, c.at[i] - c.at[i - 1]); } }
  return least === Infinity ? 1 : least;
}

/* The release nearest in time. */
function nearest(at, t) {
  let lo = 0, hi = at.length - 1;
  while (lo < hi) { const m = (lo + hi) >> 1; if (at[m] < t) { lo = m + 1; } else { hi = m; } }
  return lo > 0 && t - at[lo - 1] < at[lo] - t ? lo - 1 : lo;
}

/* A line of steps with its band, as paths; hatched stretches of which nothing is known. Breaks where nothing is released. */
function paths(c, x, y, end) {
  let line = "", bands = "", band = [], open = false;
  const hatched = [], px = (t) => x(t).toFixed(1);
  const shut = (t) => {
    if (open) { line += "H" + px(t); }
    if (band.length) { band.push([px(t), band.at(-1)[1], band.at(-1)[2]]); bands += "M" + band.map((b) => b[0] + " " + b[1]).join("L") + "L" + band.reverse().map((b) => b[0] + " " + b[2]).join("L") + "Z"; band = []; }
    open = false;
  };
  for (let i = 0; i < c.from.length; i++) {
    const before = i ? c.to[i - 1] : null, to = c.to[i] ?? (i + 1 < c.from.length ? c.from[i + 1] : end);
    if (open && before != null && before < c.from[i] - 1e-6) { shut(before); }
    if (c.none[i]) {
      if (open) { shut(c.from[i]); }
      if (c.none[i] === 2) { const h = hatched.at(-1); if (h && x(c.from[i]) - h[1] < 0.2) { h[1] = x(to); } else { hatched.push([x(c.from[i]), x(to)]); } }
      continue;
    }
    const at = px(c.from[i]), pv = y(c.v[i]).toFixed(1);
    line += open ? "H" + at + "V" + pv : "M" + at + " " + pv;
    if (c.low[i] != null && c.high[i] != null) {
      if (band.length) { band.push([at, band.at(-1)[1], band.at(-1)[2]]); }
      band.push([at, y(c.high[i]).toFixed(1), y(c.low[i]).toFixed(1)]);
    }
    open = true;
  }
  if (open) { shut(c.to.at(-1) ?? end); }
  return { line, band: bands, hatched };
}

const ORDERS = {
  samples: ["most samples first", (a, b) => (b.n ?? 0) - (a.n ?? 0) || b.v - a.v], high: ["highest first", (a, b) => b.v - a.v], low: ["lowest first", (a, b) => a.v - b.v],
  sure: ["least noise first", (a, b) => a.high - a.low - b.high + b.low], name: ["by name", (a, b) => (a.g < b.g ? -1 : 1)],
};

/* Of groups by their last estimate: the median, how many are clear of it, and how many of these noise alone may have made. */
function outliers(rows) {
  const mid = rows.map((r) => r.v).sort((a, b) => a - b)[rows.length >> 1];
  const isClear = (r) => r.low > mid || r.high < mid, clear = rows.filter(isClear).length;
  return { mid, isClear, clear, chance: Math.min(clear, Math.round(rows.length / 20)) };
}
function outlierWords(n, found) {
  const rest = n - found.clear;
  return `${found.clear.toLocaleString("en")} clear of the median${found.clear ? `, where noise alone would give up to ${Math.max(1, Math.round(n / 20)).toLocaleString("en")}` : ""}; ${rest.toLocaleString("en")} within noise of it`;
}

/* What must be said of a release before anyone uses it; null if nothing. */
function doubt(r, kind, range) {
  if (!r || r.none || r.low == null) { return null; }
  const h = half(r.low, r.high);
  if (!(h > 0)) { return null; }
  if (kind === "sum") { return r.low <= 0 && r.high >= 0 ? "zero is within the noise" : null; }
  if (range && h > (range[1] - range[0]) / 4) { return "noise as wide as half of the range: not of use"; }
  return kind === "variance" && r.low <= 0 ? "zero is within the noise" : null;
}
