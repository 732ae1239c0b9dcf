/* The big chart: a line of steps with its noise interval over time. The pointer reads it, or arrow keys: it is a slider
   over its releases, so that screen readers say each as it is reached. */
class Chart {
  constructor(host, about) {
    this.host = host; this.about = about; this.columns = null; this.whole = false; this.cursor = -1; this.id = "chart" + serial++;
    this.stage = svg("svg", { role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": 0, "aria-valuenow": 0, "aria-valuetext": "nothing yet", "aria-label": "releases" });
    host.replaceChildren(this.stage);
    this.stage.addEventListener("pointermove", (e) => { if (this.at) { const px = e.clientX - this.stage.getBoundingClientRect().left; this.read(nearest(this.columns.at, this.at.t(px))); } });
    this.stage.addEventListener("pointerleave", () => this.read(-1));
    this.stage.addEventListener("blur", () => this.read(-1));
    this.stage.addEventListener("keydown", (e) => { if (!this.at) { return; } const n = this.columns.at.length, to = keys(e, this.cursor < 0 ? n : this.cursor, n); if (to != null) { this.read(to); } });
    new ResizeObserver(() => { if (host.clientWidth !== this.width) { this.draw(); } }).observe(host);
  }
  set(columns) { this.columns = columns; this.draw(); }
  draw() {
    const c = this.columns, a = this.about, W = this.width = this.host.clientWidth;
    if (!c || !c.at.length || !W) { return; }
    const H = a.height, B = 22, T = 8, R = 10, mean = a.isMean, slot = a.slot;
    const [y0, y1] = reach([c], this.whole || a.isExact, a.isExact, mean), some = ticks(y0, y1, H / 52), [ys, step] = some[0].length > 1 ? some : ticks(y0, y1, H / 30);
    const L = Math.max(24, ...ys.map((t) => axis(t, step).length * 7 + 12)), [t0, t1] = timeReach(c.at, slot);
    const x = (t) => L + (t - t0) / (t1 - t0) * (W - L - R), y = (v) => T + (y1 - v) / (y1 - y0) * (H - T - B);
    const small = thin(c, Math.max(50, W - L - R), mean, slot), p = paths(small, x, y, t1), end = c.at.length - 1;
    const beyond = small.from.some((_, i) => !small.none[i] && (small.low[i] < y0 || small.high[i] > y1));
    this.at = { x, y, t: (px) => t0 + (px - L) / (W - L - R) * (t1 - t0), T, bottom: H - B };
    for (const [k, v] of [["width", W], ["height", H], ["viewBox", `0 0 ${W} ${H}`], ["aria-label", a.says(c)], ["aria-valuemax", end]]) { this.stage.setAttribute(k, v); }
    const [hatch, pattern] = hatching(7), inside = svg("g", { "clip-path": `url(#${this.id})` });
    inside.append(...p.hatched.map(([from, to]) => svg("rect", { fill: `url(#${hatch})`, x: from, y: T, width: Math.max(3, to - from), height: H - T - B })), svg("path", { class: "band", d: p.band }), svg("path", { class: "line", d: p.line }));
    this.stage.replaceChildren(
      svg("defs", {}, svg("clipPath", { id: this.id }, svg("rect", { x: L, y: T, width: Math.max(0, W - L - R + 6), height: H - T - B })), pattern),
      ...ys.flatMap((t) => [svg("line", { class: t === 0 ? "grid zero" : "grid", x1: L, x2: W - R, y1: y(t), y2: y(t) }), svg("text", { x: L - 8, y: y(t) + 4, "text-anchor": "end" }, axis(t, step))]),
      ...(end ? timeTicks(t0, c.at[end], (W - L) / 90) : [[c.at[0], moment(c.at[0])]]).map(([t, s]) => svg("text", { x: Math.min(W - R - 22, Math.max(L + (end ? 14 : 50), x(t))), y: H - 5, "text-anchor": "middle" }, s)), inside);
    if (!small.none.at(-1)) { this.stage.append(svg("circle", { class: "dot", cx: x(c.at[end]), cy: Math.max(T, Math.min(H - B, y(c.v[end]))), r: 4.5 })); }
    a.notes?.({ hatched: p.hatched.length > 0, beyond: beyond && !this.whole, gaps: small.none.includes(1), stride: c.stride });
    this.tell(this.cursor < 0 ? end : Math.min(this.cursor, end));
    if (this.cursor >= 0) { this.read(Math.min(this.cursor, end)); }
  }
  tell(i) { this.stage.setAttribute("aria-valuenow", i); this.stage.setAttribute("aria-valuetext", this.about.tells(this.columns, i).filter(Boolean).join(", ")); }
  read(i) {
    this.stage.querySelector(".at")?.remove();
    this.cursor = i;
    if (i < 0 || !this.at) { hideTip(); return; }
    const c = this.columns, { x, y, T, bottom } = this.at, px = x(c.at[i]), known = c.v[i] != null && !empty(c, i, this.about.isMean), py = known ? Math.max(T, Math.min(bottom, y(c.v[i]))) : (T + bottom) / 2;
    this.stage.append(svg("g", { class: "at" }, svg("line", { class: "cursor", x1: px, x2: px, y1: T, y2: bottom }), ...(known ? [svg("circle", { class: "dot", cx: px, cy: py, r: 4 })] : [])));
    const box = this.stage.getBoundingClientRect();
    tip(box.left + px, box.top + py, this.about.tells(c, i));
    this.tell(i);
  }
}

/* A small multiple: no axes, one scale for all of them. */
function spark(c, scale, isMean, slot, W = 160, H = 44) {
  const x = (t) => (t - scale.t0) / (scale.t1 - scale.t0) * W, y = (v) => Math.max(-50, Math.min(H + 50, (scale.y1 - v) / (scale.y1 - scale.y0) * H)), p = paths(thin(c, W / 2, isMean, slot), x, y, Math.min(scale.t1, timeReach(c.at, slot)[1]));
  return svg("svg", { viewBox: `0 0 ${W} ${H}`, width: "100%", height: H, preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path", { class: "band", d: p.band }), svg("path", { class: "line", d: p.line, "vector-effect": "non-scaling-stroke" }));
}

/* A distribution: the share of each bin with its noise interval. */
function histogram(host, shares, range) {
  const [v, low, high] = shares, W = host.clientWidth || 600, H = 150, T = 6, B = 20, L = 44, R = 8, n = v.length;
  const top = Math.max(1e-9, ...v, ...high.map((x) => Math.min(1, x))), [ys, step] = ticks(0, top, 3), y = (s) => H - B - Math.max(0, Math.min(1, s / top)) * (H - T - B), w = (W - L - R) / n;
  const most = v.indexOf(Math.max(...v)), edge = (i) => (range ? range[0] + (range[1] - range[0]) * i / n : i);
  const stage = svg("svg", { width: W, height: H, viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `shares of ${n} bins; the largest is ${percent(v[most])}, from ${short(edge(most))} to ${short(edge(most + 1))}` });
  stage.append(...ys.flatMap((t) => [svg("line", { class: "grid", x1: L, x2: W - R, y1: y(t), y2: y(t) }), svg("text", { x: L - 8, y: y(t) + 4, "text-anchor": "end" }, percent(t))]),
    ...v.map((s, i) => svg("rect", { class: "bin", x: L + i * w + 0.5, y: y(s), width: Math.max(1, w - 1), height: Math.max(0, H - B - y(s)) })),
    svg("path", { class: "whisker", d: v.map((_, i) => `M${(L + (i + 0.5) * w).toFixed(1)} ${y(low[i]).toFixed(1)}V${y(high[i]).toFixed(1)}`).join("") }),
    ...(range ? ticks(range[0], range[1], W / 90)[0].map((t) => svg("text", { x: L + (t - range[0]) / (range[1] - range[0]) * (W - L - R), y: H - 4, "text-anchor": "middle" }, axis(t, (range[1] - range[0]) / 5))) : []));
  host.replaceChildren(stage);
}
