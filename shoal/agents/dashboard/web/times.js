/* Times for people, in UTC as releases have them; seconds since 1970. */
const DAY = 86400;
const STEPS = [1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY, 7 * DAY, 14 * DAY];

const FORMATS = new Map();
function utc(s, o) {
  const key = JSON.stringify(o);
  if (!FORMATS.has(key)) { FORMATS.set(key, new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...o })); }
  return FORMATS.get(key).format(s * 1000);
}
const date = (s) => utc(s, { day: "numeric", month: "short", year: "numeric" });
function moment(s) {
  if (s % DAY === 0) { return date(s); }
  return `${date(s)}, ${utc(s, { hour: "2-digit", minute: "2-digit", ...(s % 60 ? { second: "2-digit" } : {}) })}`;
}

/* A length of time in its largest whole unit: "2 weeks". */
function span(s) {
  for (const [l, name] of [[7 * DAY, "week"], [DAY, "day"], [3600, "hour"], [60, "minute"], [1, "second"]]) { if (s && s % l === 0) { return s === l ? name : many(s / l, name); } }
  return s ? s + " seconds" : "";
}
const long = (s) => (s < 90 ? many(Math.round(s), "second") : s < 5400 ? many(Math.round(s / 60), "minute") : s < 2 * DAY ? many(Math.round(s / 3600), "hour") : many(Math.round(s / DAY), "day"));
const ago = (s, now) => (now - s < 5 ? "just now" : long(now - s) + " ago");

/* Times and texts of an axis: whole seconds to days, else months or years; at most `count`. */
function timeTicks(from, to, count) {
  const most = Math.max(1, count), step = STEPS.find((s) => (to - from) / s <= most), out = [];
  if (step) {
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      out.push([t, t % DAY === 0 || step >= DAY ? utc(t, { day: "numeric", month: "short" }) : utc(t, { hour: "2-digit", minute: "2-digit", ...(step < 60 ? { second: "2-digit" } : {}) })]);
    }
    return out;
  }
  const months = [1, 2, 3, 6, 12, 24, 60, 120, 600].find((m) => (to - from) / (m * 30.4 * DAY) <= most) || 6000, d = new Date(from * 1000);
  for (let m = Math.ceil((d.getUTCFullYear() * 12 + d.getUTCMonth()) / months) * months; ; m += months) {
    const t = new Date(0).setUTCFullYear(Math.floor(m / 12), m % 12, 1) / 1000;
    if (t > to) { return out; }
    if (t >= from) { out.push([t, m % 12 === 0 || months >= 12 ? String(Math.floor(m / 12)) : utc(t, { month: "short" })]); }
  }
}
