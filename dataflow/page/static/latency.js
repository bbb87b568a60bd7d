// (3) Latency over time, with what happened.

import { clock, colour, count, duration, html, table } from "./tools.js";

const GAP = 5; // seconds without a look: nobody watched, and no line is drawn
let root, charts = [], room, list, drawn = "", marks = [];

export const latency = { id: "latency", title: "Latency", make, update };

const WHAT = [
  { title: "Latency", log: true, unit: (v) => duration(v), series: [["median", 1, "--calm"], [".99", 2, "--accent"], ["largest", 3, "--bad"]] },
  { title: "Records per second", unit: (v) => count(v), series: [["records/s", 4, "--accent"]] },
  { title: "Behind, in seconds; workers whose sources wait", unit: (v) => count(v), series: [["behind", 5, "--warn"], ["under pressure", 6, "--bad"]] },
];

function make(element) {
  root = element;
  room = html("div");
  list = html("div", { id: "marks" });
  root.append(room, html("h2", {}, "What happened"), list);
  addEventListener("resize", () => { if (!root.hidden) for (const chart of charts) chart.setSize({ width: root.clientWidth - 40, height: chart.height }); });
}

function update(context, what) {
  if (root.hidden) return;
  const points = context.state.curves[context.state.dataflow] ?? [];
  marks = (context.state.look?.marks ?? []).filter((mark) => points.length && (mark.until || mark.when) >= points[0][0]);
  if (what === "theme" || !charts.length) build(points);
  const rows = points.flatMap((point, at) => (at && point[0] - points[at - 1][0] > GAP ? [[point[0] - 0.5, null, null, null, null, null, null], point] : [point]));
  const columns = (fields) => [rows.map((point) => point[0]), ...fields.map(([, at]) => rows.map((point) => (point.length < 8 ? null : at < 4 && !(point[at] > 0) ? undefined : point[at])))];
  charts.forEach((chart, at) => chart.setData(columns(WHAT[at].series)));
  tell(context.state.look?.marks ?? []);
}

function build(points) {
  for (const chart of charts) chart.destroy();
  room.replaceChildren();
  const decades = (_, ticks) => ticks.map((tick) => (Math.abs(Math.log10(tick) % 1) < 1e-9 ? tick : null));
  const axis = (unit, log) => ({
    stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1, ...(log ? { filter: decades } : {}) }, ticks: { stroke: colour("--line"), ...(log ? { filter: decades } : {}) },
    ...(log ? { filter: decades } : {}), size: unit ? 76 : 32, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : (unit ?? clock)(tick))), ...(unit ? {} : { space: 90 }),
  });
  charts = WHAT.map((each) => {
    const place = html("div", { class: "chart" }, html("h3", {}, each.title));
    room.append(place);
    return new uPlot({
      width: Math.max(300, root.clientWidth - 40), height: each.log ? 230 : 105, cursor: { sync: { key: "looks" } }, hooks: { drawAxes: [stripes] },
      scales: { x: { time: true }, y: each.log ? { distr: 3 } : { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] } },
      axes: [axis(), axis(each.unit, each.log)],
      series: [{ value: (_, v) => (v === null ? "–" : clock(v)) }, ...each.series.map(([label, , tint]) => ({ label, stroke: colour(tint), width: 1.5, points: { show: false }, value: (_, v) => (v === null ? "–" : each.unit(v)) }))],
    }, [[], ...each.series.map(() => [])], place);
  });
}

function tint(kind) { return colour(`--mark-${kind.split(" ")[0]}`) || colour("--dim"); }

function stripes(chart) {
  const { ctx, bbox } = chart;
  const now = chart.scales.x.max ?? 0;
  ctx.save();
  for (const mark of marks) {
    const left = Math.max(bbox.left, chart.valToPos(mark.when, "x", true));
    const right = Math.min(bbox.left + bbox.width, Math.max(left + 2, chart.valToPos(mark.until || now, "x", true)));
    if (right < bbox.left || left > bbox.left + bbox.width) continue;
    ctx.fillStyle = tint(mark.kind);
    ctx.globalAlpha = 0.22;
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    ctx.globalAlpha = 0.9;
    ctx.fillRect(left, bbox.top, 1.5, bbox.height);
  }
  ctx.restore();
}

function tell(all) {
  const key = JSON.stringify(all);
  if (key === drawn) return;
  drawn = key;
  const rows = [...all].reverse().slice(0, 200).map((mark) => [clock(mark.when), html("span", {}, html("span", { class: `kind ${mark.kind.split(" ")[0]}` }), mark.kind), mark.text, mark.until ? duration(mark.until - mark.when) : "under way", `${mark.worker}`]);
  list.replaceChildren(rows.length ? table([["at"], ["what"], ["and then"], ["took", true], ["worker", true]], rows) : html("p", { class: "dim" }, "Nothing yet: migrations, snapshots, recoveries and changes of membership are marked here and on the curves."));
}
