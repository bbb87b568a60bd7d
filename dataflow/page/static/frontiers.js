// (2) Frontiers: who holds which time back, from whom, and the path between the two.

import { clock, duration, html, table } from "./tools.js";

let root, timer, asking = false;

export const frontiers = { id: "frontiers", title: "Frontiers", make, update, show, hide };

function make(element) { root = element; root.append(html("p", { class: "dim" }, "asking …")); }

function show(context) { timer = setInterval(() => refresh(context), 2000); refresh(context); }
function hide() { clearInterval(timer); }
function update(context, what) { if (what === "shape") refresh(context); }

async function refresh(context) {
  if (asking) return;
  asking = true;
  try {
    const found = (await context.ask("/api/holding")).find((each) => each.dataflow === context.state.dataflow);
    draw(found, context);
  } catch (error) {
    root.replaceChildren(html("p", { class: "bad" }, error.message));
  } finally {
    asking = false;
  }
}

function draw(found, context) {
  const shape = context.shape();
  if (!found || !shape) { root.replaceChildren(html("p", { class: "dim" }, "Nothing is outstanding: the dataflow is complete.")); return; }
  const name = (number) => `${shape.operators[number]?.name ?? "?"} (#${number})`;
  const now = context.state.look?.when ?? Date.now() / 1000;
  const age = (since) => (now - since > 0.05 && since ? duration(now - since) : "a moment");
  const where = (workers) => (workers.length ? `worker ${workers.join(", ")}` : "on the way between workers");
  const waiting = found.waiting.map((each) => html("div", { class: "card waiting" },
    html("h3", {}, `${each.who}: waits for time ${each.time}`),
    each.holders.length ? each.holders.map((holder) => chain(holder, each, name, age, where)) : html("p", { class: "dim" }, "nothing holds it any more")));
  const held = found.held.map((each) => [name(each.operator), each.output ? `capability at output ${each.port}` : `messages to input ${each.port}`, each.time, `${each.count}`, where(each.workers), `${age(each.since)}, since ${clock(each.since)}`]);
  root.replaceChildren(
    html("h2", {}, "Who waits, and for whom"), ...(waiting.length ? waiting : [html("p", { class: "dim" }, "Nobody waits.")]),
    html("h2", {}, "What is outstanding"), table([["operator"], ["what"], ["time"], ["how many", true], ["where"], ["for"]], held));
}

function chain(holder, waiter, name, age, where) {
  const path = holder.path, long = path.length > 8;
  const shown = long ? [...path.slice(0, 4), null, ...path.slice(-3)] : path;
  const parts = shown.map((number, at) => {
    if (number === null) return html("span", { class: "dim" }, `… ${path.length - 7} more …`);
    const first = at === 0, last = at === shown.length - 1;
    const about = first ? `holds ${holder.time}, ${where(holder.workers)}, for ${age(holder.since)}${last ? "; waited for here" : ""}` : last ? `waits for ${waiter.time}` : "";
    return html("span", { class: `step ${first ? "holder" : ""} ${last ? "waiter" : ""}`, "data-operator": number }, name(number), html("small", {}, about));
  });
  return html("div", { class: "chain" }, parts.flatMap((part, at) => (at ? [html("span", { class: "arrow", "aria-label": "then" }, "→"), part] : [part])));
}
