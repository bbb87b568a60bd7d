// (6) What the program's loops decided, why, and whether they act.

import { clock, html } from "./tools.js";

let root, timer, asking = false, drawn = "", known = new Map();

export const loops = { id: "loops", title: "Decisions", make, update, show, hide };

function make(element) { root = element; root.append(html("p", { class: "dim" }, "asking …")); }
function show(context) { timer = setInterval(() => refresh(context), 1500); refresh(context); }
function hide() { clearInterval(timer); }
function update(context, what) { if (what === "shape") refresh(context); }

async function refresh(context) {
  if (asking) return;
  asking = true;
  try {
    draw(await context.ask("/api/loops"), context);
  } catch (error) {
    drawn = "";
    known.clear();
    root.replaceChildren(html("p", { class: "bad" }, error.message));
  } finally {
    asking = false;
  }
}

function draw(found, context) {
  const key = JSON.stringify(found);
  if (key === drawn) return;
  drawn = key;
  if (!found.length) {
    known.clear();
    root.replaceChildren(html("h2", {}, "No loop decides anything here"), html("p", { class: "dim" }, "A program that has a planners.loop.Driver (where bins are), a planners.plans driver (which plan a join has) or an autoscaler shows here what they decide, and why."));
    return;
  }
  const wanted = found.map((loop) => `${loop.worker}/${loop.loop}/${loop.title}`);
  if ([...known.keys()].join("\n") !== wanted.join("\n") || !known.size) {
    known = new Map(found.map((loop, at) => [wanted[at], section(loop, context)]));
    root.replaceChildren(...[...known.values()].map((each) => each.root));
  }
  found.forEach((loop, at) => {
    const each = known.get(wanted[at]);
    each.box.checked = loop.dry;
    each.list.replaceChildren(...(loop.decisions.length ? [...loop.decisions].reverse().slice(0, 100).map(line) : [html("p", { class: "dim" }, "It has decided nothing yet.")]));
  });
}

const line = (each) => html("div", { class: `decision ${each.acts ? "acts" : ""}` },
  html("span", { class: "dim" }, `${clock(each.when)} `), each.acts && each.dry ? html("em", {}, "(dry run) ") : null, each.text);

function section(loop, context) {
  const box = html("input", { type: "checkbox", class: "dry", onchange: (event) => set(loop, event.target, context) }), list = html("div");
  const bar = html("div", { class: "bar" }, html("h2", {}, `${loop.title}, at worker ${loop.worker}`), html("span", { class: "grow" }), html("label", {}, box, " dry run: decide and say so, change nothing"));
  return { box, list, root: html("section", { class: "card loop" }, bar, list) };
}

async function set(loop, box, context) {
  try {
    draw(await context.ask("/api/loops", { worker: loop.worker, loop: loop.loop, dry: box.checked }), context);
  } catch (error) {
    box.checked = !box.checked;
    root.prepend(html("p", { class: "bad" }, error.message));
  }
}
