// What all views are made of: elements, requests, words for states, and the tip that shows values.

export { METRICS } from "./metrics.js";

export const { count, bytes, seconds, value, element: svg } = selvedge;

// An element with attributes and children. Texts stay texts: whatever a run is called, it cannot become an element.
export const h = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, content] of Object.entries(attributes)) {
    if (content === undefined || content === null || content === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), content);
    else if (key === "className") made.className = content;
    else made.setAttribute(key, content === true ? "" : content);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
};

// What the server refuses, in its own words.
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Asks the server; fails after ten seconds.
export const ask = async (path) => {
  const response = await fetch(path, { signal: AbortSignal.timeout(10000) });
  const text = await response.text();
  if (response.ok) return JSON.parse(text);
  let message = text.trim();
  try { message = JSON.parse(text).error; } catch { /* then it is the text itself */ }
  throw new Refused(response.status, message);
};

// Keeps something of a run up to date: asks again whenever the run has changed, one request at a time.
export const follower = (path, receive, fail) => {
  let [stamp, busy, stale, stopped] = [null, false, false, false];
  const look = async (run) => {
    if (busy || stopped || !run || run.stamp === stamp) return;
    busy = true;
    stale = false;
    try {
      let answer;
      do {
        answer = await ask(path());
        if (!stopped && !stale) receive(answer);
      } while (answer.has_more && !stopped && !stale);
      stamp = run.stamp;
    } catch (error) {
      if (error instanceof Refused) {
        stamp = run.stamp;
        if (!stopped) fail(error);
      } else if (!isUnanswered(error)) {
        throw error;
      }
      // Without an answer the poll tells what is wrong, and asks again.
    } finally {
      busy = false;
    }
    if (stale) { stamp = null; look(run); }
  };
  return { look, again: () => { stamp = null; stale = true; }, stop: () => { stopped = true; } };
};

// Whether nobody answered a request, as opposed to a slip of this script.
export const isUnanswered = (error) => ["TypeError", "TimeoutError", "AbortError"].includes(error.name) && !(error instanceof Refused);

// States of runs: a sign that needs no colour, and words.
const STATES = {
  running: ["●", "running"], finished: ["✓", "finished"], reached: ["✓", "target reached"],
  interrupted: ["‖", "interrupted"], stopped: ["■", "stopped unexpectedly"], quiet: ["○", "quiet"],
  diverged: ["△", "diverged"], damaged: ["△", "unreadable"],
};
export const badge = (run) => {
  const [sign, words] = STATES[run.state] ?? ["?", run.state];
  return h("span", { className: `badge ${run.state}` }, h("span", { "aria-hidden": "true", className: "sign" }, sign), words);
};
export const stateWords = (run) => (STATES[run.state] ?? ["", run.state])[1];

export const AXES = [["iterations", "Iterations"], ["bytes", "Bytes"], ["seconds", "Simulated time"]];

export const metric = (x) => x === null || x === undefined ? "–" : value(x);
export const rate = (x) => x === null || x === undefined ? "–" : x !== 0 && (Math.abs(x) < 1e-4 || Math.abs(x) >= 1e6) ? x.toExponential(2) : String(Number(x.toPrecision(3)));

export const ago = (milliseconds) => {
  const s = Math.max(0, (Date.now() - milliseconds) / 1000);
  if (s < 5) return "now";
  if (s < 90) return `${Math.round(s)} s ago`;
  if (s < 5400) return `${Math.round(s / 60)} min ago`;
  if (s < 129600) return `${Math.round(s / 3600)} h ago`;
  return new Date(milliseconds).toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" });
};

// Radio buttons that look like tabs.
export const tabs = (name, legend, choices, chosen, choose) => h("fieldset", { className: "tabs" },
  h("legend", { className: "hidden" }, legend),
  choices.map(([key, title]) => h("label", {},
    h("input", { type: "radio", name, value: key, checked: key === chosen, onchange: () => choose(key) }), h("span", {}, title))));

export const check = (id, title, checked, choose) => h("label", { className: "check" },
  h("input", { type: "checkbox", id, checked, onchange: (event) => choose(event.target.checked) }), h("span", {}, title));

export const section = (id, title, about, ...content) => {
  const text = h("p", { className: "about" }, about);
  const made = h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), text, ...content);
  made.about = (words) => { if (text.textContent !== words) text.textContent = words; };
  return made;
};

export const facts = (pairs) => h("dl", { className: "facts" }, pairs.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text))));

export const notes = (texts) => h("aside", { className: "notes", "aria-label": "Notes" }, h("ul", {}, texts.map((text) => h("li", {}, text))));

// A table whose cells are texts, or elements; numbers stand to the right. On a phone it can be scrolled by itself.
export const table = (id, caption, columns, rows) => h("div", { className: "scroll", tabindex: "0", role: "group", "aria-label": caption },
  h("table", { id }, h("caption", { className: "hidden" }, caption),
    h("thead", {}, h("tr", {}, columns.map(([title, kind]) => h("th", { scope: "col", className: kind }, title)))),
    h("tbody", {}, rows.map((row) => h("tr", { className: row.className }, row.cells.map((cell, i) => i === 0
      ? h("th", { scope: "row" }, cell)
      : h("td", { className: columns[i][1] }, cell)))))));

// One tip for all charts.
const tip = h("div", { className: "tip", role: "status", hidden: true });
export const showTip = (box, x, heading, rows) => {
  if (!tip.isConnected) document.body.append(tip);
  tip.replaceChildren(h("p", {}, heading), ...rows.map(([index, label, text]) =>
    h("div", { className: `c${index % 7}` }, h("i"), h("b", {}, label), h("span", {}, text))));
  tip.hidden = false;
  const [width, height] = [tip.offsetWidth, tip.offsetHeight];
  const right = x + 14 + width < innerWidth - 8;
  const covers = !right && x - 14 - width < 8;
  tip.style.left = `${Math.min(right ? x + 14 : Math.max(8, x - 14 - width), innerWidth - width - 8)}px`;
  tip.style.top = `${Math.max(8, Math.min(covers ? box.top - height + 20 : box.top + 40, innerHeight - height - 8))}px`;
};
export const hideTip = () => { tip.hidden = true; };
