"use strict";
/* Numbers for people: with as many digits as their noise leaves meaning in. */

const minus = (text) => text.replace("-", "\u2212");
const half = (low, high) => (high - low) / 2;
const many = (n, one, more) => n.toLocaleString("en") + " " + (n === 1 ? one : more || one + "s");

/* Decimals that show a multiple of `step`. */
const decimals = (step) => Math.max(0, Math.min(9, Math.ceil(-Math.log10(step) - 1e-9)));

/* A number rounded to half of a margin's leading digit; without a margin it is exact, and whole if it is large. */
function short(x, margin, round = Math.round) {
  if (x == null) { return "–"; }
  const step = margin > 0 ? 10 ** Math.floor(Math.log10(margin / 2) + 1e-9) : Number.isInteger(x) || Math.abs(x) >= 1000 ? 1 : 10 ** (Math.floor(Math.log10(Math.abs(x))) - 3);
  if (Math.abs(x) >= 1e7 && step >= 1e4) { return minus((round(x / step) * step / 1e6).toFixed(Math.max(0, 6 - Math.round(Math.log10(step))))) + " M"; }
  const n = decimals(step);
  return minus((round(x / step) * step || 0).toLocaleString("en", { maximumFractionDigits: n, minimumFractionDigits: n }));
}

/* What says how far noise reaches is rounded outward: fewer digits never make it smaller than it is, but for what floats lose. */
const below = (x, margin) => short(x, margin, (n) => Math.floor(n + 1e-6));
const above = (x, margin) => short(x, margin, (n) => Math.ceil(n - 1e-6));
const reaches = (margin) => "± " + above(margin, margin);

/* "± 1.5", or that it is exact. */
const margin = (low, high) => (low == null || high == null ? "" : high > low ? reaches(half(low, high)) : "exact");

/* What a number of samples is called; where presence is protected, it has noise of its own. */
function samples(n, sd) {
  if (n == null) { return ""; }
  if (sd != null) { return `about ${short(n, 2 * sd)} ${reaches(2 * sd)} samples`; }
  return many(Math.round(n * 100) / 100, "sample");
}

/* A part in percent. */
const percent = (share) => (share * 100).toLocaleString("en", { maximumFractionDigits: share < 0.1 ? 1 : 0 }) + " %";

/* At most `count` numbers of an axis between low and high, and their distance. */
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((f) => f * power >= raw * (1 - 1e-9)) * power, out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; i++) { out.push(i === 0 ? 0 : i * step); }
  return [out, step];
}
const axis = (x, step) => minus(Math.abs(x) >= 1e6 ? (x / 1e6).toLocaleString("en", { maximumFractionDigits: 2 }) + " M" : x.toLocaleString("en", { maximumFractionDigits: decimals(step) }));
