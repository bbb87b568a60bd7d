// (5) A worker's timeline: which operator ran when.

import { colour, count, duration, html, hue, share, table } from "./tools.js";

const ROW = 16, LEFT = 190, TOP = 22;
let root, context, canvas, picker, seconds, button, said, totals, tip, trace = null, worker = 0, from = 0, to = 1;

export const timeline = { id: "timeline", title: "Timeline", make, update, key };

function make(element, given) {
  root = element;
  context = given;
  picker = html("select", { id: "timeline-worker", onchange: () => { worker = Number(picker.value); all(); } });
  seconds = html("select", { id: "timeline-seconds" }, [0.2, 1, 3].map((each) => html("option", { value: each, selected: each === 1 }, `${each} s`)));
  button = html("button", { id: "timeline-record", class: "strong", type: "button", onclick: record }, "record");
  said = html("span", { class: "dim", role: "status", id: "timeline-said" }, "Nothing is recorded. While a timeline is recorded, workers note each step.");
  canvas = html("canvas", { tabindex: 0, "aria-label": "steps of operators over time; the table below has the sums" });
  tip = html("div", { class: "dim" }, " ");
  totals = html("div");
  root.append(html("div", { class: "bar" }, html("label", {}, "worker ", picker), html("label", {}, "for ", seconds), button, html("button", { type: "button", onclick: all }, "all of it (0)"), said), canvas, tip, html("h2", {}, "Where the time went"), totals);
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.2 : 0.8, at(event)); }, { passive: false });
  canvas.addEventListener("pointermove", hover);
  canvas.addEventListener("pointerdown", grab);
  addEventListener("resize", draw);
}

function update(given, what) { if (what === "theme" || what === "shape") draw(); }

async function record() {
  button.disabled = true;
  said.textContent = "recording …";
  try {
    trace = await context.ask(`/api/trace?seconds=${seconds.value}`);
    picker.replaceChildren(...trace.workers.map((each) => html("option", { value: each.worker }, `${each.worker}`)));
    if (!trace.workers.some((each) => each.worker === worker)) worker = trace.workers[0]?.worker ?? 0;
    picker.value = `${worker}`;
    said.textContent = trace.workers.map((each) => `worker ${each.worker}: ${count(each.steps)} steps${each.complete ? "" : " (not all are shown)"}`).join(", ");
    all();
  } catch (error) {
    said.textContent = error.message;
  } finally {
    button.disabled = false;
  }
}

const mine = () => trace?.workers.find((each) => each.worker === worker) ?? null;

function all() {
  const steps = mine();
  if (!steps) return;
  from = Math.min(0, ...steps.began.slice(0, 1));
  to = Math.max(1, ...steps.began.slice(-1).map((began, at) => began + steps.took.at(-1)));
  sum(steps);
  draw();
}

function lanes(steps) {
  const found = new Map();
  steps.operator.forEach((operator, at) => {
    const key = `${steps.dataflow[at]}/${operator}`;
    const lane = found.get(key) ?? { dataflow: steps.dataflow[at], operator, took: 0, steps: 0, longest: 0 };
    lane.took += steps.took[at];
    lane.steps += 1;
    lane.longest = Math.max(lane.longest, steps.took[at]);
    found.set(key, lane);
  });
  return [...found.values()].sort((a, b) => a.dataflow - b.dataflow || a.operator - b.operator).slice(0, 200);
}

const named = (steps, lane) => `${steps.names[lane.dataflow][lane.operator]} (#${lane.operator})`;

function sum(steps) {
  const length = Math.max(1, to - from);
  const rows = lanes(steps).sort((a, b) => b.took - a.took).map((lane) => [html("span", {}, html("span", { class: "swatch", "data-hue": lane.operator }), named(steps, lane)), steps.dataflows[lane.dataflow], share(lane.took / length), duration(lane.took / 1e6), count(lane.steps), duration(lane.longest / 1e6)]);
  totals.replaceChildren(table([["operator"], ["dataflow"], ["of the time", true], ["in all", true], ["steps", true], ["longest", true]], rows));
  for (const each of totals.querySelectorAll("[data-hue]")) each.style.background = hue(Number(each.dataset.hue));
}

function draw() {
  const steps = mine();
  if (!steps || root.hidden) return;
  const rows = lanes(steps), wide = root.clientWidth - 30, high = TOP + rows.length * ROW + 6, scale = devicePixelRatio || 1;
  canvas.width = wide * scale;
  canvas.height = high * scale;
  canvas.style.height = `${high}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = colour("--dim");
  const x = (time) => LEFT + ((time - from) / (to - from)) * (wide - LEFT);
  for (let tick = 0; tick <= 8; tick++) {
    const time = from + ((to - from) * tick) / 8;
    pen.fillText(duration(time / 1e6), Math.min(x(time), wide - 50), 12);
    pen.fillStyle = colour("--line");
    pen.fillRect(x(time), TOP - 4, 1, high);
    pen.fillStyle = colour("--dim");
  }
  const places = new Map(rows.map((lane, at) => [`${lane.dataflow}/${lane.operator}`, at]));
  rows.forEach((lane, at) => { pen.fillStyle = colour("--text"); pen.fillText(named(steps, lane).slice(0, 30), 2, TOP + at * ROW + 11); });
  steps.began.forEach((began, at) => {
    const left = x(began), right = x(began + steps.took[at]), row = places.get(`${steps.dataflow[at]}/${steps.operator[at]}`);
    if (row === undefined || right < LEFT || left > wide) return;
    pen.fillStyle = hue(steps.operator[at]);
    pen.fillRect(Math.max(left, LEFT), TOP + row * ROW + 2, Math.max(0.7, right - Math.max(left, LEFT)), ROW - 4);
  });
}

const at = (event) => from + ((event.offsetX - LEFT) / Math.max(1, canvas.clientWidth - LEFT)) * (to - from);

function zoom(factor, around = (from + to) / 2) {
  const length = Math.max(5, (to - from) * factor);
  const part = (around - from) / (to - from);
  from = around - part * length;
  to = from + length;
  draw();
}

function shift(by) { const length = to - from; from += by * length; to += by * length; draw(); }

function grab(event) {
  let x = event.clientX;
  const drag = (next) => { shift((x - next.clientX) / Math.max(1, canvas.clientWidth - LEFT)); x = next.clientX; };
  const drop = () => { removeEventListener("pointermove", drag); removeEventListener("pointerup", drop); };
  addEventListener("pointermove", drag);
  addEventListener("pointerup", drop);
}

function hover(event) {
  const steps = mine();
  if (!steps) return;
  const lane = lanes(steps)[Math.floor((event.offsetY - TOP) / ROW)], time = at(event);
  if (!lane) return;
  const found = steps.began.findIndex((began, i) => steps.operator[i] === lane.operator && steps.dataflow[i] === lane.dataflow && began <= time && time <= began + Math.max(steps.took[i], (to - from) / 400));
  tip.textContent = `${named(steps, lane)}${found < 0 ? "" : `: a step of ${duration(steps.took[found] / 1e6)}, ${duration(steps.began[found] / 1e6)} after the beginning`}`;
}

function key(event) {
  const actions = { "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1.4), 0: all, ArrowLeft: () => shift(-0.2), ArrowRight: () => shift(0.2), r: record };
  if (!actions[event.key]) return false;
  actions[event.key]();
  return true;
}
