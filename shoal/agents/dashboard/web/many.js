/* Many groups: a ranking by the last estimate, and small multiples that appear as they are needed. */

/* From the lowest estimate to the highest, and as much around as most noise needs; what reaches further is cut at the edge. */
function rankReach(rows, range) {
  const at = (list, q) => list.sort((a, b) => a - b)[Math.floor((list.length - 1) * q)], v = rows.map((r) => r.v);
  const low = Math.min(at(v, 0.005), at(rows.map((r) => r.low ?? r.v), 0.15)), high = Math.max(at(v, 0.995), at(rows.map((r) => r.high ?? r.v), 0.85)), pad = (high - low) * 0.05 || 1, room = range ? (range[1] - range[0]) * 0.2 : 0;
  return range ? [Math.max(low - pad, range[0] - room), Math.min(high + pad, range[1] + room)] : [low - pad, high + pad];
}

/* All groups by their last estimate. A slider over ranks: arrow keys read it, Enter shows the group. */
class Ranking {
  constructor(host, about) {
    this.host = host; this.about = about; this.rows = []; this.cursor = -1;
    this.stage = svg("svg", { class: "rank", role: "slider", tabindex: 0, "aria-valuemin": 1, "aria-valuemax": 1, "aria-valuenow": 1, "aria-valuetext": "nothing yet", "aria-label": "groups by estimate" });
    this.words = el("p", { class: "under" });
    host.replaceChildren(this.stage, this.words);
    this.stage.addEventListener("pointermove", (e) => this.read(this.near(e)));
    this.stage.addEventListener("pointerleave", () => this.read(-1));
    this.stage.addEventListener("blur", () => this.read(-1));
    this.stage.addEventListener("click", (e) => { const r = this.rows[this.near(e)]; if (r) { about.pick(r.g); } });
    this.stage.addEventListener("keydown", (e) => {
      const n = this.rows.length, from = this.cursor < 0 ? Math.max(0, this.rows.findIndex((r) => r.g === this.chosen)) : this.cursor, to = keys(e, from, n);
      if (to != null) { this.read(to); } else if ((e.key === "Enter" || e.key === " ") && this.rows[from]) { e.preventDefault(); about.pick(this.rows[from].g); }
    });
    new ResizeObserver(() => { if (host.clientWidth !== this.width) { this.draw(); } }).observe(host);
  }
  near(e) { const { L, R, W } = this.at, n = this.rows.length; return Math.max(0, Math.min(n - 1, Math.floor((e.clientX - this.stage.getBoundingClientRect().left - L) / (W - L - R) * n))); }
  set(rows, chosen) { this.rows = rows.slice().sort((a, b) => a.v - b.v); this.chosen = chosen; this.draw(); }
  draw() {
    const rows = this.rows, n = rows.length, W = this.width = this.host.clientWidth, H = 200, T = 8, B = 6, R = 8;
    if (!n || !W) { return; }
    const [y0, y1] = rankReach(rows, this.about.range), [ys, step] = ticks(y0, y1, 4), L = Math.max(...ys.map((t) => axis(t, step).length)) * 7 + 12;
    const x = (i) => (L + (i + 0.5) / n * (W - L - R)).toFixed(1), y = (v) => Math.max(T, Math.min(H - B, T + (y1 - v) / (y1 - y0) * (H - T - B))).toFixed(1), found = outliers(rows);
    const bars = (some) => some.map(([r, i]) => (r.low == null ? "" : `M${x(i)} ${y(r.low)}V${y(r.high)}`)).join(""), dots = (some) => some.map(([r, i]) => `M${x(i)} ${y(r.v)}h0`).join("");
    const sure = [], vague = [];
    rows.forEach((r, i) => (found.isClear(r) ? sure : vague).push([r, i]));
    const thick = n > 300 ? 2.4 : 4.5, i = rows.findIndex((r) => r.g === this.chosen), on = i < 0 ? [] : [[rows[i], i]];
    this.at = { L, R, W, x, y };
    for (const [k, v] of [["width", W], ["height", H], ["viewBox", `0 0 ${W} ${H}`], ["aria-valuemax", n]]) { this.stage.setAttribute(k, v); }
    this.words.textContent = `${many(n, "group")}, lowest first: ${outlierWords(n, found)}`;
    this.stage.setAttribute("aria-label", this.words.textContent);
    this.stage.replaceChildren(
      ...ys.flatMap((t) => [svg("line", { class: "grid", x1: L, x2: W - R, y1: y(t), y2: y(t) }), svg("text", { x: L - 8, y: +y(t) + 4, "text-anchor": "end" }, axis(t, step))]),
      svg("path", { class: "bars vague", d: bars(vague) }), svg("path", { class: "bars", d: bars(sure) }), svg("path", { class: "dots vague", d: dots(vague), "stroke-width": thick }), svg("path", { class: "dots", d: dots(sure), "stroke-width": thick + 0.6 }),
      svg("line", { class: "mid", x1: L, x2: W - R, y1: y(found.mid), y2: y(found.mid) }), svg("g", { class: "on" }, svg("path", { class: "bars", d: bars(on) }), svg("path", { class: "dots", d: dots(on), "stroke-width": 9 })));
    this.tell(Math.max(0, this.cursor < 0 ? i : Math.min(this.cursor, n - 1)));
  }
  tell(i) { this.stage.setAttribute("aria-valuenow", i + 1); this.stage.setAttribute("aria-valuetext", this.about.tells(this.rows[i]).filter(Boolean).join(", ")); }
  read(i) {
    this.stage.querySelector(".cursor")?.remove();
    this.cursor = i;
    const r = this.rows[i];
    if (!r || !this.at) { hideTip(); return; }
    const box = this.stage.getBoundingClientRect(), px = +this.at.x(i);
    this.stage.append(svg("line", { class: "cursor", x1: px, x2: px, y1: 8, y2: 194 }));
    tip(box.left + px, box.top + +this.at.y(r.v), this.about.tells(r));
    this.tell(i);
  }
}

const FIRST = 24, CHUNK = 16, KEPT = 96, ASKED = 100, POINTS = 60;
/* Small multiples of the groups that are asked for: a first few, and on demand all of them, in a frame that makes them as it is scrolled. */
class Grid {
  constructor(about) {
    this.about = about; this.order = "samples"; this.find = ""; this.all = false; this.rows = []; this.made = 0;
    this.cells = el("div", { class: "multiples" });
    this.frame = el("div", { class: "frame" }, this.cells);
    this.more = el("button", { type: "button", "aria-expanded": "false", onclick: () => { this.all = !this.all; this.draw(); } });
    this.found = el("span", { role: "status", class: "quiet" });
    this.finder = el("input", { type: "search", placeholder: "find a group", "aria-label": "Find a group", oninput: (e) => { this.find = e.target.value.toLowerCase(); this.draw(); } });
    this.tools = el("div", { class: "tools" }, this.finder,
      el("select", { "aria-label": "Order of groups", onchange: (e) => { this.order = e.target.value; this.draw(); } }, ...Object.entries(ORDERS).map(([value, [text]]) => el("option", { value }, text))), this.found);
    this.frame.addEventListener("scroll", () => this.fill(), { passive: true });
  }
  set(rows, chosen) { this.source = rows; this.chosen = chosen; this.draw(); }
  draw() {
    const top = this.all ? this.frame.scrollTop : 0, made = this.made, a = this.about;
    this.rows = this.source.filter((r) => r.g.toLowerCase().includes(this.find)).sort(ORDERS[this.order][1]);
    const every = Math.ceil(this.rows.length / ASKED), list = this.rows.filter((_, i) => i % every === 0).map((r) => a.columns(r.g));
    const [y0, y1] = reach(list.map((c) => thin(c, POINTS, a.isMean)), false, a.isExact, a.isMean);
    this.scale = { y0, y1, t0: list.reduce((t, c) => Math.min(t, timeReach(c.at, a.slot)[0]), Infinity), t1: list.reduce((t, c) => Math.max(t, timeReach(c.at, a.slot)[1]), -Infinity) };
    const of = this.find ? this.source.length : a.count;
    this.found.textContent = `${many(this.rows.length, "group")}${of > this.rows.length ? ` of ${of.toLocaleString("en")}${this.find ? "" : ", the others have no number now"}` : ""}; one scale for all`;
    this.finder.hidden = this.source.length <= FIRST;
    this.more.hidden = this.rows.length <= FIRST;
    this.more.textContent = this.all ? `the first ${FIRST} alone` : `all ${this.rows.length.toLocaleString("en")} of them`;
    this.more.setAttribute("aria-expanded", String(this.all));
    this.frame.classList.toggle("open", this.all && this.rows.length > FIRST);
    this.made = 0;
    this.cells.replaceChildren();
    this.append(this.all ? Math.max(FIRST, Math.min(made, KEPT)) : FIRST);
    if (this.all) { this.frame.scrollTop = top; this.fill(); }
  }
  fill() { if (this.all && this.made < this.rows.length && this.frame.scrollTop + 2 * this.frame.clientHeight + 200 > this.cells.scrollHeight) { this.append(CHUNK); requestAnimationFrame(() => this.fill()); } }
  append(count) { const some = this.rows.slice(this.made, this.made + count); this.made += some.length; this.cells.append(...some.map((r) => this.cell(r))); }
  cell(r) {
    const a = this.about, h = half(r.low, r.high);
    return el("button", { type: "button", "aria-pressed": String(r.g === this.chosen), title: r.g, onclick: () => a.pick(r.g) },
      el("span", {}, el("em", {}, r.g || "all"), el("b", {}, short(r.v, h))), spark(a.columns(r.g), this.scale, a.isMean, a.slot), el("span", {}, el("em", {}, margin(r.low, r.high)), el("em", {}, r.n == null ? "" : short(r.n, r.sd ? 2 * r.sd : 0), el("span", { class: "sr" }, " samples"))));
  }
}
