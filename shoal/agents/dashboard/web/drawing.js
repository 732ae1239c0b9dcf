/* Elements, and the note beside the pointer. Text goes in as text: a group's name is never markup. */
const NS = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);
const svg = (name, at = {}, ...inside) => { const e = document.createElementNS(NS, name); for (const k in at) { if (at[k] != null) { e.setAttribute(k, at[k]); } } e.append(...inside); return e; };
function el(name, at = {}, ...inside) {
  const e = document.createElement(name);
  for (const k in at) {
    if (k.startsWith("on")) { e.addEventListener(k.slice(2), at[k]); } else if (at[k] === true) { e.setAttribute(k, ""); } else if (at[k] !== false && at[k] != null) { e.setAttribute(k, at[k]); }
  }
  e.append(...inside.filter((x) => x != null));
  return e;
}
const table = (heads, rows, left = 1) => el("table", {}, heads ? el("thead", {}, el("tr", {}, ...heads.map((t, i) => el("th", { scope: "col", class: i < left ? null : "n" }, t)))) : null, el("tbody", {}, ...rows));

/* A pattern of its own for each drawing: an id is there once. */
let serial = 0;
function hatching(size) {
  const id = "hatch" + serial++;
  return [id, svg("pattern", { id, width: size, height: size, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("line", { x1: 0, y1: 0, x2: 0, y2: size, class: "hatch", "stroke-width": size / 3 }))];
}

function tip(x, y, lines) {
  const t = $("tip");
  t.replaceChildren(el("b", {}, lines[0]), ...lines.slice(1).filter(Boolean).flatMap((l) => ["\n", l]));
  t.hidden = false;
  const b = t.getBoundingClientRect(), w = document.documentElement;
  t.style.transform = `translate(${Math.round(x + 14 + b.width > w.clientWidth - 6 ? Math.max(6, x - b.width - 14) : x + 14)}px, ${Math.round(Math.max(6, Math.min(y - b.height / 2, w.clientHeight - b.height - 6)))}px)`;
}
const hideTip = () => { $("tip").hidden = true; };

/* Arrow keys on something that can be read step by step. */
const MOVES = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
function keys(e, at, count) {
  const to = e.key === "Home" ? 0 : e.key === "End" ? count - 1 : MOVES[e.key] ? at + MOVES[e.key] : null;
  if (to == null || e.altKey || e.ctrlKey || e.metaKey) { return null; }
  e.preventDefault();
  return Math.max(0, Math.min(count - 1, to));
}
