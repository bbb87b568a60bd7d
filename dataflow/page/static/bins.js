// (4) Bins by worker: what they hold and cost, and how a person moves them.

import { bytes, count, html, table, text } from "./tools.js";

const MOST = 4096; // cells on the page, all workers together
const METRICS = { bytes: "bytes", rate: "records per second", bins: "bins" };
let root, context, operator, metric, target, strategy, boxes, heavy, said, moveButton, dryButton, cancelButton, bar, where;
let seen = null, range = null, cells = new Map(), chosen = new Set(), last = null, timer = null, asking = false, watching = false, focused = null;

export const bins = { id: "bins", title: "Bins", make, update, show, hide, key };

function make(element, given) {
  root = element;
  context = given;
  const pick = (label, node) => html("label", {}, `${label} `, node);
  operator = html("select", { id: "bins-operator", onchange: () => { range = null; forget(); refresh(); } });
  metric = html("select", { id: "bins-metric", onchange: () => paint() }, Object.entries(METRICS).map(([value, name]) => html("option", { value }, name)));
  target = html("select", { id: "bins-target" });
  strategy = html("input", { id: "bins-strategy", list: "strategies", value: "batched:64", size: 14, spellcheck: "false" });
  const known = html("datalist", { id: "strategies" }, ["batched:64", "fluid", "all-at-once", "matched", "within:20ms"].map((value) => html("option", { value })));
  moveButton = html("button", { id: "bins-move", class: "strong", type: "button", onclick: () => move("begin") }, "move");
  dryButton = html("button", { id: "bins-dry", type: "button", onclick: () => move("dry") }, "what would move?");
  cancelButton = html("button", { id: "bins-cancel", type: "button", onclick: () => steer({ action: "cancel" }) }, "give up the rest");
  const even = ["even", "bytes"].map((to) => html("button", { type: "button", onclick: () => steer({ action: "begin", to }) }, to === "even" ? "as many bins on each" : "as many bytes on each"));
  where = html("span", { class: "dim" });
  said = html("span", { id: "bins-said", class: "said", role: "status" });
  bar = html("progress", { id: "bins-progress", hidden: true, max: 1, value: 0 });
  boxes = html("div", { class: "workers" });
  heavy = html("div", { class: "side" });
  root.append(html("div", { class: "split" },
    html("div", {},
      html("div", { class: "bar" }, pick("operator", operator), pick("shade by", metric), where, html("button", { type: "button", onclick: all }, "show all (0)")),
      html("div", { class: "bar" }, html("span", { id: "bins-chosen" }, "no bins chosen"), pick("to worker", target), pick("by", strategy), known, moveButton, dryButton, cancelButton),
      html("div", { class: "bar" }, html("span", { class: "dim" }, "or all of it:"), even, bar, said),
      boxes),
    heavy));
  boxes.addEventListener("pointerdown", grab);
  boxes.addEventListener("dblclick", (event) => { const cell = of(event.target); if (cell) closer(cell); });
}

function show() { timer = setInterval(refresh, 1000); refresh(); }
function hide() { clearInterval(timer); }
function forget() { cells.clear(); chosen.clear(); last = null; boxes.replaceChildren(); choose(); }

function update(given, what) {
  const states = given.part()?.state ?? [];
  const names = states.map((each) => each.name);
  if ([...operator.options].map((each) => each.value).join("\n") !== names.join("\n")) {
    operator.replaceChildren(...names.map((name) => html("option", { value: name }, name)));
    forget();
    range = null;
  }
  if (!names.length) heavy.replaceChildren(html("p", { class: "dim" }, "This dataflow keeps no state."));
  const state = states.find((each) => each.name === operator.value);
  if (state?.moving && !watching) watch();
  if (what === "theme") paint();
  if (what === "shape") refresh();
}

async function refresh() {
  if (asking || root.hidden || !operator.value) return;
  asking = true;
  try {
    const members = Math.max(1, seen?.members.length ?? 2);
    const first = range?.[0] ?? 0, end = range?.[1] ?? 2 ** 26;
    const query = new URLSearchParams({ operator: operator.value, first, last: end, cells: Math.max(64, Math.min(2048, Math.floor(MOST / members))) });
    const answer = await context.ask(`/api/bins?${query}`);
    if (answer.operator !== operator.value) return;
    seen = answer;
    draw();
  } catch (error) {
    say("bad", error.message);
  } finally {
    asking = false;
  }
}

function box(worker) {
  let found = boxes.querySelector(`[data-worker="${worker}"]`);
  if (!found) {
    found = html("section", { class: "worker", "data-worker": worker, "aria-label": `bins of worker ${worker}` },
      html("h3", {}, `worker ${worker} `, html("span", { class: "dim total" }), " ", html("button", { type: "button", onclick: () => whole(worker) }, "choose all")),
      html("div", { class: "cells" }));
    const next = [...boxes.children].find((each) => Number(each.dataset.worker) > worker);
    boxes.insertBefore(found, next ?? null);
  }
  return found;
}

function draw() {
  const workers = [...new Set([...seen.members, ...seen.worker])].sort((a, b) => a - b);
  for (const each of [...boxes.children]) if (!workers.includes(Number(each.dataset.worker))) each.remove();
  const fresh = new Map(), before = cells, first = before.size === 0;
  const each = new Map(workers.map((worker) => [worker, []]));
  seen.cell.forEach((cell, at) => {
    const worker = seen.worker[at], key = `${seen.cell_first[cell]}-${seen.cell_last[cell]}@${worker}`;
    const known = before.get(key) ?? { node: html("div", { class: `cell ${first ? "" : "fresh"}`, tabindex: -1, role: "option" }), key };
    Object.assign(known, { worker, first: seen.cell_first[cell], last: seen.cell_last[cell], bins: seen.bins[at], bytes: seen.bytes[at], rate: seen.seconds ? seen.records[at] / seen.seconds : 0 });
    known.node.cell = known;
    fresh.set(key, known);
    each.get(worker).push(known);
  });
  cells = fresh;
  for (const key of [...chosen]) if (!cells.has(key)) chosen.delete(key);
  for (const worker of workers) {
    const mine = each.get(worker).sort((a, b) => a.first - b.first), element = box(worker);
    const total = mine.reduce((sum, cell) => [sum[0] + cell.bins, sum[1] + cell.bytes, sum[2] + cell.rate], [0, 0, 0]);
    text(element.querySelector(".total"), `${total[0].toLocaleString("en")} bins, ${bytes(total[1])}${seen.seconds ? `, ${count(total[2])}/s` : ""}`);
    const place = element.querySelector(".cells"), nodes = mine.map((cell) => cell.node);
    if (place.children.length !== nodes.length || nodes.some((node, at) => place.children[at] !== node)) place.replaceChildren(...nodes);
  }
  boxes.classList.toggle("few", cells.size <= 512);
  const targets = seen.members.join();
  if (target.dataset.known !== targets) {
    const kept = target.value;
    target.dataset.known = targets;
    target.replaceChildren(...seen.members.map((worker) => html("option", { value: worker }, `${worker}`)));
    target.value = kept !== "" && seen.members.includes(Number(kept)) ? kept : `${seen.members[0] ?? ""}`;
  }
  text(where, range ? `bins ${seen.first} to ${seen.last} of ${seen.shards.toLocaleString("en")}` : `${seen.groups.toLocaleString("en")} bins${seen.groups === seen.shards ? "" : ` (of ${seen.shards.toLocaleString("en")} at the finest)`}`);
  paint();
  choose();
  keys();
}

function value(cell) { return { bytes: cell.bytes, rate: cell.rate, bins: cell.bins }[metric.value]; }

function paint() {
  const most = Math.max(1e-9, ...[...cells.values()].map(value));
  for (const cell of cells.values()) {
    const heat = Math.round(8 + 92 * Math.sqrt(value(cell) / most));
    cell.node.style.background = value(cell) > 0 ? `color-mix(in oklab, var(--accent) ${heat}%, var(--card))` : "var(--page)";
    cell.node.classList.toggle("chosen", chosen.has(cell.key));
    const name = cell.first === cell.last ? `bin ${cell.first}` : `bins ${cell.first} to ${cell.last}${cell.bins < cell.last - cell.first + 1 ? `: ${cell.bins} bins here` : ""}`;
    cell.node.title = `${name}, ${bytes(cell.bytes)}, ${count(cell.rate)} records/s, worker ${cell.worker}`;
    cell.node.setAttribute("aria-label", cell.node.title);
    cell.node.setAttribute("aria-selected", chosen.has(cell.key));
  }
  if (!focused || !cells.has(focused.key)) focused = cells.values().next().value ?? null;
  for (const cell of cells.values()) cell.node.tabIndex = cell === focused ? 0 : -1;
}

function keys() {
  const rows = seen.heavy.map((each) => [each.key, seen.seconds ? count(each.records / seen.seconds) : "–", `${each.worker}`, `${each.bin}`]);
  heavy.replaceChildren(html("h2", {}, "Heavy keys"), rows.length ? table([["key"], ["records/s", true], ["worker", true], ["bin", true]], rows) : html("p", { class: "dim" }, seen.seconds ? "None stands out." : "Nobody counts records of bins: the operator was built with interval=None, or nothing has come yet."));
}

function choose() {
  const mine = [...chosen].map((key) => cells.get(key)).filter(Boolean);
  const total = mine.reduce((sum, cell) => [sum[0] + cell.bins, sum[1] + cell.bytes], [0, 0]);
  text(document.getElementById("bins-chosen") ?? said, mine.length ? `${total[0].toLocaleString("en")} bins of worker ${mine[0].worker} chosen, ${bytes(total[1])}` : "no bins chosen: click, Shift-click, or drag to another worker");
  moveButton.disabled = dryButton.disabled = !mine.length || !seen?.movable;
}

const of = (node) => node?.closest?.(".cell")?.cell ?? null;
const order = (worker) => [...cells.values()].filter((cell) => cell.worker === worker).sort((a, b) => a.first - b.first);

function pick(cell, event) {
  const same = last && last.worker === cell.worker;
  if (event.shiftKey && same) {
    const mine = order(cell.worker), [a, b] = [mine.indexOf(cells.get(last.key) ?? cell), mine.indexOf(cell)].sort((x, y) => x - y);
    chosen = new Set(mine.slice(a, b + 1).map((each) => each.key));
  } else if ((event.ctrlKey || event.metaKey) && same) {
    if (!chosen.delete(cell.key)) chosen.add(cell.key);
  } else if (!chosen.has(cell.key)) chosen = new Set([cell.key]);
  if (!event.shiftKey) last = cell;
  focused = cell;
  paint();
  choose();
}

function whole(worker) { chosen = new Set(order(worker).map((cell) => cell.key)); last = order(worker)[0]; paint(); choose(); }

function grab(event) {
  const cell = of(event.target);
  if (!cell || event.button) return;
  event.preventDefault();
  cell.node.focus();
  pick(cell, event);
  const start = [event.clientX, event.clientY];
  let ghost = null;
  const under = (next) => document.elementsFromPoint(next.clientX, next.clientY).map((each) => each.closest?.(".worker")).find(Boolean);
  const drag = (next) => {
    if (!ghost && Math.hypot(next.clientX - start[0], next.clientY - start[1]) > 5 && seen.movable) {
      ghost = html("div", { id: "ghost" }, document.getElementById("bins-chosen").textContent);
      document.body.append(ghost);
      boxes.classList.add("dragging");
    }
    if (!ghost) return;
    ghost.style.left = `${next.clientX + 12}px`;
    ghost.style.top = `${next.clientY + 8}px`;
    const here = under(next);
    for (const each of boxes.children) each.classList.toggle("over", each === here && Number(each.dataset.worker) !== cell.worker);
  };
  const end = (next) => {
    removeEventListener("pointermove", drag);
    removeEventListener("pointerup", end);
    removeEventListener("pointercancel", end);
    boxes.classList.remove("dragging");
    for (const each of boxes.children) each.classList.remove("over");
    if (!ghost) return;
    ghost.remove();
    const here = next.type === "pointerup" ? under(next) : null;
    if (here && Number(here.dataset.worker) !== cell.worker) { target.value = here.dataset.worker; move("begin"); }
  };
  addEventListener("pointermove", drag);
  addEventListener("pointerup", end);
  addEventListener("pointercancel", end);
}

function move(action) {
  const mine = [...chosen].map((key) => cells.get(key)).filter(Boolean).sort((a, b) => a.first - b.first);
  if (!mine.length) return;
  const ranges = [];
  for (const cell of mine) {
    if (ranges.length && ranges.at(-1)[1] + 1 === cell.first) ranges.at(-1)[1] = cell.last;
    else ranges.push([cell.first, cell.last]);
  }
  steer({ action, ranges, source: mine[0].worker, target: Number(target.value) });
}

async function steer(body) {
  try {
    const answer = await context.ask("/api/migrate", { operator: operator.value, strategy: strategy.value, to: "", ...body });
    if (body.action === "dry") say("calm", `${answer.bins} bins would move, in ${answer.steps} steps`);
    else { tell(answer); watch(); }
  } catch (error) {
    say("bad", error.message);
  }
}

function say(level, what) { said.className = `said ${level}`; text(said, what); }

function tell(now) {
  bar.hidden = !now.under_way;
  bar.max = Math.max(1, now.bins);
  bar.value = now.bins_done;
  cancelButton.disabled = !now.under_way;
  const done = `${now.bins_done} of ${now.bins} bins moved, ${now.steps_done} of ${now.steps} steps (${now.strategy || now.to})`;
  say(now.failure ? "bad" : now.under_way ? "warn" : "calm", now.failure ? `${done}: ${now.failure}` : now.under_way ? `under way: ${done}` : `done: ${done}`);
}

async function watch() {
  if (watching) return;
  watching = true;
  try {
    for (;;) {
      const now = await context.ask("/api/migrate", { operator: operator.value, action: "look", strategy: "", to: "" });
      tell(now);
      await refresh();
      if (!now.under_way) return;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  } catch (error) {
    say("bad", error.message);
  } finally {
    watching = false;
  }
}

function closer(cell) { if (cell.last > cell.first && seen.groups > cells.size / Math.max(1, seen.members.length)) { range = [cell.first, cell.last]; forget(); refresh(); } }
function all() { range = null; forget(); refresh(); }

function key(event) {
  const cell = of(document.activeElement);
  if (event.key === "0") all();
  else if (event.key === "Escape") { chosen.clear(); paint(); choose(); }
  else if (event.key === "m") target.focus();
  else if (!cell) return false;
  else if (event.key === " ") pick(cell, { ctrlKey: true });
  else if (event.key === "Enter") closer(cell);
  else if (event.key.startsWith("Arrow")) step(cell, event);
  else return false;
  return true;
}

function step(cell, event) {
  const mine = order(cell.worker), wide = Math.max(1, Math.floor((cell.node.parentElement.clientWidth + 2) / (cell.node.offsetWidth + 2)));
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: wide, ArrowUp: -wide }[event.key];
  const next = mine[Math.min(mine.length - 1, Math.max(0, mine.indexOf(cell) + by))];
  if (event.shiftKey) { if (!last || last.worker !== cell.worker) last = cell; pick(next, { shiftKey: true }); }
  focused = next;
  paint();
  next.node.focus();
}
