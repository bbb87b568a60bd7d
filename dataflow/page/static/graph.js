// (1) The graph: operators by busy share, edges by rate and by what waits on them.

import { bytes, count, duration, facts, html, share, svg, table, text } from "./tools.js";

const WIDE = 150, HIGH = 46, STEP_X = 210, STEP_Y = 74;
let root, picture, layer, side, search, shape, nodes, edges, chosen = 0, box = null, moved = false;

export const graph = { id: "graph", title: "Graph", make, update, key, show: () => { box ??= null; } };

function make(element, context) {
  root = element;
  layer = svg("g");
  picture = svg("svg", { role: "img", "aria-label": "the operators of the dataflow and the streams between them" },
    svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" },
      svg("path", { d: "M0 0L8 4L0 8z", fill: "context-stroke" }))), layer);
  search = html("input", { type: "search", placeholder: "look for an operator (/)", "aria-label": "look for an operator", oninput: () => look(context) });
  const buttons = [["+", () => zoom(0.8)], ["−", () => zoom(1.25)], ["all", fit]].map(([name, action]) => html("button", { type: "button", onclick: action }, name));
  side = html("div", { class: "side" });
  root.append(html("div", { class: "split" }, html("div", { class: "column" }, html("div", { class: "bar" }, search, buttons), picture), side));
  picture.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.15 : 0.87, event); }, { passive: false });
  picture.addEventListener("pointerdown", grab);
}

function update(context, what) {
  const next = context.shape();
  if (!next) { side.replaceChildren(html("p", { class: "dim" }, "No dataflow runs.")); layer.replaceChildren(); shape = null; return; }
  if (next !== shape) draw(next, context);
  const part = context.part();
  if (part) paint(part, context);
}

function draw(next, context) {
  shape = next;
  chosen = Math.min(chosen, next.operators.length - 1);
  const at = next.operators.map((each) => [each.x * STEP_X, each.y * STEP_Y]);
  edges = next.edges.map(([source, , target]) => {
    if (source < 0) return null;
    const [a, b] = [at[source], at[target]];
    const [x1, y1, x2, y2] = [a[0] + WIDE, a[1] + HIGH / 2, b[0], b[1] + HIGH / 2];
    const forward = x2 > x1 - 1, bend = forward ? Math.max(24, (x2 - x1) / 2) : 90;
    const dip = forward ? 0 : HIGH + 26;
    const d = forward ? `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` : `M${x1} ${y1}C${x1 + bend} ${y1 + dip} ${x2 - bend} ${y2 + dip} ${x2} ${y2}`;
    return { path: svg("path", { class: "edge", d, "marker-end": "url(#arrow)" }), label: svg("text", { class: "label", x: (x1 + x2) / 2, y: (y1 + y2) / 2 + dip * 0.75 - 8 }) };
  });
  nodes = next.operators.map((each, number) => node(each, number, at[number], context));
  layer.replaceChildren(...edges.filter(Boolean).flatMap((edge) => [edge.path, edge.label]), ...nodes.map((each) => each.group));
  fit();
}

function node(each, number, [x, y], context) {
  const bar = svg("rect", { class: "share", x, y, height: HIGH, width: 0, rx: 5 });
  const below = svg("text", { class: "small", x: x + 8, y: y + 35 });
  const name = each.name.length > 20 ? `${each.name.slice(0, 19)}…` : each.name;
  const group = svg("g", { class: "node", tabindex: number === chosen ? 0 : -1, role: "button", "data-operator": number,
    onclick: () => { if (!moved) { chosen = number; update(context, "chosen"); } }, onfocus: () => { if (chosen !== number) { chosen = number; update(context, "chosen"); } } },
    svg("rect", { class: "box", x, y, width: WIDE, height: HIGH, rx: 5 }), bar,
    svg("rect", { x, y, width: WIDE, height: HIGH, rx: 5, fill: "none", class: "frame" }),
    svg("text", { x: x + 8, y: y + 19 }, name), below, svg("title", {}, `${each.name} (#${number})`));
  return { group, bar, below, name: each.name.toLowerCase() };
}

function paint(part, context) {
  nodes.forEach((each, number) => {
    const busy = Math.min(1, part.busy[number] ?? 0);
    each.bar.setAttribute("width", (WIDE * busy).toFixed(1));
    each.group.setAttribute("class", `node ${busy > 0.85 ? "hot" : busy > 0.5 ? "mid" : ""} ${number === chosen ? "chosen" : ""} ${search.value && each.name.includes(search.value.toLowerCase()) ? "found" : ""}`);
    each.group.setAttribute("tabindex", number === chosen ? 0 : -1);
    text(each.below, `${share(busy)} busy · ${count(Math.max(part.in[number], part.out[number]))}/s`);
  });
  edges.forEach((edge, at) => {
    if (!edge) return;
    const rate = part.edge_rate[at] ?? 0, queued = part.edge_queued[at] ?? 0;
    edge.path.setAttribute("stroke-width", (1 + 0.8 * Math.log10(1 + rate)).toFixed(2));
    edge.path.setAttribute("class", `edge ${queued >= 16 ? "hot" : queued > 1 ? "mid" : ""}`);
    text(edge.label, rate || queued ? `${count(rate)}/s${queued > 1 ? ` · ${queued} wait` : ""}` : "");
  });
  tell(part, context);
}

function tell(part, context) {
  const number = chosen, each = shape.operators[number];
  if (!each) return;
  const into = shape.edges.map((edge, at) => [edge, at]).filter(([edge]) => edge[2] === number);
  const held = part.holds[number].map((time, at) => (time === "" ? null : `${time} (worker ${context.state.look.workers[at]?.worker})`)).filter(Boolean);
  const busiest = part.busy.map((busy, at) => [busy, at]).sort((a, b) => b[0] - a[0]).slice(0, 10);
  side.replaceChildren(
    html("h2", { id: "operator" }, `${each.name} (#${number})`),
    facts([
      ["busy", `${share(part.busy[number])} of the busiest worker`], ["records in", `${count(part.in[number])}/s, ${count(part.total_in[number])} so far`],
      ["records out", `${count(part.out[number])}/s, ${count(part.total_out[number])} so far`], ["may still come", part.frontier[number] || "nothing"],
      ["holds", held.join(", ") || "nothing"], ...(part.failed[number] ? [["failed", count(part.failed[number])]] : []),
      ...into.map(([edge, at]) => [`input ${edge[3]}`, `${edge[0] < 0 ? "nothing" : `from ${shape.operators[edge[0]].name}`}: ${count(part.edge_rate[at])}/s, ${bytes(part.edge_bytes[at])}/s, ${part.edge_queued[at]} wait`]),
    ]),
    html("h3", {}, "Busiest operators"),
    table([["busy", true], ["operator"]], busiest.map(([busy, at]) => [share(busy), `${shape.operators[at].name} (#${at})`])),
    html("h3", { class: "dim" }, "Times"),
    facts([["inputs are at", part.input_time || "their end"], ["complete before", part.output_time || "the end"], ["behind", duration(part.lag_seconds)]]),
    html("h3", {}, "Workers"),
    table([["worker"], ["busy", true], ["waits", true], ["memory", true]], context.state.look.workers.map((worker) => [`${worker.worker}`, share(worker.busy), share(worker.waiting), bytes(worker.memory)])),
  );
}

function look(context) {
  const wanted = search.value.toLowerCase();
  const found = wanted ? nodes.findIndex((each) => each.name.includes(wanted)) : -1;
  if (found >= 0) { chosen = found; centre(found); }
  update(context, "chosen");
}

function bounds() {
  const xs = shape.operators.map((each) => each.x * STEP_X), ys = shape.operators.map((each) => each.y * STEP_Y);
  const low = [Math.min(...xs) - 20, Math.min(...ys) - 20];
  return [low[0], low[1], Math.max(...xs) + WIDE + 20 - low[0], Math.max(...ys) + HIGH + 40 - low[1]];
}

function fit() {
  if (!shape) return;
  box = bounds();
  const least = 560;
  if (box[2] < least) { box[0] -= (least - box[2]) / 2; box[2] = least; }
  apply();
}

function apply() {
  picture.setAttribute("viewBox", box.map((each) => each.toFixed(1)).join(" "));
  picture.classList.toggle("far", (picture.clientWidth || 900) / box[2] < 0.42);
}

function zoom(factor, event) {
  if (!box) return;
  const place = picture.getBoundingClientRect();
  const [u, v] = event ? [(event.clientX - place.left) / place.width, (event.clientY - place.top) / place.height] : [0.5, 0.5];
  const wide = Math.min(Math.max(box[2] * factor, 200), 4e5), high = box[3] * (wide / box[2]);
  box = [box[0] + u * (box[2] - wide), box[1] + v * (box[3] - high), wide, high];
  apply();
}

function centre(number) {
  const each = shape.operators[number];
  const wide = Math.min(box[2], 1400), high = box[3] * (wide / box[2]);
  box = [each.x * STEP_X + WIDE / 2 - wide / 2, each.y * STEP_Y + HIGH / 2 - high / 2, wide, high];
  apply();
}

function grab(event) {
  const start = [event.clientX, event.clientY], from = [...box], wide = picture.clientWidth;
  moved = false;
  const drag = (next) => {
    const [dx, dy] = [next.clientX - start[0], next.clientY - start[1]];
    if (Math.abs(dx) + Math.abs(dy) > 4) moved = true;
    const scale = Math.max(from[2] / wide, from[3] / picture.clientHeight);
    box = [from[0] - dx * scale, from[1] - dy * scale, from[2], from[3]];
    apply();
  };
  const drop = () => { removeEventListener("pointermove", drag); removeEventListener("pointerup", drop); };
  addEventListener("pointermove", drag);
  addEventListener("pointerup", drop);
}

function key(event, context) {
  if (event.key === "/") search.focus();
  else if (event.key === "+" || event.key === "=") zoom(0.8);
  else if (event.key === "-") zoom(1.25);
  else if (event.key === "0") fit();
  else if (event.key === "Escape") { search.value = ""; update(context, "chosen"); }
  else if (event.key.startsWith("Arrow") && shape) step(event.key, context);
  else return false;
  return true;
}

function step(name, context) {
  const here = shape.operators[chosen];
  const [dx, dy] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[name];
  const near = shape.operators.map((each, at) => {
    const x = each.x - here.x, y = each.y - here.y, along = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
    return [along > 0 ? along + 3 * aside : Infinity, at];
  }).sort((a, b) => a[0] - b[0])[0];
  if (near && near[0] < Infinity) { chosen = near[1]; centre(chosen); nodes[chosen].group.focus(); update(context, "chosen"); }
}
