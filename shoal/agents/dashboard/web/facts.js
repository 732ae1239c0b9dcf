/* What was promised, and what it has cost: the sentences of `shoal check`, the budget, a row for each metric. */
function drawPrivacy(P, metrics) {
  const box = $("privacy");
  box.hidden = !P;
  if (!P) { return; }
  const spent = P.charged.epsilon, whole = Math.max(P.budget.epsilon, spent), exact = (a) => `ε ${a.text}` + (a.delta ? `, δ ${a.delta}` : ""), H = P.headline;
  const say = el("p", { class: "say" });
  if (H) { say.append(H.whole, " ", el("b", {}, H.most), H.rest); } else if (!P.missing) { say.append("Nothing here uses a value: these are counts, exact and public."); }
  if (P.missing) { say.append(" ", el("b", { class: "odd" }, P.missing)); }
  const meter = el("div", { class: "meter", role: "img", "aria-label": `epsilon ${P.charged.text} of ${P.budget.text} ${P.is_ledger ? "charged" : "used"}` });
  for (const c of P.charges) { if (c.epsilon > 0) { const i = el("i", { title: `${c.metric} version ${c.version}: ${exact(c)}` }); i.style.width = c.epsilon / whole * 100 + "%"; meter.append(i); } }
  const rows = [["Protected", P.protected.join(", ") || "–"], ["Not protected", P.public], [P.is_ledger ? "Charged" : "Costs", el("div", {}, el("b", {}, exact(P.charged)), ` of ${exact(P.budget)} ${P.per}`, meter)]];
  const charge = (c) => el("tr", {}, el("td", {}, el("b", {}, c.metric), c.version > 1 || c.state === "retired" ? ` version ${c.version}` : "", c.state === "active" || c.state === "planned" ? "" : ` (${c.state})`), el("td", { class: "n" }, bounds(P.ranges.get(c.metric) ?? [])), el("td", { class: "n" }, c.epsilon ? exact(c).replace("ε ", "") : "0, exact"));
  box.replaceChildren(el("h2", { id: "privacy-title" }, "Privacy facts"), say, el("dl", {}, ...rows.flatMap(([a, b]) => [el("dt", {}, a), el("dd", {}, b)])), table(["metric", "values between", "ε"], P.charges.map(charge)),
    el("details", {}, el("summary", {}, "in full"), el("p", {}, P.sentences), ...metrics.filter((m) => m.said).map((m) => el("p", {}, el("b", {}, `${m.name} version ${m.version}: `), m.said.guarantee))));
}
function bounds(ranges) {
  return ranges.length ? ranges.map(([a, b]) => `${short(a)} and ${short(b)}`).join("; ") : "–";
}

const STATISTICS = { variance: "mean and variance", users: "number of users" };
/* A metric in a sentence; without a configuration, what its releases say. */
function saysMetric(m) {
  const s = m.said, f = m.facts;
  if (!s) { return [f.algorithm ? `algorithm ${f.algorithm}` : null, f.mechanism === "exact" ? "exact and public" : m.loss || null, f.relation === "add-remove" ? "presence is protected" : null].filter(Boolean).join("; "); }
  const what = s.statistic === "count" ? "number of events" : `${STATISTICS[s.statistic] || s.statistic}${s.values.length ? " of " + s.values.join(" and ") : ""}`;
  const kept = s.decay === "window" ? `, over the last ${span(s.length)}` : s.decay && s.decay !== "none" ? `, ${s.decay} decay` : "";
  return [what + (s.group ? `, by ${s.group}` : s.cells ? ", by place" : "") + kept, s.every ? `released every ${span(s.every)}` : null, s.is_public ? "exact, because who contributes is public" : s.loss, s.ranges.length && !s.is_public ? (s.chooses_end ? "clipped at an end that is chosen in private, within " : "clipped to ") + s.ranges.map(([a, b]) => `${short(a)} to ${short(b)}`).join(" and ") : null, s.cap && !s.is_public ? `at most ${s.cap} of a person count` : null, s.simultaneous ? `intervals of any ${s.simultaneous} releases hold together` : null].filter(Boolean).join("; ");
}
