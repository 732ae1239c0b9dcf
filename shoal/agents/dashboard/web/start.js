/* The page as a whole: what it knows (S), and how it hears more. */
const MOST = 8000; // releases of a group that a page keeps by itself
let S = null, source = null, paused = false, waiting = null, held = [];
const views = new Map();
const now = () => Date.now() / 1000;

/* What is to be drawn, a piece in each frame, so that nobody who scrolls waits for it. A page that nobody looks at has no
   frames, nor has one that is printed or photographed: then a timer draws. */
const pieces = [];
function soon(work) { if (pieces.push(work) === 1) { schedule(); } }
function schedule() {
  const once = () => { cancelAnimationFrame(wanted); clearTimeout(timer); frame(); }, wanted = requestAnimationFrame(once), timer = setTimeout(once, 100);
}
function frame() { try { pieces[0](); } finally { pieces.shift(); if (pieces.length) { schedule(); } } }
const plan = (v) => { v.dirty = false; soon(() => v.draw(soon)); };

const seen = new IntersectionObserver((all) => all.forEach((e) => { const v = views.get(e.target.id); if (v) { v.visible = e.isIntersecting; if (v.visible && v.dirty) { plan(v); } } }), { rootMargin: "200px" });

/* A snapshot with a Map in place of each JSON object whose keys are names from data. */
function received(data) {
  const metrics = data.metrics.map((m) => ({ ...m, groups: byName(m.groups), distribution: byName(m.distribution), places: m.places?.cells ? { ...m.places, cells: byName(m.places.cells) } : m.places }));
  return { ...data, metrics, agreed: byName(data.agreed), privacy: data.privacy && { ...data.privacy, ranges: byName(data.privacy.ranges) }, status: receivedStatus(data.status) };
}
const receivedStatus = (status) => status && { ...status, workers: status.workers.map((w) => ({ ...w, times: byName(w.times), late: byName(w.late) })) };

/* Take a snapshot: the first, or another after something changed that no single release tells. */
function show(data) {
  S = received(data);
  document.title = `${S.title} · shoal`; $("app").textContent = S.title;
  drawPrivacy(S.privacy, S.metrics); drawStatus();
  $("two").hidden = !S.privacy && !S.status; $("two").classList.toggle("solo", !S.privacy || !S.status);
  const left = Object.entries(S.others).map(([why, n]) => `${n.toLocaleString("en")} ${why}`), notes = [S.note, S.metrics.length ? null : S.live ? "Nothing is released yet: the numbers come here as they are published." : "There is no release in it.", S.metrics.length && S.waiting.length ? `Nothing is released yet of ${S.waiting.join(", ")}.` : null].filter(Boolean);
  $("note").hidden = !notes.length; $("note").textContent = notes.join(" ");
  $("how").hidden = !S.metrics.length; $("pause").hidden = !S.live;
  for (const m of S.metrics) {
    const old = views.get("m-" + m.name), same = old && (old.m.parts.join() === m.parts.join()) && cellNames(old.m) === cellNames(m);
    if (old) { old.update(m); if (!same) { old.build(); } if (old.visible) { old.draw(); } continue; }
    const v = new View(m);
    views.set(v.box.id, v); $("metrics").append(v.box); seen.observe(v.box);
    $("jump").append(el("a", { href: "#" + v.box.id }, m.name));
  }
  $("foot").textContent = `Everything here is a function of what was published; to look at it costs nothing. ${S.live ? "" : `Made from a file of ${many(S.releases, "release")}, ${date(S.made)}. `}${left.length ? `Left out: ${left.join(", ")}.` : ""}`;
}
function drawStatus(lost) { drawRunning(S.status, now(), S.agreed); drawState(S, lost); }

const cellNames = (m) => JSON.stringify([...m.places?.cells?.keys() ?? []]);

/* New releases, in the order of their groups. What a snapshot has already is not taken twice. */
function take(rows) {
  for (const [name, version, g, seq, at, n, sd, parts, extras] of rows) {
    const v = views.get("m-" + name), row = v?.m.groups.get(g);
    if (!v || version !== v.m.version || (!row && v.m.places?.cells) || parts.length > v.m.parts.length) { again(); return; }
    const cols = row ?? [0, 0, 1, [], [], sd == null ? null : [], v.m.parts.map(() => [[], [], []]), {}, "users" in extras ? [[], []] : null];
    if (!row) { v.m.groups.set(g, cols); v.names.push(g); }
    if (seq <= cols[0]) { continue; }
    cols[0] = seq; cols[1]++; cols[3].push(at); cols[4].push(n); cols[5]?.push(sd); cols[7] = extras; cols[8]?.[0].push(extras.users ?? null); cols[8]?.[1].push(extras.error ?? null);
    cols[6].forEach((part, i) => part.forEach((side, j) => side.push(parts[i]?.[j] ?? null)));
    v.cache.delete(g); v.dirty = true; S.releases++;
    if (cols[3].length > MOST) { again(); } // the server has thinned it
  }
  if (waiting == null) { waiting = setTimeout(() => { waiting = null; drawState(S); views.forEach((v) => { if (v.dirty && v.visible) { plan(v); } }); }, 100); }
}

/* What comes while an answer is on its way may not be in it: then it is asked for once more. */
let asking = null, isStale = false, version = "";
function again() {
  isStale = true;
  asking ??= setTimeout(() => { isStale = false; ask().finally(() => { asking = null; if (isStale) { again(); } }); }, 300);
}
async function ask() {
  const r = await fetch("snapshot", { cache: "no-store" });
  if (r.status === 401) { needToken(); return false; }
  if (!r.ok) { throw new Error(`the server says ${r.status}`); }
  version = r.headers.get("Shoal-Version");
  show(await r.json());
  return true;
}

function listen() {
  source = new EventSource(`events?seen=${version}`); // what came since is told at once
  let wasLost = false;
  source.addEventListener("open", () => { if (wasLost) { wasLost = false; again(); } });
  source.addEventListener("status", (e) => { S.status = receivedStatus(JSON.parse(e.data)); drawStatus(); });
  source.addEventListener("budget", () => again());
  source.addEventListener("again", () => again());
  source.addEventListener("releases", (e) => { const rows = JSON.parse(e.data); if (paused) { held.push(...rows); if (held.length > 20000) { held = []; again(); } } else { take(rows); } });
  source.onerror = () => { wasLost = true; drawStatus(true); };
}

/* The token, asked for or from the address: it goes to the server once, which answers with a cookie. */
async function login(token) {
  const r = await fetch("login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
  return r.ok;
}
function needToken() {
  const form = $("token");
  form.hidden = false; $("state").textContent = "a token is needed"; form.elements.token.focus();
  form.onsubmit = async (e) => { e.preventDefault(); if (await login(form.elements.token.value)) { form.hidden = true; begin(); } else { form.querySelector("[role=alert]").textContent = "not the token of this page"; } };
}
async function begin() {
  try {
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (given) { history.replaceState(null, "", location.pathname); await login(given); }
    if (await ask()) { listen(); }
  } catch (error) {
    $("state").className = "pill bad"; $("state").textContent = `no data: ${error.message}`;
    setTimeout(begin, 3000);
  }
}

$("pause").addEventListener("click", () => { paused = !paused; $("pause").setAttribute("aria-pressed", String(paused)); $("pause").textContent = paused ? "go on" : "pause"; if (!paused) { const rows = held; held = []; take(rows); } });
$("theme").addEventListener("click", () => { const r = document.documentElement, dark = r.classList.contains("dark") || (!r.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches); r.classList.toggle("dark", !dark); r.classList.toggle("light", dark); });
/* On paper, and wherever all is wanted at once, nothing waits to be scrolled to. */
addEventListener("beforeprint", () => views.forEach((v) => v.draw()));

const inside = JSON.parse($("data").textContent);
if (inside) { show(inside); } else { begin(); }
