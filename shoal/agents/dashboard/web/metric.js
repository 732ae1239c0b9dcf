/* One metric on the page: its last number, the chart, groups, places and tables. */
class View {
  constructor(m) {
    this.name = m.name; this.group = null; this.part = Math.max(0, m.parts.indexOf("quantile 0.5")); this.dirty = true; this.visible = false;
    this.now = el("div", { class: "now" }); this.body = el("div"); this.map = el("div"); this.says = el("p");
    this.box = el("article", { id: "m-" + m.name, class: "card", "aria-labelledby": "h-" + m.name }, el("div", { class: "top" }, el("div", {}, el("h2", { id: "h-" + m.name }, m.name), this.says), this.now), this.map, this.body);
    this.update(m);
    this.build();
  }
  update(m) { this.m = m; this.said = m.said; this.names = [...m.groups.keys()]; this.cache = new Map(); this.slots = null; this.ended = null; this.dirty = true; this.says.textContent = saysMetric(m) + (m.version > 1 ? `; version ${m.version}` : ""); }
  get statistic() { return this.said?.statistic ?? ""; }
  get isExact() { return this.m.facts.mechanism === "exact" || !!this.said?.is_public; }
  get kind() {
    const part = this.m.parts[this.part], s = this.statistic;
    if (this.isExact) { return "exact"; }
    if (/variance/.test(part)) { return "variance"; }
    return s ? (/sum|count|users/.test(s) ? "sum" : "mean") : this.isMean ? "mean" : "sum";
  }
  get isMean() { return this.said ? /mean|variance|distribution/.test(this.statistic) : [undefined, "gaussian", "laplace"].includes(this.m.facts.mechanism); }
  get range() { const r = this.said?.ranges ?? []; return this.kind === "mean" ? r[r.length > 1 ? this.part : 0] ?? null : null; }
  /* The length of a slot, of a statistic that is released once for each; 0 of all others. */
  get slot() {
    const isSlot = this.said ? this.said.is_slot : [...this.m.groups.values()].some((g) => "users" in (g[7] ?? {}));
    return !isSlot ? 0 : this.said?.every ?? (this.slots ??= slotOf(this.names.map((g) => this.columns(g))));
  }
  /* Whether a release is of one period alone: of a slot, or of a window as long as a step. */
  get isOfPeriods() { return !!this.slot || (this.said?.decay === "window" && this.said.length === this.said.every); }
  /* The end of the period that numbers are shown of; null: the last release of each group. */
  get end() { return this.isOfPeriods ? (this.ended ??= completeEnd(this.names.map((g) => this.columns(g)), S.live)) : null; }
  get height() { return this.isExact ? 150 : this.names.length > 1 ? 200 : 250; }
  valueName() { const parts = this.m.parts; return this.m.label && !this.part ? this.m.label : parts.length > 1 ? this.partName(this.part) : this.said?.values[0] ?? "value"; }
  partName(i) { const name = this.m.parts[i]; return /^\d+$/.test(name) ? this.said?.values[i] ?? `coordinate ${name}` : name; }
  columns(g) { if (!this.cache.has(g)) { const row = this.m.groups.get(g); this.cache.set(g, row ? columns(row, this.part) : null); } return this.cache.get(g); }
  /* The groups that have a number now: of periods, in the last complete one. */
  rows() { return this.names.map((g) => ({ g, ...(last(this.columns(g), this.isMean, this.end) ?? { none: true }) })).filter((r) => !r.none); }
  /* The number first, then what it is worth. */
  tells(c, i) {
    const when = moment(c.at[i]);
    if (c.v[i] == null) { return ["no release", samples(c.n[i], c.sd && c.sd[i]), when]; }
    if (empty(c, i, this.isMean)) { return ["nothing known yet", when]; }
    const h = half(c.low[i], c.high[i]);
    return [`${short(c.v[i], h)} ${c.low[i] == null || this.isExact ? "" : margin(c.low[i], c.high[i])}`.trim(), c.low[i] != null && c.high[i] > c.low[i] ? `noise ${below(c.low[i], h)} to ${above(c.high[i], h)}` : null, this.isExact ? null : samples(c.n[i], c.sd && c.sd[i]), when];
  }
  build() {
    const parts = this.m.parts.length > 1, isMany = this.names.length > 1, view = this;
    this.noteBox = el("span", { class: "grow" }); this.title = el("b");
    this.wide = el("button", { type: "button", "aria-pressed": "false", onclick: () => { this.chart.whole = !this.chart.whole; this.wide.setAttribute("aria-pressed", String(this.chart.whole)); this.chart.draw(); } }, "all of the noise");
    const pick = parts ? el("select", { "aria-label": `Part of ${this.name}`, onchange: (e) => { this.part = +e.target.value; this.cache.clear(); this.draw(); } }, ...this.m.parts.map((_, i) => el("option", { value: i, selected: i === this.part }, this.partName(i)))) : null;
    const plot = el("div", { class: "plot" });
    this.chart = new Chart(plot, { get height() { return view.height; }, get isExact() { return view.isExact; }, get isMean() { return view.isMean; }, get slot() { return view.slot; }, tells: (c, i) => this.tells(c, i), says: (c) => `${this.label()}: ${many(c.total, "release")} from ${moment(c.at[0])} to ${moment(c.at.at(-1))}; arrow keys read them`, notes: (n) => this.note(n) });
    this.rankBox = el("div", { class: "plot" });
    this.shares = el("div", { class: "plot" });
    this.grid = new Grid({ columns: (g) => this.columns(g), pick: (g) => this.choose(g), get isMean() { return view.isMean; }, get isExact() { return view.isExact; }, get slot() { return view.slot; }, get count() { return view.names.length; } });
    this.ranking = new Ranking(this.rankBox, { get range() { return view.range; }, pick: (g) => this.choose(g), tells: (r) => [r.g, `${short(r.v, half(r.low, r.high))} ${margin(r.low, r.high)}`, samples(r.n, r.sd)] });
    this.table = el("div", { class: "rows" }); this.events = el("div", { class: "rows" });
    this.tableBox = el("details", { ontoggle: () => this.fillTable() }, el("summary", {}, "last releases as a table"), this.table);
    this.eventBox = el("details", {}, el("summary", {}, "activations"), this.events);
    this.body.replaceChildren(...[this.rankBox, el("div", { class: "tools" }, this.title, pick, this.noteBox, this.wide), plot, this.shares, ...(isMany ? [this.grid.tools, this.grid.frame, this.grid.more] : []), this.tableBox, this.eventBox]);
    this.isMany = isMany;
    this.places = this.m.places?.cells ? new Places(this, this.m.places) : null;
    if (this.m.places?.missing) { this.map.replaceChildren(el("p", { class: "quiet" }, this.m.places.missing)); }
  }
  label() { return this.name + (this.group ? " " + this.group : "") + (this.m.parts.length > 1 ? ", " + this.partName(this.part) : ""); }
  note({ hatched, beyond, gaps, stride }) {
    const said = [hatched ? "hatched: nothing known yet, only the middle of the range" : null, gaps ? "gaps: no release" : null, stride > 1 ? `one release in ${stride} is drawn` : null, beyond ? el("span", { class: "odd" }, "where noise is far wider than usual, it reaches beyond the axis") : null].filter(Boolean);
    this.noteBox.replaceChildren(...said.flatMap((x, i) => (i ? ["; ", x] : [x])));
    this.wide.hidden = this.isExact || !(beyond || this.chart.whole);
  }
  choose(g) { if (this.m.groups.has(g)) { this.group = g; this.draw(); } }
  /* All of it; `later`, if given, takes what may wait for another frame. */
  draw(later = (work) => work()) {
    this.dirty = false; this.ended = null;
    if (this.isMany !== this.names.length > 1) { this.build(); }
    const rows = this.rows();
    if (this.group == null || !this.m.groups.has(this.group)) { this.group = (rows.length ? rows.reduce((a, b) => (ORDERS.samples[1](a, b) <= 0 ? a : b)).g : this.names[0]) ?? null; }
    const c = this.group == null ? null : this.columns(this.group);
    if (!c) { return; }
    this.chart.set(c);
    this.head(c);
    this.title.textContent = this.names.length > 1 ? this.group || "all" : "";
    const shares = this.m.distribution.get(this.group);
    this.shares.hidden = !shares;
    if (shares) { histogram(this.shares, shares, this.said?.ranges[0]); }
    if (this.names.length > 1) { later(() => this.grid.set(rows, this.group)); }
    this.rankBox.hidden = rows.length <= FIRST;
    if (rows.length > FIRST) { later(() => this.ranking.set(rows, this.group)); }
    if (this.places) { later(() => this.places.set()); }
    this.fillTable();
    this.fillEvents();
  }
  head(c) {
    const r = last(c, this.isMean, this.end) ?? last(c, this.isMean), isEarlier = r.at < c.at.at(-1), h = half(r.low, r.high), x = c.extras, held = x.withheld && x.withheld.samples > 0 ? `${many(x.withheld.samples, "further sample")} (${percent(x.withheld.share)}) came and do not count, or not yet` : null, doubts = doubt(r, this.kind, this.range);
    const why = r.v == null ? (r.sd != null ? "no release: too few samples for the noise" : "no release") : r.none ? "nothing known yet" : null;
    this.now.replaceChildren(el("b", {}, why ? "–" : short(r.v, h)), why || this.isExact || r.low == null ? "" : el("span", {}, " " + margin(r.low, r.high)), el("small", {}, [this.names.length > 1 ? this.group || "all" : null, why, this.isExact ? null : samples(r.n, r.sd), moment(r.at)].filter(Boolean).join(", ")), ...[isEarlier ? el("small", {}, "the last period may be cut off; the chart has it") : "", x.clip != null ? el("small", {}, `clipped at ${short(x.clip)}, an end that was chosen in private`) : "", doubts ? el("small", { class: "odd" }, doubts) : "", held ? el("small", {}, held) : ""]);
  }
  fillTable() {
    if (!this.tableBox.open) { return; }
    const c = this.columns(this.group), at = [...c.at.keys()].slice(-15).reverse(), noisy = c.sd != null;
    const number = (x, h, text = short) => el("td", { class: "n" }, text(x, h));
    this.table.replaceChildren(table(["at", "value", "noise from", "to", noisy ? "samples, about" : "samples"], at.map((i) => { const h = half(c.low[i], c.high[i]); return el("tr", {}, el("td", {}, moment(c.at[i])), ...(empty(c, i, this.isMean) ? [el("td", { class: "n", colspan: 3 }, "nothing known yet")] : [number(c.v[i], h), number(c.low[i], h, below), number(c.high[i], h, above)]), number(c.n[i], noisy ? 2 * c.sd[i] : 0)); })));
  }
  fillEvents() {
    const list = this.m.activations;
    this.eventBox.hidden = !list.length;
    this.eventBox.firstChild.textContent = `${many(this.m.activated, "activation")}: what began to count, and when`;
    this.events.replaceChildren(table(["at", "group", "what", "around", "ε"], list.slice(-30).reverse().map(([at, g, level, kind, prior, epsilon]) => el("tr", {}, el("td", {}, moment(at)), el("td", {}, g || "–"), el("td", {}, kind === "shown" ? "its key is shown" : kind === "clip" ? "its range ends" : `level ${level}`), el("td", { class: "n" }, prior == null ? "–" : [prior].flat().map((x) => short(x)).join(", ")), el("td", { class: "n" }, epsilon == null ? "–" : String(+epsilon.toPrecision(3))))), 3));
  }
}
