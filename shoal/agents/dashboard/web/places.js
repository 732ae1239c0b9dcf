/* Releases by H3 cell: a slot at a time, value or noise. Cells that were not released are hatched. */
const VIRIDIS = ["#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725"];
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];
const shade = (palette, part) => palette[Math.max(0, Math.min(palette.length - 1, Math.round(part * (palette.length - 1))))];

class Places {
  constructor(view, places) {
    this.view = view; this.P = places; this.noise = false; this.on = null;
    const [id, pattern] = hatching(8);
    this.stage = svg("svg", { viewBox: `-4 -4 1008 ${places.height + 44}`, role: "slider", tabindex: 0, "aria-valuemin": 1, "aria-valuemax": 1, "aria-valuenow": 1, "aria-valuetext": "no cell yet", "aria-label": "cells" });
    this.cells = new Map([...places.cells].map(([g, points]) => { const p = svg("polygon", { points }); p.g = g; return [g, p]; }));
    this.hatch = `url(#${id})`;
    const length = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].filter((k) => k * places.km < 260).at(-1) || 0.1;
    this.ring = svg("polygon", { class: "ring" });
    this.stage.append(svg("defs", {}, pattern), svg("g", {}, ...this.cells.values()), this.ring, svg("path", { class: "length", d: `M${1000 - length * places.km} ${places.height + 12}h${length * places.km}` }), svg("text", { x: 1000 - length * places.km / 2, y: places.height + 34, "text-anchor": "middle", class: "km" }, length + " km"));
    this.slider = el("input", { type: "range", min: 0, max: 0, "aria-label": "Slot", oninput: () => this.draw() });
    this.kinds = [[view.valueName(), false], ["noise on it", true]].map(([text, noise]) => el("button", { type: "button", "aria-pressed": String(!noise), onclick: () => { this.noise = noise; this.kinds.forEach((b, i) => b.setAttribute("aria-pressed", String(!!i === noise))); this.draw(); } }, text));
    this.slot = el("p", {}); this.bar = el("div", { class: "scale", "aria-hidden": "true" }); this.ends = el("div", { class: "ends" }); this.facts = el("dl");
    view.map.replaceChildren(el("p", { class: "first" }, places.first), el("div", { class: "map" }, this.stage, el("div", {}, el("div", { class: "tools" }, ...this.kinds), this.bar, this.ends, this.slot, this.slider, this.facts)));
    this.stage.addEventListener("pointermove", (e) => this.read(e.target.g, e.clientX, e.clientY));
    this.stage.addEventListener("pointerdown", (e) => { this.read(e.target.g, e.clientX, e.clientY); if (e.target.g) { view.choose(e.target.g); } });
    this.stage.addEventListener("pointerleave", () => this.read(null));
    this.stage.addEventListener("blur", () => this.read(null));
    this.stage.addEventListener("keydown", (e) => {
      const names = this.shown, from = Math.max(0, names.indexOf(this.on ?? view.group)), to = keys(e, this.on ? from : from - (MOVES[e.key] ?? 0), names.length);
      if (to != null && names[to]) { const b = this.cells.get(names[to]).getBoundingClientRect(); this.read(names[to], b.right, b.top); }
    });
  }
  at(g, t) { const c = this.view.columns(g), i = c ? c.at.lastIndexOf(t) : -1; return i < 0 ? null : { v: c.v[i], low: c.low[i], high: c.high[i], n: c.n[i], sd: c.sd && c.sd[i], users: c.users?.[i], error: this.error(c.error?.[i]) }; }
  error(e) { return e != null && typeof e === "object" ? byName(e).get(this.view.m.parts[this.view.part]) : e; }
  /* All slots, the one on screen stays where it is unless it was the last; scales are over all slots, so that slots compare. */
  set() {
    this.kinds[0].textContent = this.view.valueName();
    const times = new Set(), numbers = [[], []];
    for (const g of this.view.names) { const c = this.view.columns(g); c.at.forEach((t, i) => { times.add(t); if (c.v[i] != null) { numbers[0].push(c.v[i]); numbers[1].push(half(c.low[i], c.high[i])); } }); }
    const before = this.times, atEnd = !before || +this.slider.value === before.length - 1;
    this.times = [...times].sort((a, b) => a - b);
    this.slider.max = this.times.length - 1;
    if (atEnd) { this.slider.value = before ? this.times.length - 1 : this.fullest(); }
    this.scales = numbers.map((list, noise) => { list.sort((a, b) => a - b); const q = (p) => list[Math.floor((list.length - 1) * p)] ?? p; return noise ? [0, q(0.98)] : [q(0.02), q(0.98)]; });
    this.draw();
  }
  fullest() {
    const counts = new Map();
    for (const g of this.view.names) { const c = this.view.columns(g); c.at.forEach((t, i) => { if (c.v[i] != null) { counts.set(t, (counts.get(t) || 0) + 1); } }); }
    return this.times.reduce((best, t, i) => ((counts.get(t) || 0) >= (counts.get(this.times[best]) || 0) ? i : best), this.times.length - 1);
  }
  draw() {
    const t = this.times[+this.slider.value], k = +this.noise, [lo, hi] = this.scales[k], palette = this.noise ? CIVIDIS : VIRIDIS, widths = [];
    let not = 0;
    this.shown = [];
    this.cells.forEach((p, g) => {
      const r = this.at(g, t);
      p.setAttribute("class", !r ? "nothing" : r.v == null ? "withheld" : "");
      p.style.fill = !r ? "" : r.v == null ? this.hatch : shade(palette, ((this.noise ? half(r.low, r.high) : r.v) - lo) / (hi - lo || 1));
      if (r) { this.shown.push(g); if (r.v == null) { not++; } else { widths.push(half(r.low, r.high)); } }
    });
    widths.sort((a, b) => a - b);
    const m = widths[widths.length >> 1], released = widths.length, step = (hi - lo) / 20, parts = palette.map((c) => { const i = el("i"); i.style.background = c; return i; });
    this.bar.replaceChildren(...parts);
    this.ends.replaceChildren(el("span", {}, (this.noise ? "" : "≤ ") + short(lo, step)), el("span", {}, "≥ " + short(hi, step)));
    this.slot.replaceChildren("slot that ends ", el("b", {}, moment(t)));
    this.slider.setAttribute("aria-valuetext", moment(t));
    const least = this.view.said?.min_users;
    this.facts.replaceChildren(...[["released", many(released, "cell")], ["hatched: not released", many(not, "cell")], [`outlined: ${this.P.absent}`, many(this.cells.size - this.shown.length, "cell")], ["noise in the middle", released ? reaches(m) : "–"], least > 1 ? ["left out below", many(least, "user")] : null].filter(Boolean).flatMap(([a, b]) => [el("dt", {}, a), el("dd", {}, b)]));
    this.stage.setAttribute("aria-label", `${this.view.name} by place, slot that ends ${moment(t)}: ${many(released, "cell")} released, ${not} not`);
    this.stage.setAttribute("aria-valuemax", Math.max(1, this.shown.length));
    this.read(null);
  }
  read(g, x, y) {
    this.on = g || null;
    this.ring.setAttribute("points", g ? this.P.cells.get(g) : "");
    if (!g) { hideTip(); return; }
    const r = this.at(g, this.times[+this.slider.value]), h = r && half(r.low, r.high), came = r && [samples(r.n, r.sd), r.users == null ? null : many(r.users, "user")].filter(Boolean).join(", ");
    const lines = !r ? [this.P.absent, g] : r.v == null ? ["not released", came, g] : [`${short(r.v, h)} ${margin(r.low, r.high)}`, r.error == null ? null : `expected error at worst ${short(r.error, r.error)}`, came, g];
    tip(x, y, lines);
    this.stage.setAttribute("aria-valuenow", Math.max(1, this.shown.indexOf(g) + 1));
    this.stage.setAttribute("aria-valuetext", lines.filter(Boolean).join(", "));
  }
}
