// The page: who is asked, what is shown, keys.

import { bins } from "./bins.js";
import { frontiers } from "./frontiers.js";
import { graph } from "./graph.js";
import { latency } from "./latency.js";
import { loops } from "./loops.js";
import { timeline } from "./timeline.js";
import { bytes, html, text } from "./tools.js";

const views = [graph, frontiers, latency, bins, timeline, loops];
const find = (id) => document.getElementById(id);
export const state = { shape: [], look: null, curves: {}, dataflow: null, view: null };

// The token is in the part of the address that browsers keep to themselves; it is kept for this tab only.
const given = new URLSearchParams(location.hash.slice(1));
if (given.has("token")) {
  sessionStorage.setItem("token", given.get("token"));
  history.replaceState(null, "", location.pathname + (given.has("view") ? `#view=${given.get("view")}` : ""));
}
const headers = () => ({ Authorization: `Bearer ${sessionStorage.getItem("token") ?? ""}` });

export async function ask(path, body) {
  const how = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(path, { ...how, headers: headers() });
  const answer = response.headers.get("content-type")?.startsWith("application/json") ? await response.json() : { error: await response.text() };
  if (!response.ok) throw new Error(answer.error ?? `the page's server says ${response.status}`);
  return answer;
}

const context = {
  state, ask,
  shape: () => state.shape.find((each) => each.name === state.dataflow) ?? null,
  part: () => state.look?.dataflows.find((each) => each.name === state.dataflow) ?? null,
};

// Events of the run: read by fetch, which can send the token; EventSource cannot.
async function follow() {
  for (;;) {
    try {
      const response = await fetch("/api/live", { headers: headers() });
      if (response.status === 401) { linked(false, (await response.text()).trim()); return; }
      if (!response.ok) throw new Error(`the page's server says ${response.status}`);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        rest += value;
        const events = rest.split("\n\n");
        rest = events.pop();
        for (const each of events) take(each);
      }
      linked(false, "the page's server has ended");
    } catch (error) {
      linked(false, `no connection: ${error.message}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function take(message) {
  const parts = Object.fromEntries(message.split("\n").filter((line) => !line.startsWith(":")).map((line) => {
    const at = line.indexOf(": ");
    return [line.slice(0, at), line.slice(at + 2)];
  }));
  if (!parts.event) return;
  const data = JSON.parse(parts.data);
  if (parts.event === "gone") { linked(false, data.why); return; }
  if (parts.event === "curves") state.curves = data.points;
  if (parts.event === "shape") { state.shape = data.dataflows; choose(); }
  if (parts.event === "look") { state.look = data; add(data.point ?? {}); linked(true, "live"); summarise(data); }
  state.view?.update(context, parts.event);
}

function add(points) {
  for (const [name, point] of Object.entries(points)) {
    const known = (state.curves[name] ??= []);
    if (!known.length || known.at(-1)[0] < point[0]) known.push(point);
    if (known.length > 3600) known.shift();
  }
}

function linked(on, why) {
  find("link").className = on ? "on" : "off";
  text(find("link"), why);
}

function summarise(look) {
  text(find("name"), look.run.name);
  document.title = `${look.run.name} – dataflow`;
  const memory = look.workers.reduce((sum, worker) => sum + worker.memory, 0);
  const silent = Object.keys(look.silent).length;
  text(find("facts"), `${look.workers.length} workers${silent ? `, ${silent} silent` : ""}, ${bytes(memory)}`);
  const reasons = [...look.reasons, ...Object.entries(look.silent).map(([who, why]) => ["bad", `${who}: ${why}`])];
  find("reasons").replaceChildren(...reasons.slice(0, 4).map(([level, said]) => html("div", { class: level }, said)));
}

function choose() {
  const names = state.shape.map((each) => each.name);
  if (!names.includes(state.dataflow)) state.dataflow = names[0] ?? null;
  find("pick").hidden = names.length < 2;
  find("dataflow").replaceChildren(...names.map((name) => html("option", { selected: name === state.dataflow }, name)));
}

function show(view) {
  if (state.view === view) return;
  state.view?.hide?.();
  state.view = view;
  for (const each of views) {
    find(each.id).hidden = each !== view;
    find(`tab-${each.id}`).setAttribute("aria-selected", each === view);
    find(`tab-${each.id}`).tabIndex = each === view ? 0 : -1;
  }
  history.replaceState(null, "", `#view=${view.id}`);
  view.show?.(context);
  view.update(context, "shape");
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("theme", name);
  state.view?.update(context, "theme");
}
const flip = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (["INPUT", "SELECT"].includes(event.target.tagName)) return;
  const number = "123456".indexOf(event.key);
  if (number >= 0) show(views[number]);
  else if (event.key === "d") flip();
  else if (event.key === "?") find("keys").showModal();
  else if (!state.view?.key?.(event, context)) return;
  event.preventDefault();
}

function start() {
  for (const [at, view] of views.entries()) {
    const root = html("section", { id: view.id, class: "view", role: "tabpanel", "aria-labelledby": `tab-${view.id}`, hidden: true });
    find("views").append(root);
    find("tabs").append(html("button", { id: `tab-${view.id}`, role: "tab", type: "button", onclick: () => show(view) }, html("kbd", {}, `${at + 1}`), view.title));
    view.make(root, context);
  }
  find("theme").addEventListener("click", flip);
  find("help").addEventListener("click", () => find("keys").showModal());
  find("dataflow").addEventListener("change", (event) => { state.dataflow = event.target.value; state.view.update(context, "shape"); });
  document.addEventListener("keydown", key);
  find("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = views[(views.indexOf(state.view) + step + views.length) % views.length];
    show(next);
    find(`tab-${next.id}`).focus();
    event.stopPropagation();
  });
  theme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  const wanted = new URLSearchParams(location.hash.slice(1)).get("view");
  show(views.find((view) => view.id === wanted) ?? graph);
  follow();
}

start();
