// What all views use. Text from a run goes into text nodes and attributes only, never into markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export function text(node, value) { if (node.textContent !== value) node.textContent = value; }

export function count(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]])
    if (size >= limit) return `${(value / (unit === "k" ? 1e3 : limit)).toFixed(size / limit < 100 ? 1 : 0)}${unit}`;
  return size >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}

export function bytes(value) {
  for (const [limit, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
    if (value >= limit) return `${(value / limit).toFixed(1)} ${unit}`;
  return `${Math.round(value)} B`;
}

export const share = (value) => `${Math.round(100 * value)} %`;

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${(1000 * seconds).toPrecision(3)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  return seconds < 7200 ? `${(seconds / 60).toFixed(1)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

export const clock = (when) => new Date(1000 * when).toLocaleTimeString("en-GB");
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function table(heads, rows) {
  const head = html("tr", {}, heads.map(([name, number]) => html("th", { class: number ? "number" : null }, name)));
  const body = rows.map((row) => html("tr", {}, row.map((cell, at) => html("td", { class: heads[at][1] ? "number" : null }, cell))));
  return html("table", {}, html("thead", {}, head), html("tbody", {}, body));
}

export function facts(pairs) {
  return html("dl", {}, pairs.flatMap(([name, value]) => [html("dt", {}, name), html("dd", {}, value)]));
}

// A colour for each operator, the same at each look.
export const hue = (number) => `hsl(${(number * 47 + 200) % 360} 55% 55%)`;
