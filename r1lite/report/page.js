"use strict";
// Text from completions, problems and reasons only goes into text nodes and attributes; nothing here turns text into markup.
(() => {
const NS = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);
const RIGHT = new Set(["ok", "equal", "match", "valid", "right", "AC"]);
const CONTROL = /(?![\t\n\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;  // variation selectors of emoji stay
const SHOWN = 4000;  // characters of a text that are shown at first
const PAGE = 12;  // groups per page

function put(node, children) {
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
}
function set(node, attributes) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, one] of Object.entries(value)) node.style.setProperty(name, one);
    else node.setAttribute(key, value === true ? "" : value);
  }
  return node;
}
const el = (tag, attributes, ...children) => put(set(document.createElement(tag), attributes), children);
const svg = (tag, attributes, ...children) => put(set(document.createElementNS(NS, tag), attributes), children);

// Values of a run's files may have any type: a part of the page that can't be shown leaves the others as they are.
function tried(make, id = null) {
  try { return make(); }
  catch (error) { return el("section", {id}, el("p", {class: "warn"}, `This part can't be shown: the run's files hold unexpected values (${error.message}).`)); }
}
const textOf = (value) => typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
const interval = (value) => Array.isArray(value) && value.length === 2 && value.every((end) => typeof end === "number") ? value : null;

// Makes invisible parts of a text visible: control characters, direction marks, zero-width marks, lone surrogates.
function visible(value) {
  const text = textOf(value), parts = [];
  let at = 0;
  for (const match of text.matchAll(CONTROL)) {
    if (match.index > at) parts.push(text.slice(at, match.index));
    parts.push(el("span", {class: "ctl", title: "an invisible character"}, escaped(match[0])));
    at = match.index + match[0].length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}
function escaped(char) {
  const code = char.codePointAt(0).toString(16);
  return code.length > 4 ? `\\u{${code}}` : "\\u" + code.padStart(4, "0");
}
const plain = (value) => textOf(value).replace(CONTROL, escaped);

// ---- data
async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
const waiting = new Map();
window.r1lite_chunk = (name, data) => { const done = waiting.get(name); if (done) done(data); };
const cache = new Map();
function chunk(info) {
  if (!cache.has(info.id)) cache.set(info.id, load(info).then(unpack).catch((error) => { cache.delete(info.id); throw error; }));
  return cache.get(info.id);
}
async function load(info) {
  if (head.live) {
    const reply = await fetch("chunk/" + encodeURIComponent(info.id));
    if (!reply.ok) throw new Error(await reply.text());
    return reply.text();
  }
  const here = $(info.id);
  if (here) return here.textContent;
  return new Promise((done, fail) => {
    waiting.set(info.id, done);
    document.body.append(el("script", {src: head.beside + "/" + info.id + ".js", onerror: () => fail(new Error("no " + info.id))}));
  });
}

// ---- formatting of numbers
let head = null;
const share = (value, digits = 1) => typeof value !== "number" ? "-" : (100 * value).toFixed(digits) + " %";
function short(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "-" : plain(value);
  const size = Math.abs(value);
  if (size >= 1e6) return (value / 1e6).toPrecision(3) + " M";
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (size !== 0 && size < 0.001) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}
const labelOf = (name) => name.startsWith("parts.") ? name.slice(6) : (head.metrics[name] || {label: name}).label;
function valueOf(name, value) {
  const unit = name.startsWith("parts.") ? "" : (head.metrics[name] || {}).unit;
  if (value === null || value === undefined) return "-";
  if (unit === "share") return share(value);
  return short(value) + ({nats: " nats", s: " s"}[unit] || "");
}
const color = (number) => `var(--s${number % 8})`;

// ---- state
const state = {x: "steps", smooth: 0.8, bands: true, hidden: new Set(), run: 0, from: 0, to: 0, problem: null,
  verifier: "", reason: "", right: "", search: "", tint: "", pages: 1, hover: null};
const redraw = {};  // section -> function

// ---- overview
function overview() {
  const parts = [];
  for (const [number, run] of head.runs.entries()) parts.push(summaryOf(run, number));
  return el("section", {id: "overview"}, head.pipeline ? tried(pipelineOf) : null, parts);
}
function summaryOf(run, number) {
  const last = run.curves.steps.at(-1);
  const many = head.runs.length > 1;
  const body = [
    el("div", {class: "row"}, el(many ? "h2" : "h1", {}, plain(run.name)),
      el("span", {class: "state " + run.status}, run.status === "running" ? `running, step ${last ?? 0}` : run.status),
      el("span", {class: "soft"}, `r1lite ${plain(run.stage)}`)),
    run.command ? el("p", {class: "mono soft", style: {margin: ".1rem 0 .9rem", "overflow-wrap": "anywhere"}}, plain(run.command)) : el("p"),
    run.extra.kind === "set" ? null : run.extra.kind === "eval" ? measured(run) : el("div", {class: "grid two"}, tried(() => measures(run)), tried(() => findings(run))),
    tried(() => examples(run)), tried(() => extras(run, number)),
    el("details", {style: {"margin-top": "1rem"}}, el("summary", {}, "Settings and facts"),
      el("div", {class: "grid two"}, facts(run.facts), facts(Object.entries(run.config)))),
  ];
  return el(many ? "details" : "div", many ? {open: !head.pipeline && number < 3, style: {"margin-bottom": "1rem"}} : {},
    many ? el("summary", {}, plain(run.name), " ", el("span", {class: "small"}, headline(run))) : null, body);
}
function headline(run) {
  const first = run.evaluations[0], last = run.evaluations.at(-1);
  if (first && last && "pass_at_1" in last) return `greedy ${share(first.pass_at_1)} → ${share(last.pass_at_1)}`;
  return run.status;
}
const facts = (pairs) => el("dl", {class: "facts small"}, pairs.map(([key, value]) => [el("dt", {}, plain(key)), el("dd", {}, visible(value))]));

const MEASURES = [["pass_at_1", "right, greedy"], ["sampled_accuracy", "right, T=1"], ["pass_at_k", "pass@k, T=1"], ["maj_at_k", "maj@k, T=1"],
  ["sampled_format_rate", "format, T=1"], ["format_rate", "format, greedy"], ["accuracy", "pairs in the right order"]];
function measured(run) {
  const tasks = Object.keys(run.extra.tasks || {});
  return tasks.length > 1 ? tasks.map((task) => tried(() => measures(run, task, `Test problems: ${plain(task)}`))) : tried(() => measures(run, tasks[0]));
}
function measures(run, task, title) {
  const card = el("div", {class: "card"}, el("h3", {}, title || (run.evaluations.some((one) => one.pairs) ? "Held-out pairs" : "Test problems")));
  let before = run.evaluations[0], after = run.evaluations.length > 1 ? run.evaluations.at(-1) : null;
  let names = ["before", "after"];
  if (run.extra.kind === "eval") {
    before = null; after = task ? run.extra.tasks[task] : null; names = ["", "measured"];
  } else if (!after && before && run.status === "running") { after = before; before = null; names = ["", "so far"]; }
  if (!after && before) { after = before; before = null; names = ["", "before"]; }
  if (!after) return put(card, [el("p", {class: "soft"}, "Not measured yet.")]);
  const shown = MEASURES.filter(([key]) => typeof after[key] === "number");
  put(card, [el("div", {class: "small soft"}, `${short(after.problems ?? after.pairs)} ${after.pairs ? "pairs" : "problems"}; bars are 95 % intervals`,
    before ? [" · ", el("span", {class: "key", style: {"--c": "var(--s7)"}}, names[0]), " ", el("span", {class: "key", style: {"--c": "var(--s0)"}}, names[1])] : "")]);
  for (const [key, label] of shown) put(card, [dumbbell(label.replace("k,", (after.k || "k") + ","), before && before[key], before && before[key + "_interval"], after[key], after[key + "_interval"])]);
  const tokens = typeof after.mean_tokens === "number" ? `${before ? short(before.mean_tokens) + " → " : ""}${short(after.mean_tokens)} tokens per completion (greedy)` : "";
  return put(card, [tokens ? el("p", {class: "small soft", style: {margin: ".5rem 0 0"}}, tokens) : null]);
}
function dumbbell(label, a, aRange, b, bRange) {
  const x = (value) => 2 + 96 * Math.min(1, Math.max(0, value));
  const known = typeof a === "number";
  [aRange, bRange] = [interval(aRange), interval(bRange)];
  const marks = [svg("line", {x1: "2%", x2: "98%", y1: 12, y2: 12, class: "axis"})];
  const one = (value, range, paint, y) => {
    if (range) marks.push(svg("line", {x1: x(range[0]) + "%", x2: x(range[1]) + "%", y1: y, y2: y, stroke: paint, "stroke-width": 5, "stroke-linecap": "round", opacity: .35}));
    marks.push(svg("circle", {cx: x(value) + "%", cy: y, r: 5, fill: paint}));
  };
  if (known) one(a, aRange, "var(--s7)", 12);
  one(b, bRange, "var(--s0)", 12);
  const range = bRange ? ` (${(100 * bRange[0]).toFixed(1)}-${(100 * bRange[1]).toFixed(1)})` : "";
  return el("div", {style: {"margin-top": ".55rem"}},
    el("div", {class: "row small", style: {"justify-content": "space-between"}}, el("span", {}, label),
      el("span", {class: "num"}, known ? [el("span", {class: "soft"}, share(a) + " → "), el("b", {}, share(b))] : el("b", {}, share(b)), el("span", {class: "soft"}, range))),
    svg("svg", {height: 24, role: "img", "aria-label": `${label} ${known ? share(a) + " to " : ""}${share(b)}${range}`}, marks));
}
function findings(run) {
  const box = el("div", {class: "grid", style: {"align-content": "start"}});
  if (!run.findings.length) {
    const steps = run.curves.steps.length;
    return put(box, [el("div", {class: "card"}, el("h3", {}, "Doctor"), el("p", {class: "soft", style: {margin: ".3rem 0 0"}},
      steps ? `No problem found in ${run.curves.steps.at(-1)} steps.` : "There are no steps yet."), tiles(run))]);
  }
  for (const one of run.findings) put(box, [el("div", {class: "card finding"}, el("h3", {}, plain(one.what)), el("p", {class: "small soft"}, plain(one.evidence)), el("p", {class: "small"}, plain(one.change)))]);
  return put(box, [el("div", {class: "card"}, tiles(run))]);
}
function tiles(run) {
  const series = run.curves.series;
  const last = (name) => { const values = (series[name] || []).filter((value) => value !== null).slice(-10); return values.length ? values.reduce((a, b) => a + b) / values.length : null; };
  const shown = ["reward", "accuracy", "token_loss", "format_rate", "completion_tokens", "entropy", "tokens_per_s"].filter((name) => last(name) !== null);
  if (!shown.length) return null;
  return [el("div", {class: "small soft", style: {margin: ".8rem 0 .3rem"}}, "Mean of the last 10 steps"),
    el("div", {class: "grid tiles"}, shown.map((name) => el("div", {}, el("div", {class: "big"}, valueOf(name, last(name))), el("div", {class: "small soft"}, labelOf(name)))))];
}
function examples(run) {
  const first = run.evaluations[0], last = run.evaluations.at(-1);
  let pairs = Array.isArray(run.learnt) ? run.learnt : [];
  if (!pairs.length && last && last.examples) {
    const greedy = (one) => one && one.examples && ((one.examples.completions || []).find((c) => c.sampling === "greedy") || (one.examples.completions || [])[0]);
    pairs = [{question: last.examples.question, before: first !== last ? greedy(first) : null, after: greedy(last)}];
  }
  pairs = pairs.filter((pair) => pair.after);
  if (!pairs.length) return null;
  const column = (name, one) => one ? el("div", {class: "answer " + (one.correct ? "yes" : "no"), style: {"max-width": "none"}},
    el("header", {}, el("b", {}, name), el("span", {class: one.correct ? "good" : "bad"}, one.correct ? "right" : "wrong")), el("p", {class: "text"}, visible(textOf(one.text || "").slice(0, 20000)))) : null;
  return el("div", {class: "card grid", style: {"margin-top": ".9rem"}}, el("h3", {}, "Before and after, greedy"),
    pairs.map((pair) => el("div", {}, el("p", {class: "question", style: {margin: "0 0 .5rem"}}, visible(pair.question || "")), el("div", {class: "grid two"}, column("before", pair.before), column("after", pair.after)))));
}

// ---- parts that are specific to a kind of stage
function extras(run, number) {
  if (run.extra.kind === "eval") return evaluated(run, number);
  if (run.extra.kind === "set") return funnel(run);
  if (run.evaluations.some((one) => Array.isArray(one.bins))) return calibration(run);
  return null;
}
function evaluated(run, number) {
  const table = run.extra.table || [], parts = [];
  for (const [task, found] of Object.entries(run.extra.comparison || {})) {
    const rows = [["greedy", found.greedy], ["samples", found.sampled]].filter(([, one]) => one);
    parts.push(el("div", {class: "card", style: {"margin-top": ".9rem"}}, el("h3", {}, `Against ${plain(run.extra.against || "the other model")}: ${plain(task)}`),
      el("div", {class: "scroll"}, el("table", {class: "num"}, el("tr", {}, ["", "against", "this", "difference", "95 % interval"].map((h, i) => el("th", {class: i ? "n" : ""}, h))),
        rows.map(([name, one]) => { const low = one.low ?? (one.interval || [])[0], high = one.high ?? (one.interval || [])[1]; const gain = one.this - one.against;
          return el("tr", {}, el("td", {}, name), el("td", {class: "n"}, share(one.against)), el("td", {class: "n"}, share(one.this)),
            el("td", {class: "n " + (gain > 0 ? "good" : gain < 0 ? "bad" : "")}, (gain > 0 ? "+" : "") + (100 * gain).toFixed(1)), el("td", {class: "n"}, low === undefined ? "-" : `${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)}`)); })))));
  }
  const paired = table.some((row) => row[3] !== null);
  const kinds = {won: (r) => r[1] === 1 && r[3] === 0, lost: (r) => r[1] === 0 && r[3] === 1, "both right": (r) => r[1] === 1 && r[3] === 1, "both wrong": (r) => r[1] === 0 && r[3] === 0};
  const single = {right: (r) => r[1] === 1, wrong: (r) => r[1] === 0};
  let chosen = paired ? "lost" : "wrong";
  const body = el("tbody"), tests = paired ? kinds : single;
  const fill = () => { body.replaceChildren(...table.filter(tests[chosen]).slice(0, 300).map((row) => el("tr", {class: "pick", tabindex: 0, onclick: () => follow(number, row[0]), onkeydown: (e) => e.key === "Enter" && follow(number, row[0])},
    el("td", {}, plain(row[0])), el("td", {class: "n"}, row[1] ? "right" : "wrong"), el("td", {class: "n"}, share(row[2], 0)), paired ? [el("td", {class: "n"}, row[3] ? "right" : "wrong"), el("td", {class: "n"}, share(row[4], 0))] : null))); };
  const buttons = Object.entries(tests).map(([name, test]) => el("button", {"aria-pressed": String(name === chosen), onclick: (event) => { chosen = name; for (const other of buttons) other.setAttribute("aria-pressed", String(other === event.currentTarget)); fill(); }}, `${name} ${table.filter(test).length}`));
  fill();
  parts.push(el("div", {class: "card", style: {"margin-top": ".9rem"}}, el("h3", {}, "Problem by problem"), el("div", {class: "row", style: {margin: ".5rem 0"}}, buttons),
    el("div", {class: "scroll", style: {"max-height": "24rem", "overflow-y": "auto"}}, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "problem"), el("th", {class: "n"}, "greedy"), el("th", {class: "n"}, "samples right"), paired ? [el("th", {class: "n"}, "against, greedy"), el("th", {class: "n"}, "against, samples")] : null)), body))));
  return parts;
}
function funnel(run) {
  const steps = Array.isArray(run.extra.steps) ? run.extra.steps : [];
  const most = Math.max(1, ...steps.map((step) => step.entered || 0));
  return el("div", {class: "card", style: {"margin-top": ".9rem"}}, el("h3", {}, "Filters"),
    el("p", {class: "small soft"}, `${short(steps.length ? steps[0].entered : 0)} completions entered; ${short((run.extra.data || {}).rows)} rows of ${short((run.extra.data || {}).problems)} problems were kept.`),
    el("div", {class: "funnel"}, steps.map((step) => {
      const lost = step.entered - step.left;
      const reasons = Object.entries(step.reasons || {}).sort((a, b) => b[1] - a[1]);
      return el("div", {}, el("div", {class: "row small", style: {"justify-content": "space-between"}}, el("b", {}, plain(step.step)),
          el("span", {class: "num"}, short(step.left), " of ", short(step.entered), lost ? el("span", {class: "bad"}, `  −${short(lost)}`) : "")),
        el("div", {class: "track"}, el("i", {style: {width: 100 * step.left / most + "%"}}), el("i", {class: "lost", style: {width: 100 * lost / most + "%"}})),
        reasons.length ? el("details", {class: "small"}, el("summary", {}, reasons.slice(0, 5).map(([reason, count]) => `${plain(reason)} ${short(count)}`).join(", ")),
          (step.examples || []).map((one) => el("div", {class: "answer no", style: {"margin-bottom": ".5rem", "max-width": "none"}}, el("header", {}, el("b", {}, plain(one.reason)), el("span", {class: "soft"}, visible(one.detail || "")), el("span", {class: "soft"}, plain(one.problem_id || ""))), el("p", {class: "text"}, visible(one.completion || ""))))) : null);
    })));
}
function calibration(run) {
  const known = run.evaluations.filter((one) => Array.isArray(one.bins));
  const before = known[0], after = known.at(-1), width = 400, height = 260;
  const wide = (value) => 46 + (width - 60) * (value - 0.5) * 2, y = (value) => height - 40 - (height - 54) * value;
  const marks = [svg("line", {x1: wide(.5), y1: y(.5), x2: wide(1), y2: y(1), stroke: "var(--soft)", "stroke-dasharray": "4 4"})];
  for (const value of [0, .25, .5, .75, 1]) marks.push(svg("line", {x1: wide(.5), x2: wide(1), y1: y(value), y2: y(value), class: "axis"}), svg("text", {x: 40, y: y(value) + 4, "text-anchor": "end"}, share(value, 0)));
  for (const value of [.5, .75, 1]) marks.push(svg("text", {x: wide(value), y: height - 22, "text-anchor": "middle"}, share(value, 0)));
  marks.push(svg("text", {x: wide(.75), y: height - 4, "text-anchor": "middle"}, "confidence of the model"));
  for (const [one, paint] of [[before, "var(--s7)"], [after, "var(--s0)"]]) {
    const bins = one.bins.filter((bin) => bin.count);
    marks.push(svg("polyline", {points: bins.map((bin) => `${wide(bin.confidence)},${y(bin.accuracy)}`).join(" "), fill: "none", stroke: paint, "stroke-width": 2}));
    for (const bin of bins) marks.push(svg("circle", {cx: wide(bin.confidence), cy: y(bin.accuracy), r: 3 + 5 * Math.sqrt(bin.count / (one.pairs || 1)), fill: paint}, svg("title", {}, `${bin.count} pairs: said ${share(bin.confidence)}, right ${share(bin.accuracy)}`)));
    if (before === after) break;
  }
  return el("div", {class: "card", style: {"margin-top": ".9rem"}}, el("h3", {}, "Calibration on held-out pairs"),
    el("p", {class: "small soft"}, "Share of pairs whose chosen answer gets the higher reward, by the model's confidence. On the dashed line both are equal."),
    el("div", {class: "row", style: {"align-items": "start"}}, el("div", {style: {width: "min(100%, 30rem)"}}, svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "calibration"}, marks)),
      el("dl", {class: "facts"}, [["accuracy", share], ["ece", (v) => short(v)], ["brier", (v) => short(v)], ["loss", (v) => short(v)]].map(([key, form]) => [el("dt", {}, {ece: "calibration error", brier: "Brier score"}[key] || key), el("dd", {class: "num"}, before !== after ? form(before[key]) + " → " : "", form(after[key]))]))));
}
function pipelineOf() {
  const nodes = head.pipeline.nodes, by = Object.fromEntries(nodes.map((node) => [node.name, node]));
  const depth = {}, level = (name, seen = []) => { if (name in depth) return depth[name]; const node = by[name]; if (!node || seen.includes(name)) return -1; return depth[name] = Math.max(-1, ...node.from.map((one) => level(one, [...seen, name]))) + 1; };
  nodes.forEach((node) => level(node.name));
  const rows = {}, W = 210, H = 62, GX = 56, GY = 16, place = {};
  for (const node of nodes) { const at = depth[node.name]; rows[at] = (rows[at] || 0) + 1; place[node.name] = [at * (W + GX), (rows[at] - 1) * (H + GY)]; }
  const width = Math.max(...Object.values(place).map((p) => p[0])) + W, height = Math.max(...Object.values(place).map((p) => p[1])) + H;
  const edges = nodes.flatMap((node) => node.from.filter((one) => by[one]).map((one) => { const [x1, y1] = place[one], [x2, y2] = place[node.name]; const a = x1 + W, b = y1 + H / 2, d = y2 + H / 2;
    return svg("path", {class: "edge", d: `M${a},${b} C${a + GX / 2},${b} ${x2 - GX / 2},${d} ${x2},${d}`}); }));
  const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
  const boxes = nodes.map((node) => { const [x, y] = place[node.name];
    return svg("g", {class: "node " + node.state, transform: `translate(${x},${y})`, tabindex: 0, role: "button", onclick: () => node.run !== null && show(node.run), onkeydown: (e) => e.key === "Enter" && node.run !== null && show(node.run)},
      svg("title", {}, `${plain(node.name)}: ${plain(node.outcome)}`), svg("rect", {width: W, height: H}), svg("text", {class: "t", x: 12, y: 20}, cut(plain(node.name), 27)),
      svg("text", {x: 12, y: 36}, plain(node.stage) + (node.cpu_s ? `, ${short(node.cpu_s)} CPU s` : "") + (node.state === "finished" ? "" : ", " + node.state)), svg("text", {x: 12, y: 52}, cut(plain(node.outcome), 36))); });
  const show = (number) => { state.run = number; state.hidden = new Set(head.runs.map((_, i) => i).filter((i) => i !== number)); resetSteps(); for (const name of ["curves", "reasons", "rollouts"]) redraw[name](); const it = document.querySelectorAll("#overview > details")[number]; if (it) { it.open = true; it.scrollIntoView(); } };
  const compared = head.pipeline.comparison;
  return [el("h1", {}, plain(head.title)), el("p", {class: "soft"}, `${nodes.filter((node) => node.state === "finished").length} of ${nodes.length} stages are finished. Click a stage to see its run.`),
    el("div", {class: "card scroll", style: {"margin-bottom": "1rem"}}, svg("svg", {viewBox: `-4 -4 ${width + 8} ${height + 8}`, style: {width: width + 8 + "px", "max-width": "none"}}, edges, boxes)),
    compared && compared.rows ? el("div", {class: "card scroll", style: {"margin-bottom": "1rem"}}, el("h3", {}, "The models"), comparison(Object.entries(compared.rows)),
      Object.entries(compared.observations || {}).map(([label, one]) => el("p", {class: "small", style: {margin: ".6rem 0 0"}}, el("b", {class: one.seen ? "good" : "warn"}, one.seen ? "✓ " : "✗ "), el("b", {}, plain(label)), ": ", plain(textOf(one.text || "").replaceAll("**", ""))))) : null];
}
function comparison(rows) {
  const keys = [["accuracy", "right, T=1"], ["greedy", "greedy"], ["pass_at_k", "pass@k"], ["format", "format, T=1"], ["language", "language, T=1"]].filter(([key]) => rows.some(([, row]) => Array.isArray(row[key]) && row[key][0] !== null));
  const cell = (rate) => Array.isArray(rate) && rate[0] !== null ? [share(rate[0]), rate[1] === null ? "" : el("span", {class: "soft small"}, ` ${(100 * rate[1]).toFixed(0)}-${(100 * rate[2]).toFixed(0)}`)] : "-";
  return el("table", {class: "num"}, el("tr", {}, el("th", {}, "model"), keys.map(([, label]) => el("th", {class: "n"}, label)), ["parameters", "CPU s", "in all"].map((label) => el("th", {class: "n"}, label))),
    rows.map(([label, row]) => el("tr", {}, el("td", {}, plain(label)), keys.map(([key]) => el("td", {class: "n"}, cell(row[key]))), ["parameters", "cpu_s", "cpu_s_in_all"].map((key) => el("td", {class: "n"}, typeof row[key] === "number" ? short(row[key]) : "")))));
}

// ---- curves
const PARTS = "Components of the reward";
function panels() {
  const found = new Map();
  for (const [number, run] of head.runs.entries()) {
    if (state.hidden.has(number)) continue;
    for (const name of Object.keys(run.curves.series)) {
      const panel = name.startsWith("parts.") ? PARTS : (head.metrics[name] || {}).panel;
      if (!panel) continue;
      if (!found.has(panel)) found.set(panel, []);
      if (!found.get(panel).includes(name)) found.get(panel).push(name);
    }
  }
  const order = ["Reward", PARTS, ...Object.values(head.metrics).map((one) => one.panel)];
  return [...found].sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]));
}
function curves() {
  const trained = head.runs.filter((run) => run.curves.steps.length);
  if (!trained.length) return el("section", {id: "curves", hidden: true});
  const box = el("section", {id: "curves"}, el("h2", {}, "Curves"));
  const pick = el("select", {"aria-label": "x axis", onchange: (e) => { state.x = e.target.value; redraw.curves(); }}, [["steps", "steps"], ["tokens", "tokens"], ["seconds", "seconds"]].map(([value, label]) => el("option", {value, selected: state.x === value}, label)));
  const alike = seeds();
  put(box, [el("div", {class: "row controls", style: {"margin-bottom": ".8rem"}}, el("label", {}, "over", pick),
    el("label", {}, "smoothing", el("input", {type: "range", min: 0, max: 0.98, step: 0.02, value: state.smooth, oninput: (e) => { state.smooth = Number(e.target.value); redraw.plots(); }})),
    alike.length ? el("button", {"aria-pressed": String(state.bands), onclick: () => { state.bands = !state.bands; redraw.curves(); }}, "seeds as a band") : null,
    head.runs.length > 1 ? el("span", {class: "row legend"}, head.runs.map((run, number) => run.curves.steps.length ? el("button", {style: {"--c": color(number)}, "aria-pressed": String(!state.hidden.has(number)), onclick: () => { state.hidden.has(number) ? state.hidden.delete(number) : state.hidden.add(number); redraw.curves(); }}, plain(run.name)) : null)) : null)]);
  const grid = el("div", {class: "grid panels"}), flat = [];
  for (const [title, names] of panels()) {
    const every = head.runs.flatMap((run, number) => state.hidden.has(number) ? [] : names.flatMap((name) => run.curves.series[name] || [])).filter((value) => value !== null);
    if (every.length && every.every((value) => value === 0)) { flat.push(title); continue; }
    grid.append(panel(title, names));
  }
  const means = el("details", {class: "small", style: {"margin-top": ".8rem"}}, el("summary", {}, "Definitions of the metrics"), el("dl", {class: "facts"}, panels().flatMap(([, names]) => names).filter((name) => head.metrics[name]).map((name) => [el("dt", {}, labelOf(name)), el("dd", {}, head.metrics[name].means)])));
  return put(box, [grid, flat.length ? el("p", {class: "small soft"}, "0 in every step: ", flat.join(", "), ".") : null, means]);
}
// Forecast: the fitted curve with its band, the evaluations, and the parameters of the curve.
function forecasts() {
  const all = head.forecasts || [];
  if (!all.length) return el("section", {id: "forecast", hidden: true});
  return el("section", {id: "forecast"}, el("h2", {}, "Forecast"), el("div", {class: "grid two"}, all.map(forecastOf)),
    el("p", {class: "small soft"}, "Fit of R0 + (A − R0) / (1 + (C_mid / C)^B) to the evaluations, weighted by their noise. Bands and brackets are 95 % bootstrap intervals. For other units use r1lite forecast."));
}
function forecastOf(one) {
  const w = 480, h = 210, left = 42, right = 10, top = 10, bottom = 24;
  const curve = [...one.drawn, ...one.ahead.slice(0, 1)], most = Math.max(...curve.map(([c]) => c)) || 1;
  const x = (c) => left + (w - left - right) * c / most, y = (v) => h - bottom - (h - top - bottom) * Math.min(1, Math.max(0, v));
  const marks = [0, .25, .5, .75, 1].flatMap((v) => [svg("line", {x1: left, x2: w - right, y1: y(v), y2: y(v), class: "axis"}), svg("text", {x: left - 6, y: y(v) + 4, "text-anchor": "end"}, share(v, 0))]);
  for (const part of [0, .5, 1]) marks.push(svg("text", {x: x(part * most), y: h - 6, "text-anchor": part === 1 ? "end" : "middle"}, short(part * most)));
  const last = Math.max(...one.drawn.map(([c]) => c)), line = (points) => points.map(([c, v]) => `${x(c)},${y(v.value)}`).join(" ");
  marks.push(svg("polygon", {points: [...curve.map(([c, v]) => `${x(c)},${y(v.high)}`), ...curve.toReversed().map(([c, v]) => `${x(c)},${y(v.low)}`)].join(" "), fill: "var(--soft)", opacity: .2}),
    svg("polyline", {points: line(one.drawn), fill: "none", stroke: "var(--soft)", "stroke-width": 2}),
    svg("polyline", {points: line(curve.filter(([c]) => c >= last)), fill: "none", stroke: "var(--soft)", "stroke-width": 2, "stroke-dasharray": "4 4"}));
  if (one.end) marks.push(svg("line", {x1: left, x2: w - right, y1: y(one.end.value), y2: y(one.end.value), stroke: "var(--soft)", "stroke-dasharray": "1 4"}));
  for (const point of one.points) { const paint = color(one.numbers[point.run]), at = x(point.compute);
    marks.push(svg("line", {x1: at, x2: at, y1: y(point.rate - 1.96 * point.error), y2: y(point.rate + 1.96 * point.error), stroke: paint, opacity: .5}), svg("circle", {cx: at, cy: y(point.rate), r: 3.5, fill: paint}, svg("title", {}, `step ${point.step}: ${share(point.rate)}`))); }
  const between = (it, form) => [form(it.value), el("span", {class: "soft"}, ` (${form(it.low)} to ${form(it.high)})`)], amount = (v) => short(v) + " " + plain(one.against);
  const rows = [["before, R0", between(one.start, share)], ...(one.end ? [["ends at, A", between(one.end, share)], ["half way, C_mid", between(one.midpoint, amount)], ["steepness, B", between(one.exponent, short)], ...one.ahead.map(([c, v]) => ["at " + amount(c), between(v, share)])]
    : [["ends at, A", plain(one.missing)], ["half way, C_mid", "at least " + amount(one.midpoint_at_least)]])];
  return el("div", {class: "card"}, el("h3", {}, one.runs.map(plain).join(", ")), el("p", {class: "small soft"}, `${plain(one.metric)} over ${plain(one.against)}, ${one.points.length} evaluations`),
    svg("svg", {viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "forecast"}, marks), el("dl", {class: "facts small num"}, rows.map(([key, value]) => [el("dt", {}, key), el("dd", {}, value)])));
}
// Runs of one configuration but for the seed.
function seeds() {
  const groups = new Map();
  head.runs.forEach((run, number) => { if (run.curves.steps.length) groups.set(run.like, [...(groups.get(run.like) || []), number]); });
  return [...groups.values()].filter((numbers) => numbers.length > 1);
}
function smoothed(values, weight) {
  let sum = 0, norm = 0;
  return values.map((value) => { if (value === null) return norm ? sum / norm : null; sum = weight * sum + (1 - weight) * value; norm = weight * norm + (1 - weight); return sum / norm; });
}
const W = 320, H = 150, L = 40, R = 8, T = 8, B = 20;
function panel(title, names) {
  const box = el("div", {class: "card panel"}), value = el("span", {class: "value"}), keys = el("div", {class: "keys"});
  const picture = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": title});
  put(box, [el("header", {}, el("h3", {}, title), value), keys, picture]);
  const plot = {names, title, picture, value, keys, clip: "clip" + plots.length};
  draw(plot);
  plots.push(plot);
  picture.addEventListener("pointermove", (event) => { const at = picture.getBoundingClientRect(); hover(plot.unx((event.clientX - at.left) / at.width * W)); });
  picture.addEventListener("pointerleave", () => hover(null));
  picture.addEventListener("click", (event) => { const at = picture.getBoundingClientRect(); open(plot.unx((event.clientX - at.left) / at.width * W)); });
  return box;
}
let plots = [];
function lines(plot) {
  const found = [], banded = state.bands ? seeds() : [];
  for (const [number, run] of head.runs.entries()) {
    if (state.hidden.has(number)) continue;
    for (const [place, name] of plot.names.entries()) {
      const raw = run.curves.series[name];
      if (!raw) continue;
      const smooth = (head.metrics[name] || {smooth: true}).smooth && raw.length > 12;
      found.push({number, name, raw, x: run.curves[state.x], strong: smooth ? smoothed(raw, state.smooth) : raw, smooth: smooth && state.smooth > 0,
        paint: head.runs.length > 1 ? color(number) : color(place), dash: head.runs.length > 1 && place ? ["", "5 3", "2 3", "8 3 2 3"][place % 4] : ""});
    }
  }
  const bands = [];
  for (const numbers of banded) for (const [place, name] of plot.names.entries()) {
    const members = found.filter((line) => numbers.includes(line.number) && line.name === name);
    if (members.length < 2) continue;
    const points = members.reduce((a, b) => a.x.length < b.x.length ? a : b).x.length;
    const at = (i) => members.map((line) => line.strong[i]).filter((v) => v !== null && v !== undefined);
    const rows = [...Array(points).keys()].map((i) => { const values = at(i); return values.length ? [members[0].x[i], Math.min(...values), values.reduce((a, b) => a + b) / values.length, Math.max(...values)] : null; }).filter(Boolean);
    bands.push({rows, name, number: numbers[0], paint: members[0].paint, count: members.length, dash: members[0].dash});
    for (const line of members) found.splice(found.indexOf(line), 1);
  }
  return {found, bands};
}
function draw(plot) {
  const {found, bands} = lines(plot);
  const xs = [...found.flatMap((line) => [line.x[0], line.x.at(-1)]), ...bands.flatMap((band) => [band.rows[0][0], band.rows.at(-1)[0]])];
  let values = [...found.flatMap((line) => line.smooth && line.raw.length > 60 ? [...line.strong, ...trimmed(line.raw)] : line.raw), ...bands.flatMap((band) => band.rows.flatMap((row) => [row[1], row[3]]))].filter((v) => v !== null);
  const marks = evaluated_on(plot);
  values = values.concat(marks.flatMap((mark) => [mark.low, mark.high]));
  const info = head.metrics[plot.names[0]] || {};
  const log = info.scale === "log" && values.every((v) => v >= 0) && values.some((v) => v > 0);
  const positive = log ? extremes(values.filter((v) => v > 0))[0] : 0;
  const to = log ? (v) => Math.log10(Math.max(v, positive)) : (v) => v;
  let [low, high] = extremes(values.map(to));
  if (info.unit === "share" && low >= 0) { low = high < .2 ? 0 : Math.min(low, .5) < .3 ? 0 : low; if (high > .85) high = 1; }
  if (high - low < 1e-12) { const half = Math.abs(high) * .1 || .5; low -= half; high += half; }
  const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 1e-9);
  const px = (v) => L + (W - L - R) * (v - x0) / (x1 - x0), py = (v) => H - B - (H - B - T) * (to(v) - low) / (high - low);
  plot.px = px; plot.py = py; plot.unx = (p) => x0 + (p - L) / (W - L - R) * (x1 - x0); plot.lines = found; plot.bands = bands;
  const parts = [];
  for (const tick of ticks(low, high, log)) { const value = log ? 10 ** tick : tick; parts.push(svg("line", {x1: L, x2: W - R, y1: py(value), y2: py(value), class: "axis"}), svg("text", {x: L - 5, y: py(value) + 4, "text-anchor": "end"}, info.unit === "share" ? share(value, high - low < .04 ? 1 : 0).replace(" %", "%") : short(value))); }
  for (const tick of ticks(x0, x1, false)) if (tick >= x0 && (state.x !== "steps" || Number.isInteger(tick))) parts.push(svg("text", {x: px(tick), y: H - 5, "text-anchor": "middle"}, short(tick)));
  const path = (xs, ys) => thin(xs, ys, px, py);
  for (const band of bands) {
    const up = band.rows.map((row) => `${px(row[0]).toFixed(1)},${py(row[3]).toFixed(1)}`), down = band.rows.map((row) => `${px(row[0]).toFixed(1)},${py(row[1]).toFixed(1)}`).reverse();
    parts.push(svg("polygon", {points: [...up, ...down].join(" "), fill: band.paint, opacity: .18}), svg("path", {d: path(band.rows.map((r) => r[0]), band.rows.map((r) => r[2])), fill: "none", stroke: band.paint, "stroke-width": 2, "stroke-dasharray": band.dash}));
  }
  for (const line of found) {
    if (line.smooth) parts.push(svg("path", {d: path(line.x, line.raw), fill: "none", stroke: line.paint, "stroke-width": 1, opacity: .28}));
    parts.push(svg("path", {d: path(line.x, line.strong), fill: "none", stroke: line.paint, "stroke-width": 2, "stroke-linejoin": "round", "stroke-dasharray": line.dash}));
    if (line.raw.length === 1) parts.push(svg("circle", {cx: px(line.x[0]), cy: py(line.raw[0] ?? 0), r: 3, fill: line.paint}));
  }
  for (const mark of marks) parts.push(svg("line", {x1: px(mark.x), x2: px(mark.x), y1: py(mark.low), y2: py(mark.high), stroke: mark.paint, "stroke-width": 1.5}), svg("circle", {cx: px(mark.x), cy: py(mark.y), r: 3.5, fill: "var(--card)", stroke: mark.paint, "stroke-width": 2}, svg("title", {}, `test problems: ${share(mark.y)} (${share(mark.low)} to ${share(mark.high)})`)));
  plot.cross = svg("g", {});
  plot.picture.replaceChildren(svg("defs", {}, svg("clipPath", {id: plot.clip}, svg("rect", {x: L, y: T - 4, width: W - L, height: H - B - T + 8}))), svg("g", {}, parts.filter((p) => !(p.tagName === "path" || p.tagName === "polygon"))), svg("g", {"clip-path": `url(#${plot.clip})`}, parts.filter((p) => p.tagName === "path" || p.tagName === "polygon")), plot.cross);
  const single = head.runs.length === 1;
  plot.keys.replaceChildren(...(plot.names.length > 1 ? plot.names.map((name, place) => el("span", {class: "key", style: {"--c": single ? color(place) : "var(--soft)"}}, labelOf(name) + (single || !place ? "" : ["", " (dashed)", " (dotted)", " (dash-dot)"][place % 4]))) : []),
    ...(marks.length ? [el("span", {class: "soft"}, "○ test problems, greedy")] : []));
  plot.rest = () => { const one = found[0] || null; if (single && plot.names.length === 1 && one) { const last = one.strong.filter((v) => v !== null).at(-1); return valueOf(one.name, last) + (one.smooth ? " smoothed" : ""); } return ""; };
  plot.value.textContent = plot.rest();
}
// Not Math.min(...values): an engine limits the number of arguments, and many long runs have more values.
const extremes = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
// Ignores the few values that would flatten all others; they are clipped at the edge of the chart.
function trimmed(values) {
  const known = values.filter((v) => v !== null).sort((a, b) => a - b);
  return [known[Math.floor(known.length * .01)], known[Math.floor(known.length * .99)]];
}
function evaluated_on(plot) {
  if (plot.title !== "Accuracy") return [];
  return head.runs.flatMap((run, number) => state.hidden.has(number) ? [] : run.evaluations.flatMap((one) => {
    if (typeof one.pass_at_1 !== "number" || !interval(one.pass_at_1_interval) || !run.curves.steps.length) return [];
    const x = one.step ? run.curves[state.x][nearest(run.curves.steps, one.step)] : run.curves[state.x][0];
    return [{x, y: one.pass_at_1, low: one.pass_at_1_interval[0], high: one.pass_at_1_interval[1], paint: head.runs.length > 1 ? color(number) : "var(--s1)"}];
  }));
}
// A path with few points: the first, lowest, highest and last value of each pixel.
function thin(xs, ys, px, py) {
  let out = "", pen = false, cell = null;
  const add = (x, y) => { out += (pen ? "L" : "M") + x.toFixed(1) + "," + y.toFixed(1); pen = true; };
  const flush = () => { if (cell) for (const at of [...new Set([cell.first, ...(cell.low[0] < cell.high[0] ? [cell.low, cell.high] : [cell.high, cell.low]), cell.last])]) add(at[1], at[2]); cell = null; };
  for (let i = 0; i < xs.length; i++) {
    if (ys[i] === null || ys[i] === undefined) { flush(); pen = false; continue; }
    const x = px(xs[i]), point = [i, x, py(ys[i])], at = Math.round(x * 2);
    if (!cell || cell.at !== at) { flush(); cell = {at, first: point, low: point, high: point, last: point}; continue; }
    cell.last = point; if (point[2] > cell.low[2]) cell.low = point; if (point[2] < cell.high[2]) cell.high = point;
  }
  flush();
  return out || "M0,0";
}
function ticks(low, high, log) {
  const span = high - low;
  if (log && span < 1.3) return ticks(10 ** low, 10 ** high, false).filter((at) => at > 0).map(Math.log10);
  if (log) { const found = []; for (let at = Math.ceil(low); at <= high; at += Math.max(1, Math.round(span / 3))) found.push(at); return found.length ? found : [low, high]; }
  let step = 10 ** Math.floor(Math.log10(span / 3));
  for (const factor of [1, 2, 5, 10]) if (span / (step * factor) <= 4.5) { step *= factor; break; }
  const found = [], first = Math.ceil(low / step - 1e-9);
  for (let i = 0; i < 10; i++) {  // of huge numbers, adding a step may give the same one
    const at = (first + i) * step;
    if (at > high + step * 1e-9) break;
    found.push(Math.abs(at) < step * 1e-9 ? 0 : Number(at.toPrecision(12)));
  }
  return found;
}
function nearest(sorted, value) {
  let low = 0, high = sorted.length - 1;
  while (low < high) { const middle = (low + high) >> 1; if (sorted[middle] < value) low = middle + 1; else high = middle; }
  return low && value - sorted[low - 1] < sorted[low] - value ? low - 1 : low;
}
function hover(x) {
  for (const plot of plots) {
    if (x === null) { plot.cross.replaceChildren(); plot.value.textContent = plot.rest(); continue; }
    const parts = [svg("line", {x1: plot.px(x), x2: plot.px(x), y1: T, y2: H - B, stroke: "var(--soft)", "stroke-dasharray": "3 3"})], said = [];
    let where = null;
    for (const line of plot.lines) {
      const at = nearest(line.x, x), value = line.strong[at];
      if (value === null || value === undefined) continue;
      where = head.runs[line.number].curves.steps[at];
      parts.push(svg("circle", {cx: plot.px(line.x[at]), cy: plot.py(value), r: 3.5, fill: line.paint}));
      said.push((plot.lines.length > 1 ? (head.runs.length > 1 ? plain(head.runs[line.number].name) : labelOf(line.name)) + " " : "") + valueOf(line.name, value) + (line.smooth && plot.lines.length === 1 ? ` (raw ${valueOf(line.name, line.raw[at])})` : ""));
    }
    for (const band of plot.bands) { const row = band.rows[nearest(band.rows.map((r) => r[0]), x)]; parts.push(svg("circle", {cx: plot.px(row[0]), cy: plot.py(row[2]), r: 3.5, fill: band.paint})); said.push(`${valueOf(band.name, row[2])} (${valueOf(band.name, row[1])} to ${valueOf(band.name, row[3])}, ${band.count} seeds)`); where = where ?? row[0]; }
    plot.cross.replaceChildren(...parts);
    plot.value.textContent = said.slice(0, 2).join(", ") + (said.length > 2 ? ", …" : "") + (where !== null && state.x === "steps" ? ` · step ${where}` : "");
    plot.value.title = said.join("\n");
  }
}
function open(x) {
  const run = head.runs[state.run].chunks.length ? state.run : head.runs.findIndex((one) => one.chunks.length);
  if (run < 0) return;
  const step = head.runs[run].curves.steps[nearest(head.runs[run].curves[state.x], x)];
  const places = stepsOf(head.runs[run]);
  const found = places.reduce((best, at) => best === null || Math.abs(head.runs[run].chunks[at].step - step) < Math.abs(head.runs[run].chunks[best].step - step) ? at : best, null);
  if (found === null) return;
  Object.assign(state, {run, from: found, to: found, problem: null, pages: 1});
  redraw.rollouts();
  $("rollouts").scrollIntoView();
}
const stepsOf = (run) => run.chunks.map((_, at) => at).filter((at) => run.chunks[at].label.startsWith("step "));

// ---- reasons
function reasons() {
  const box = el("section", {id: "reasons"}, el("h2", {}, "Reasons"), el("p", {class: "soft small"}, "Reasons that verifiers gave, over the steps. Reward hacking shows here before it shows in the mean reward. A click on a reason shows its completions."));
  let any = false;
  const grid = el("div", {class: "grid two"});
  for (const [number, run] of head.runs.entries()) {
    if (state.hidden.has(number) || !run.curves.reasons.steps.length) continue;
    for (const [verifier, kinds] of Object.entries(run.curves.reasons.by)) { any = true; grid.append(reasonCard(run, number, verifier, kinds)); }
  }
  if (!any) return el("section", {id: "reasons", hidden: true});
  return put(box, [grid]);
}
function reasonCard(run, number, verifier, kinds) {
  const steps = run.curves.reasons.steps, names = Object.keys(kinds).sort((a, b) => Number(RIGHT.has(b)) - Number(RIGHT.has(a)) || sum(kinds[b]) - sum(kinds[a]));
  const paints = {}; let next = 0;
  for (const name of names) paints[name] = RIGHT.has(name) ? "var(--good)" : [1, 3, 4, 5, 6, 0, 7][next++ % 7];
  const paint = (name) => typeof paints[name] === "string" ? paints[name] : color(paints[name]);
  const totals = steps.map((_, i) => names.reduce((all, name) => all + kinds[name][i], 0) || 1);
  const width = 520, height = 170, at = (step) => steps.length > 1 ? 34 + (width - 40) * (step - steps[0]) / (steps.at(-1) - steps[0]) : 34, x = (i) => at(steps[i]), y = (v) => height - 20 - (height - 28) * v;
  let base = steps.map(() => 0);
  const areas = names.map((name) => {
    const top = base.map((b, i) => b + kinds[name][i] / totals[i]);
    const points = [...top.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`), ...base.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).reverse()];
    if (steps.length === 1) points.splice(1, 0, `${width - 6},${y(top[0])}`, `${width - 6},${y(base[0])}`);
    base = top;
    return svg("polygon", {points: points.join(" "), fill: paint(name), opacity: RIGHT.has(name) ? .35 : .8, style: {cursor: "pointer"}, onclick: () => filterReason(number, verifier, name)}, svg("title", {}, plain(name)));
  });
  const grid = [0, .5, 1].flatMap((v) => [svg("text", {x: 28, y: y(v) + 4, "text-anchor": "end"}, share(v, 0).replace(" ", ""))]);
  const labels = ticks(steps[0], Math.max(steps[0] + 1, steps.at(-1)), false).filter((step) => Number.isInteger(step) && step <= steps.at(-1)).map((step) => svg("text", {x: at(step), y: height - 4, "text-anchor": "middle"}, short(step)));
  return el("div", {class: "card panel"}, el("header", {}, el("h3", {}, (head.runs.length > 1 ? plain(run.name) + ": " : "") + plain(verifier))),
    svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `reasons of ${plain(verifier)} over steps`}, areas, grid, labels),
    el("div", {class: "keys"}, names.map((name) => el("button", {class: "plain key box", style: {"--c": paint(name)}, onclick: () => filterReason(number, verifier, name)}, `${plain(name)} ${short(sum(kinds[name]))}`))));
}
const sum = (values) => values.reduce((a, b) => a + b, 0);
function filterReason(number, verifier, reason) {
  const run = head.runs[number], places = stepsOf(run);
  if (!places.length) return;
  Object.assign(state, {run: number, verifier, reason, from: places[0], to: places.at(-1), problem: null, pages: 1, right: ""});
  redraw.rollouts();
  $("rollouts").scrollIntoView();
}

// ---- rollouts
const TINTS = [["", "plain"], ["lp", "probability when sampled"], ["adv", "advantage"], ["te", "entropy"], ["mis", "trainer vs. engine"]];
let drawn = 0, current = -1;
function resetSteps() {
  const run = head.runs[state.run], steps = stepsOf(run);
  state.from = state.to = steps.length ? steps.at(-1) : 0;
  state.problem = null; state.pages = 1;
}
function follow(number, problem) { Object.assign(state, {run: number, problem, pages: 1}); redraw.rollouts(); $("rollouts").scrollIntoView(); }
function rollouts() {
  const box = el("section", {id: "rollouts"});
  if (!head.runs.some((run) => run.chunks.length)) { box.hidden = true; return box; }
  put(box, [el("h2", {}, "Completions"), el("div", {id: "controls", class: "controls"}), el("div", {id: "said", class: "small soft", "aria-live": "polite", style: {margin: ".6rem 0"}}), el("div", {id: "groups"})]);
  return box;
}
function controls() {
  const run = head.runs[state.run], option = (value, label, chosen) => el("option", {value, selected: chosen}, label);
  const change = (more) => { Object.assign(state, more, {pages: 1}); showGroups(); };
  const stepPick = (key) => el("select", {"aria-label": key, onchange: (e) => { const at = Number(e.target.value); change(key === "from" ? {from: at, to: Math.max(at, state.to)} : {to: at, from: Math.min(at, state.from)}); controls(); }}, run.chunks.map((one, at) => option(at, plain(one.label), state[key] === at)));
  const verifiers = Object.keys(run.curves.reasons.by);
  const names = verifiers.length ? verifiers : ["answer"];
  const kinds = [...new Set(names.filter((name) => !state.verifier || name === state.verifier).flatMap((name) => Object.keys(run.curves.reasons.by[name] || {})))];
  if (state.reason && !kinds.includes(state.reason)) kinds.push(state.reason);
  const move = (by) => { const at = Math.min(run.chunks.length - 1, Math.max(0, state.to + by)); change({from: at, to: at, problem: null}); controls(); };
  const row = el("div", {class: "row"},
    head.runs.length > 1 ? el("label", {}, "run", el("select", {"aria-label": "run", onchange: (e) => { state.run = Number(e.target.value); resetSteps(); redraw.rollouts(); }}, head.runs.map((one, at) => one.chunks.length ? option(at, plain(one.name), at === state.run) : null))) : null,
    el("button", {onclick: () => move(-1), title: "previous step ( [ )", "aria-label": "previous step"}, "‹"), stepPick("from"), el("span", {class: "soft"}, "to"), stepPick("to"), el("button", {onclick: () => move(1), title: "the next one ( ] )", "aria-label": "next step"}, "›"),
    el("button", {onclick: () => { change({from: 0, to: run.chunks.length - 1}); controls(); }}, "all"),
    el("label", {}, "show", el("select", {id: "right", "aria-label": "which", onchange: (e) => change({right: e.target.value})}, [["", "everything"], ["yes", "right"], ["no", "wrong"], ["split", "groups that disagree"], ["cut", "truncated"], ["unscored", "unscored"], ["flags", "with flags"]].map(([value, label]) => option(value, label, state.right === value)))),
    verifiers.length > 1 ? el("select", {"aria-label": "verifier", onchange: (e) => { change({verifier: e.target.value, reason: ""}); controls(); }}, option("", "any verifier", !state.verifier), verifiers.map((name) => option(name, plain(name), state.verifier === name))) : null,
    kinds.length ? el("select", {id: "reason", "aria-label": "reason", onchange: (e) => change({reason: e.target.value})}, option("", "any reason", !state.reason), kinds.map((name) => option(name, plain(name), state.reason === name))) : null,
    el("input", {type: "search", id: "search", placeholder: "search ( / )", value: state.search, "aria-label": "search texts", oninput: (e) => change({search: e.target.value})}),
    el("label", {}, "colour", el("select", {id: "tint", "aria-label": "colour of tokens", onchange: (e) => { state.tint = e.target.value; showGroups(); }}, TINTS.map(([value, label]) => option(value, label, state.tint === value)))));
  $("controls").replaceChildren(row);
}
function matches(group, row) {
  if (state.right === "yes" && row.ok !== 1 || state.right === "no" && row.ok !== 0 || state.right === "cut" && row.end !== "length" || state.right === "unscored" && !(row.err || (row.r === undefined && row.ok === undefined))) return false;
  if (state.right === "flags" && !(row.verdicts || []).some((one) => one.flags)) return false;
  if (state.right === "split" && !(group.rows.some((one) => one.ok === 1) && group.rows.some((one) => one.ok !== 1))) return false;
  if (state.reason && !(row.verdicts || []).some((one) => one.reason === state.reason && (!state.verifier || one.name === state.verifier))) return false;
  if (state.search && !(row.text + "\n" + group.q + "\n" + group.id).toLowerCase().includes(state.search.toLowerCase())) return false;
  return true;
}
async function showGroups() {
  const turn = ++drawn, run = head.runs[state.run], list = $("groups"), said = $("said");
  if (!run.chunks.length) return;
  const places = state.problem === null ? run.chunks.map((_, at) => at).filter((at) => at >= state.from && at <= state.to) : run.recurring[state.problem] || run.chunks.map((_, at) => at);
  const found = [];
  let groups = 0, left = 0, completions = 0;
  for (const at of places) {
    let data;
    try { data = await chunk(run.chunks[at]); } catch (error) { said.textContent = "can't be loaded: " + error.message; return; }
    if (turn !== drawn) return;
    left += run.chunks[at].of - run.chunks[at].groups;
    for (const group of data.groups) {
      if (state.problem !== null && group.id !== state.problem) continue;
      groups++;
      const rows = state.problem === null ? group.rows.filter((row) => matches(group, row)) : group.rows;
      completions += rows.length;
      if (rows.length) found.push({group, rows, info: run.chunks[at], at});
    }
  }
  const missing = run.steps_with_rollouts - stepsOf(run).length;
  const parts = [state.problem !== null ? `problem ${plain(state.problem)} in ${found.length} places` : `${completions.toLocaleString("en")} completions of ${found.length} of ${groups} groups`];
  if (left) parts.push(`${left} groups of these steps are left out to save space`);
  const needed = {te: "te", mis: "tlp"}[state.tint];
  if (needed && found.length && !found.some((one) => one.rows.some((row) => row[needed]))) parts.push("this colour needs a run with --record-tokens");
  if (missing > 0) parts.push(`${missing} of ${run.steps_with_rollouts} steps are left out to save space (--max-mb, --everything)`);
  said.replaceChildren(parts.join("; ") + ". ", state.problem !== null ? el("button", {class: "plain", onclick: () => { state.problem = null; showGroups(); }}, "back to the steps") : "", " ", el("span", {}, "Keys: j k groups, [ ] steps, / search, c colour, t theme"));
  const shown = found.slice(0, state.pages * PAGE);
  list.replaceChildren(...shown.map((one, place) => tried(() => groupOf(run, one, place))), ...(found.length > shown.length ? [el("button", {onclick: () => { state.pages++; showGroups(); }}, `show ${Math.min(PAGE, found.length - shown.length)} more of ${found.length - shown.length}`)] : []));
  if (!found.length) list.replaceChildren(el("div", {class: "empty"}, "No completion matches the filters."));
  current = -1;
}
function groupOf(run, {group, rows, info}, place) {
  const known = group.rows.filter((row) => row.ok !== undefined), right = known.filter((row) => row.ok === 1).length;
  const times = (run.recurring[group.id] || []).length, most = Math.max(1e-9, ...group.rows.map((row) => Math.abs(row.adv || 0)));
  const gold = finalOf(group.gold);
  return el("article", {class: "card group", id: "g" + place, tabindex: -1},
    el("header", {}, el("div", {class: "row small"}, el("b", {}, plain(info.label)), el("span", {class: "soft mono"}, plain(group.id)),
        el("span", {class: "dots", role: "img", "aria-label": `${right} of ${known.length} right`}, group.rows.map((row) => el("i", {class: row.ok === 1 ? "yes" : row.ok === 0 ? "no" : ""}))), el("span", {class: "soft num"}, known.length ? `${right} of ${known.length} right` : ""),
        times > 1 && state.problem === null ? el("button", {class: "plain", onclick: () => follow(state.run, group.id)}, `the same problem in ${times} places`) : null,
        Object.entries(group.meta || {}).slice(0, 3).map(([key, value]) => el("span", {class: "soft"}, `${plain(key)} ${plain(value)}`))),
      el("div", {class: "question clamp"}, visible(group.q || group.prompt)),
      group.gold ? el("div", {class: "small"}, el("span", {class: "soft"}, "gold "), el("b", {class: "question"}, visible(gold)), gold !== group.gold ? el("details", {}, el("summary", {}, "worked"), el("div", {class: "question"}, visible(group.gold))) : null) : null),
    el("div", {class: "columns"}, alike(rows).map(([row, count]) => answer(run, info, group, row, most, count))));
}
// Completions with equal text and verdicts are shown once, with their count.
function alike(rows) {
  const found = new Map();
  for (const row of rows) {
    const key = JSON.stringify([row.text, row.r, row.ok, row.who, row.err, row.verdicts]);
    if (found.has(key)) found.get(key)[1]++; else found.set(key, [row, 1]);
  }
  return [...found.values()];
}
const finalOf = (gold) => { const at = (gold || "").lastIndexOf("####"); return at >= 0 ? gold.slice(at + 4).trim() : gold; };
function answer(run, info, group, row, most, count) {
  const kind = row.ok === 1 ? "yes" : row.ok === 0 ? "no" : "none";
  const bits = [];
  if (count > 1) bits.push(el("span", {class: "times", title: `${count} completions have this text`}, "× " + count));
  if (row.who) bits.push(el("b", {}, plain(row.who)));
  if (row.r !== undefined) bits.push(el("b", {}, "reward " + short(row.r)));
  if (row.ok !== undefined) bits.push(el("span", {class: row.ok ? "good" : "bad"}, row.ok ? "right" : "wrong")); else if (!["kept", "rejected"].includes(info.label)) bits.push(el("span", {class: "warn"}, "unscored"));
  if (row.adv !== undefined) bits.push(el("span", {class: "soft"}, `advantage ${row.adv > 0 ? "+" : ""}${short(row.adv)}`));
  if (row.n) bits.push(el("span", {class: "soft"}, `${row.n} tokens`));
  if (row.end === "length") bits.push(el("span", {class: "warn"}, "truncated"));
  if (row.by) bits.push(el("span", {class: "bad"}, `${plain(row.by)}: ${plain(row.why || "")}`));
  const replay = info.label.startsWith("step ") && row.at ? `python -m verifiers replay ${run.quoted} --step ${info.step} --row ${row.at}` : run.extra.kind === "set" && info.label === "kept" ? `python -m verifiers replay ${run.quoted}` : "";
  return el("div", {class: "answer " + kind}, el("header", {}, bits), texts(row, most),
    el("footer", {}, row.err ? el("div", {class: "verdict warn"}, visible(row.err)) : null, (row.verdicts || []).map(verdict),
      replay ? el("div", {}, el("button", {class: "plain", title: plain(replay), onclick: () => copy(replay)}, "copy the command that reproduces this verdict")) : null));
}
function verdict(one) {
  const tone = one.score === undefined ? "soft" : one.score >= 1 ? "good" : one.score > 0 ? "warn" : "bad";
  return el("div", {class: "verdict"}, el("b", {}, plain(one.name)), " ", el("span", {class: tone + " num"}, one.score === undefined ? "abstains" : short(one.score)), " ", el("span", {}, plain(one.reason || "")),
    one.answer ? [": ", el("span", {class: "mono"}, visible(one.answer))] : "", one.rung ? el("span", {class: "soft"}, ` by ${plain(one.rung)}`) : "", one.detail ? el("span", {class: "soft"}, " ", visible(one.detail)) : "", (one.flags || []).map((flag) => el("span", {class: "warn"}, " ⚑ " + plain(flag))));
}
function texts(row, most) {
  const box = el("div", {class: "text"});
  const spans = (row.verdicts || []).filter((one) => one.span).map((one) => ({from: one.span[0], to: one.span[1], class: one.score >= 1 ? "yes" : "no", name: one.name}));
  const end = spans.length ? Math.max(...spans.map((one) => one.to)) : 0;
  const fill = (limit) => {
    const text = row.text.slice(0, limit), rest = row.text.length - text.length;
    box.replaceChildren(...marked(row, text, spans, most));
    if (rest > 0) {
      box.append(" ", el("button", {class: "plain", onclick: () => fill(Infinity)}, `show ${rest.toLocaleString("en")} more characters`));
      if (end > limit) box.append(el("div", {}, "… ", ...marked({}, row.text.slice(spans[0].from - 40 > 0 ? spans[0].from - 40 : 0, end + 40), spans.map((one) => ({...one, from: one.from - Math.max(0, spans[0].from - 40), to: one.to - Math.max(0, spans[0].from - 40)})), most)));
    }
    if (row.cut && rest <= 0) box.append(el("span", {class: "warn"}, ` ${row.cut.toLocaleString("en")} more characters are only in the run directory`));
  };
  fill(SHOWN);
  return box;
}
function marked(row, text, spans, most) {
  const cuts = new Set([0, text.length]);
  for (const one of spans) { if (one.from <= text.length) cuts.add(one.from); if (one.to <= text.length) cuts.add(one.to); }
  const tokens = [];
  if (row.len && state.tint) { let at = 0; row.len.forEach((size, i) => { if (at < text.length && size) tokens.push([at, Math.min(text.length, at + size), i]); at += size; }); for (const [from, to] of tokens) { cuts.add(from); cuts.add(to); } }
  const places = [...cuts].filter((at) => at >= 0 && at <= text.length).sort((a, b) => a - b), parts = [];
  let token = 0;
  for (let i = 0; i + 1 < places.length; i++) {
    const from = places[i], to = places[i + 1];
    while (token < tokens.length && tokens[token][1] <= from) token++;
    const inside = tokens[token] && tokens[token][0] <= from ? tokens[token] : null;
    const span = spans.find((one) => one.from <= from && to <= one.to);
    const tint = inside ? tintOf(row, inside[2], most) : state.tint === "adv" && row.adv ? shade(row.adv / most, `advantage ${short(row.adv)}`) : null;
    const shown = visible(text.slice(from, to));
    if (!span && !tint) parts.push(...shown);
    else parts.push(el("span", {class: span ? "span " + span.class : null, title: [tint && tint.title, span && `extracted answer of ${plain(span.name)}`].filter(Boolean).join("; "), style: tint ? {background: tint.back} : {}}, shown));
  }
  return parts;
}
const mixed = (paint, part) => `color-mix(in srgb, ${paint} ${Math.round(100 * Math.min(1, Math.max(0, part)))}%, transparent)`;
const shade = (part, title) => Math.abs(part) < .02 ? null : {back: mixed(part > 0 ? "var(--s0)" : "var(--s1)", .65 * Math.abs(part)), title};
function tintOf(row, i, most) {
  if (state.tint === "lp" && row.lp) { const value = row.lp[i]; if (value === null) return null; const p = Math.exp(value / 100); return {back: mixed("var(--s1)", .8 * (1 - p)), title: `probability ${share(p)} (log ${(value / 100).toFixed(2)})`}; }
  if (state.tint === "adv") return row.ta && row.ta[i] !== null ? shade(Math.max(-1, Math.min(1, row.ta[i] / 100 / most)), `advantage ${(row.ta[i] / 100).toFixed(2)}`) : row.adv ? shade(row.adv / most, `advantage ${short(row.adv)} of the whole completion`) : null;
  if (state.tint === "te" && row.te) return {back: mixed("var(--s4)", Math.min(1, row.te[i] / 100 / 3) * .8), title: `entropy ${(row.te[i] / 100).toFixed(2)} nats`};
  if (state.tint === "mis" && row.tlp && row.lp) { const gap = (row.tlp[i] - row.lp[i]) / 100; return shade(Math.max(-1, Math.min(1, gap)), `trainer − engine ${gap.toFixed(2)} nats`); }
  return null;
}
async function copy(text) {
  try { await navigator.clipboard.writeText(text); toast("copied: " + text); }
  catch { const area = el("textarea", {}, text); document.body.append(area); area.select(); document.execCommand("copy"); area.remove(); toast("copied: " + text); }
}
function toast(text) { const it = el("div", {class: "toast small", role: "status"}, plain(text)); document.body.append(it); setTimeout(() => it.remove(), 2500); }

// ---- the page
function theme(next) {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = next || (dark ? "light" : "dark");
}
function build() {
  const sections = {overview, curves, forecast: forecasts, reasons, rollouts};
  const main = el("main");
  redraw.curves = () => { plots = []; $("curves").replaceWith(tried(curves, "curves")); redraw.reasons(); };
  redraw.plots = () => plots.forEach(draw);
  redraw.reasons = () => $("reasons").replaceWith(tried(reasons, "reasons"));
  redraw.forecast = () => $("forecast").replaceWith(tried(forecasts, "forecast"));
  redraw.overview = () => $("overview").replaceWith(tried(overview, "overview"));
  redraw.rollouts = () => { if ($("controls")) { controls(); showGroups(); } };
  for (const [id, make] of Object.entries(sections)) main.append(tried(make, id));
  const links = [["overview", "Overview"], ["curves", "Curves"], ["forecast", "Forecast"], ["reasons", "Reasons"], ["rollouts", "Completions"]].filter(([id]) => { const it = main.querySelector("#" + id); return it && !it.hidden; });
  $("app").replaceChildren(el("div", {class: "bar"}, el("div", {}, el("strong", {title: plain(head.title)}, plain(head.title)), el("nav", {}, links.map(([id, label]) => el("a", {href: "#" + id}, label))),
    el("span", {class: "small soft", id: "made"}, head.live ? "live" : plain(head.made)), el("button", {onclick: () => theme(), title: "light or dark ( t )", "aria-label": "light or dark"}, "◐"))), main,
    el("footer", {class: "small soft", style: {padding: "0 1.2rem 2rem", "max-width": "1320px", margin: "auto"}}, `r1lite ${plain(head.version)}`));
  document.title = plain(head.title) + " - r1lite";
}
function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(input|select|textarea)$/i.test(event.target.tagName)) { if (event.key === "Escape") event.target.blur(); return; }
  const groups = document.querySelectorAll(".group"), run = head.runs[state.run];
  if ((event.key === "j" || event.key === "k") && groups.length) {
    current = Math.min(groups.length - 1, Math.max(0, current + (event.key === "j" ? 1 : -1)));
    groups.forEach((one, at) => one.classList.toggle("here", at === current));
    groups[current].scrollIntoView(); groups[current].focus({preventScroll: true});
  } else if (event.key === "/" && $("search")) { $("search").focus(); event.preventDefault(); }
  else if ((event.key === "[" || event.key === "]") && run.chunks.length) { const at = Math.min(run.chunks.length - 1, Math.max(0, state.to + (event.key === "]" ? 1 : -1))); Object.assign(state, {from: at, to: at, problem: null, pages: 1}); redraw.rollouts(); }
  else if (event.key === "c" && $("tint")) { const at = TINTS.findIndex(([value]) => value === state.tint); state.tint = TINTS[(at + 1) % TINTS.length][0]; redraw.rollouts(); }
  else if (event.key === "t") theme();
}
// Shows the next state of the runs. What was chosen is found again by name: a run, a step or a part may have begun before it.
function update(next) {
  const former = head.runs, was = former[state.run], ends = was ? [was.chunks[state.from], was.chunks[state.to]] : [];
  const follows = !was || state.from === state.to && state.to === was.chunks.length - 1 && state.problem === null;
  head = next;
  const places = head.runs.map((run) => former.findIndex((one) => one.path === run.path));
  state.hidden = new Set(places.flatMap((place, at) => (place < 0 ? head.pipeline && was : state.hidden.has(place)) ? [at] : []));
  state.run = Math.max(0, head.runs.findIndex((run) => was && run.path === was.path));
  const ids = new Set(head.runs.flatMap((run) => run.chunks.map((one) => one.id)));
  for (const id of cache.keys()) if (!ids.has(id)) cache.delete(id);
  redraw.overview(); redraw.forecast(); redraw.curves();
  const begins = !$("controls") && head.runs.some((run) => run.chunks.length);
  const builds = begins || document.querySelectorAll("main > section:not([hidden])").length !== document.querySelectorAll("nav a").length;
  if (builds) build();
  if (!$("controls")) return;
  if (begins) state.run = head.runs.findIndex((run) => run.chunks.length);
  const [from, to] = ends.map((end) => head.runs[state.run].chunks.findIndex((one) => end && one.label === end.label));
  if (begins || follows || from < 0 || to < 0) { resetSteps(); redraw.rollouts(); return; }
  Object.assign(state, {from, to});
  controls();
  if (builds) showGroups();
}
async function watch() {
  let tag = head.tag;
  for (;;) {
    await new Promise((done) => setTimeout(done, 2000));
    try {
      const reply = await fetch("head", {headers: {"If-None-Match": tag}});
      if (reply.status === 200) {
        update(await unpack(await reply.text()));
        tag = head.tag;
      }
      $("made").textContent = reply.ok || reply.status === 304 ? "live" : plain(await reply.text());
    } catch { $("made").textContent = "the server is unreachable"; }
  }
}
(async () => {
  try { head = await unpack($("head").textContent); }
  catch (error) { $("app").textContent = "This browser can't read the data of the page (" + error.message + "): it needs DecompressionStream, which browsers have had since 2023."; return; }
  const begin = head.runs.findIndex((run) => run.chunks.length);
  state.run = Math.max(0, begin);
  if (head.pipeline) state.hidden = new Set(head.runs.map((_, at) => at).filter((at) => at !== head.runs.findIndex((run) => run.curves.steps.length)));
  const longest = Math.max(0, ...head.runs.map((run) => run.curves.steps.length));
  state.smooth = longest < 60 ? 0.5 : longest < 200 ? 0.8 : longest < 1000 ? 0.9 : 0.96;
  if (head.runs.length) resetSteps();
  build();
  document.addEventListener("keydown", keys);
  document.documentElement.dataset.ready = "yes";
  if (head.runs.length && $("controls")) { controls(); await showGroups(); }
  document.documentElement.dataset.ready = "all";
  if (head.live) watch();
})();
})();
