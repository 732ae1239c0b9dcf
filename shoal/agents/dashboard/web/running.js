/* How the deployment does: audit, workers, lag, what ticks wait for, refused events. Only what workers' /metrics show. */
function drawRunning(st, now, agreed = new Map()) {
  const box = $("running");
  box.hidden = !st;
  if (!st) { return; }
  const parts = [el("h2", { id: "running-title" }, "In operation")], add = (title, ...inside) => parts.push(el("div", {}, el("h3", {}, title), ...inside));
  const away = ["kafka", "sql"].filter((k) => st[k] && st[k].why).map((k) => el("p", { class: "wrong" }, st[k].why));
  if (away.length) { add("Away", ...away, el("p", {}, "What is shown is as of before; the page goes on by itself.")); }
  const a = st.audit;
  add("Audit log", a ? el("p", { class: a.ok ? "fine" : "wrong" }, a.ok ? `✓ ${many(a.releases, "release")} in unbroken chains and a ledger that adds up, checked ${ago(a.at, now)}` : `✗ ${a.findings.join("; ")}`) : el("p", { class: "quiet" }, "not checked yet"));
  if (!st.workers.length) { add("Workers", el("p", { class: "quiet" }, st.asks ? "not asked yet" : "none are asked: name them with --workers HOST:PORT,..., by the port of [web]")); }
  const up = st.workers.filter((w) => w.reached), discreet = up.length > 0 && up.every((w) => w.discreet);
  if (st.workers.length) {
    add(many(st.workers.length, "worker"), table(["worker", "partitions", discreet ? null : "events", "state"].filter(Boolean), st.workers.map((w) => el("tr", {}, el("td", {}, w.name), el("td", { class: "n" }, w.reached ? String(w.partitions) : "–"), discreet ? null : el("td", { class: "n" }, w.reached && w.events != null ? w.events.toLocaleString("en") : "–"), el("td", { class: "n " + (w.reached && w.ready ? "fine" : "wrong") }, !w.reached ? "away" : w.ready ? "ready" : "not ready")))),
      ...st.workers.flatMap((w) => [...(w.reached ? w.reasons : [w.why])].map((why) => el("p", { class: "odd" }, `${w.name}: ${why}`))));
    const crowded = up.length > 1 && up.some((w) => w.partitions === 0) && up.some((w) => w.partitions > 1);
    if (crowded) { parts.push(el("p", { class: "odd" }, "the work is not shared: one worker has no partition while another has several")); }
  }
  if (up.length) { lag(up, discreet, add, now, agreed); }
  box.replaceChildren(...parts);
}

const sum = (list) => list.reduce((a, b) => a + b, 0);
/* Up to when a metric's steps could be complete by now; null if nothing of it is known. */
const due = (a, now) => (a ? Math.floor(Math.min(now - a.lateness, a.end ?? Infinity) / a.every) * a.every : null);
/* By how much the slowest metric of a topic is behind the end of the last step that could be complete; without a
   configuration of it, what the workers say. */
function behind(up, topic, now, agreed) {
  const found = [...agreed].filter(([, a]) => a.topic === topic).flatMap(([name, a]) => up.map((w) => w.times.get(name)).filter((t) => t != null).map((t) => Math.max(0, t < due(a, now) ? now - a.lateness - (Math.floor(t / a.every) + 1) * a.every : 0)));
  return found.length ? Math.max(...found) : Math.max(...up.map((w) => w.late.get(topic) ?? -Infinity));
}
function lag(up, discreet, add, now, agreed) {
  const rows = [["events not yet counted", "events"], ["contributions not yet released", "messages"], ["releases not yet in the audit log", "audit"]].map(([text, key]) => [text, up.map((w) => w.lag[key]).filter((x) => x != null)]).filter(([, list]) => list.length);
  add("Behind, in records", rows.length ? table(null, rows.map(([text, list]) => el("tr", {}, el("td", {}, text), el("td", { class: "n " + (sum(list) > 10000 ? "odd" : "") }, sum(list).toLocaleString("en"))))) : el("p", { class: "quiet" }, discreet ? "not shown: how many records there are is protected, too ([web] counters)" : "the workers do not say"));
  const topics = [...new Set(up.flatMap((w) => [...w.late.keys()]))].sort();
  if (topics.length) { add("Behind the clock, in event time", table(null, topics.map((t) => { const late = behind(up, t, now, agreed); return el("tr", {}, el("td", {}, t), el("td", { class: "n" }, late > 1 ? long(late) : "nothing")); }))); }
  const waits = up.flatMap((w) => w.waits), metrics = [...new Set([...up.flatMap((w) => [...w.times.keys()]), ...waits.map((w) => w[0])])].sort();
  if (metrics.length) {
    add("Complete up to, in event time", table(["metric", "up to", "open tick waits for"], metrics.map((m) => {
      const times = up.map((w) => w.times.get(m)).filter((t) => t != null), held = waits.filter((w) => w[0] === m), stuck = held.some((w) => w[4]), names = [...new Set(held.map((w) => `${w[1]}[${w[2]}]`))].sort(), since = held.map((w) => Date.parse(w[3]) / 1000).filter((t) => t > 0), a = agreed.get(m), ended = a?.end != null && now >= a.end && times.length > 0 && Math.min(...times) >= due(a, a.end + a.lateness);
      return el("tr", {}, el("td", {}, m), el("td", { class: "n" }, times.length ? moment(Math.floor(Math.min(...times))) : "–"), el("td", { class: "n" + (stuck ? " wrong" : held.length ? " odd" : "") }, held.length ? `${names.join(", ")}${since.length ? `, for ${long(Math.max(0, now - Math.min(...since)))}` : ""}` : ended ? "nothing: it has ended" : "time to pass"));
    })));
  }
  const dead = new Map();
  up.forEach((w) => w.dead.forEach(([metric, reason, n]) => { const by = dead.get(reason) ?? new Map(); dead.set(reason, by.set(metric, (by.get(metric) ?? 0) + n)); }));
  const reasons = [...dead].filter(([, by]) => sum([...by.values()]) > 0).sort();
  add("Refused events, by reason", reasons.length ? table(null, reasons.map(([reason, by]) => el("tr", {}, el("td", {}, reason), el("td", { class: "n" }, [...by].filter(([, n]) => n).map(([m, n]) => `${m} ${n.toLocaleString("en")}`).join(" · "))))) : el("p", { class: "quiet" }, discreet ? "not shown: how many there are is protected, too" : "none since the workers began"));
}

/* The line at the top. */
function drawState(S, lost) {
  const st = S.status, state = $("state"), ends = S.metrics.flatMap((m) => [...m.groups.values()].map((g) => g[3].at(-1))), last = ends.reduce((a, b) => Math.max(a, b), -Infinity), upTo = last > -Infinity ? `, released up to ${moment(last)}` : "";
  const bad = lost ? "the server of this page is away" : !st ? null : st.audit && !st.audit.ok ? "the audit log is not in order" : st.kafka?.why ? "Kafka is away" : st.sql?.why ? "the audit log is away" : null;
  const not = st ? st.workers.filter((w) => !w.reached || !w.ready).length : 0, text = bad ?? (!st ? many(S.releases, "release") : not ? `${not} of ${many(st.workers.length, "worker")} not ready` : st.kafka?.reading ? "reading" : st.workers.length ? `${many(st.workers.length, "worker")} ready` : "live");
  const to = { class: "pill " + (bad || not ? "bad" : st ? "good" : ""), text: text + upTo };
  state.className = to.class;
  if (state.textContent !== to.text) { state.textContent = to.text; }
}
