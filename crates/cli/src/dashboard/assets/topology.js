// Cloud, hospitals with their edges, and devices: who takes part in an interval.

import { count, follower, h, svg } from "./page.js";

const MOST_DRAWN = 60; // groups

export const participation = (path) => {
  let [t, answer, about, fail] = [null, null, () => {}, () => {}];
  const follow = follower(() => path(t), (given) => { answer = given; draw(); }, (error) => {
    // An interval that is not there any more, since the run began anew: the newest one is.
    if (t !== null) { t = null; follow.again(); } else fail(error);
  });
  let run = null;
  const go = (to) => { t = to; follow.again(); follow.look(run); };
  const button = (title, label, to) => h("button", { type: "button", className: "quiet", "aria-label": label, onclick: () => to() !== null && go(to()) }, title);
  const buttons = {
    first: button("⇤", "First interval", () => 0), before: button("←", "Previous interval", () => answer?.before ?? null),
    after: button("→", "Next interval", () => answer?.after ?? null), now: button("Newest", "Newest interval", () => null),
  };
  buttons.now.addEventListener("click", () => go(null));
  const where = h("p", { className: "where", "aria-live": "polite" });
  const place = h("div", { className: "topology" });
  const more = h("p", { className: "about" });
  const legend = h("div", { className: "who-legend" });
  const element = h("div", {}, h("div", { className: "interval-tools" }, buttons.first, buttons.before, where, buttons.after, buttons.now), legend, place, more);
  let width = 0;
  const observer = new ResizeObserver(([{ contentRect }]) => { if (Math.abs(contentRect.width - width) > 1) { width = contentRect.width; draw(); } });
  observer.observe(place);

  const draw = () => {
    if (!answer || width < 40) return;
    const { who } = answer;
    const words = `iterations ${count(answer.start)} to ${count(answer.end)}${answer.is_running ? ", now" : answer.is_latest ? ", the last" : ""}`;
    if (where.textContent !== words) where.textContent = words;
    buttons.before.disabled = buttons.first.disabled = answer.before === null;
    buttons.after.disabled = answer.after === null;
    buttons.now.disabled = answer.is_latest && t === null;
    const from = { trace: "From trace.jsonl.", drawn: "Redrawn from the seed, as every party does.", counted: "Only the numbers are known." }[who.source];
    const missed = who.missed > 0 ? ` ${count(who.missed)} of them missed the exchange.` : "";
    const merged = who.merged ? " This algorithm merges all groups into one." : "";
    const part = who.devices_act ? "devices take part." : "devices' patients are drawn; the devices themselves are not involved.";
    about(`In this interval ${count(who.selected)} of ${count(who.devices)} ${part}${missed}${merged} ${from}`);
    const sign = (kind, text) => h("span", {}, dots([[kind, [0]]], 1, 10, 10, 4), text);
    const someMissed = who.groups.some((g) => g.missed_exchange.length + g.missed_upload.length > 0);
    legend.replaceChildren(h("span", {}, hospitalSign(), "hospital with its edge"), sign("in", who.devices_act ? "takes part" : "patient is drawn"), sign("idle", who.devices_act ? "does not take part" : "patient is not drawn"), ...(someMissed ? [sign("missed", "drawn, but absent")] : []));
    place.replaceChildren(tree(who, width));
    const hidden = who.group_count - Math.min(MOST_DRAWN, who.groups.length);
    more.textContent = hidden > 0 ? `And ${count(hidden)} more groups.` : "";
  };

  return {
    element,
    look: (given, tell) => { run = given; about = tell; if (t === null || !answer) follow.look(given); },
    again: () => follow.again(),
    onFail: (given) => { fail = given; },
    stop: () => { follow.stop(); observer.disconnect(); },
  };
};

const MARGIN = 22; // at the left, for the trunk
const TRUNK = MARGIN - 1;
const CARD = 128; // at least so wide
const GAP = 16;

// The cloud above, a trunk at the left, a branch above every row of groups.
const tree = (who, width) => {
  const groups = who.groups.slice(0, MOST_DRAWN);
  const most = Math.max(1, Math.floor((width - MARGIN + GAP) / (CARD + GAP)));
  // As many in every row, if that can be.
  const columns = Math.max(1, Math.ceil(groups.length / Math.ceil(groups.length / most)));
  const card = Math.min(240, (width - MARGIN + GAP) / columns - GAP);
  const cells = groups.map((group) => cell(group, card));
  const parts = [];
  let [top, branch] = [34, 27];
  for (let first = 0; first < cells.length; first += columns) {
    const row = cells.slice(first, first + columns);
    branch = top + 10;
    row.forEach((made, i) => {
      const x = MARGIN + i * (card + GAP);
      parts.push(svg("path", { class: made.missed ? "link missed" : "link", d: `M${i === 0 ? TRUNK : x + 14 - card - GAP} ${branch}H${x + 14}V${branch + 12}` }));
      made.element.setAttribute("transform", `translate(${x} ${branch + 12})`);
      parts.push(made.element);
    });
    top = branch + 20 + Math.max(...row.map((made) => made.height));
  }
  const cloud = svg("g", { class: "node cloud" });
  cloud.append(svg("path", { d: "M11 27h21a8 8 0 0 0 1.4-15.9A11 11 0 0 0 12.6 9.6 9 9 0 0 0 11 27z" }));
  parts.push(svg("path", { class: "link", d: `M${TRUNK} 27V${branch}` }), cloud, text("cloud", 48, 21, "chart-label"));
  const words = groups.map((g) => `${g.name}: ${g.selected} of ${g.devices}${g.missed_global ? ", missed the global aggregation" : ""}`).join("; ");
  const drawing = svg("svg", { class: "tree", role: "img", width, height: top, viewBox: `0 0 ${width} ${top}`, "aria-label": `Cloud, hospitals and devices. ${words}` });
  drawing.append(...parts);
  return drawing;
};

const text = (content, x, y, name) => {
  const made = svg("text", { x, y, class: name });
  made.textContent = content;
  return made;
};

const hospitalNode = () => {
  const node = svg("g", { class: "node hospital" });
  node.append(svg("rect", { x: 4, y: 0, width: 20, height: 20, rx: 4 }), svg("path", { d: "M14 5v10M9 10h10" }));
  return node;
};

const hospitalSign = () => {
  const made = svg("svg", { class: "tree", width: 14, height: 14, viewBox: "3 -1 22 22", "aria-hidden": "true" });
  made.append(hospitalNode());
  return made;
};

// A group: its hospital and edge, and below them its devices.
const cell = (group, width) => {
  const element = svg("g", { class: group.missed_global ? "group away" : "group" });
  const letters = Math.floor((width - 34) / 7);
  const name = group.name.length > letters ? `${group.name.slice(0, letters - 1)}…` : group.name;
  const title = svg("title");
  title.textContent = `${group.name}: ${count(group.selected)} of ${count(group.devices)} devices${group.missed_global ? "; it missed the global aggregation" : ""}`;
  const hospital = hospitalNode();
  const { missed } = group;
  const numbers = `${count(group.selected)} of ${count(group.devices)}${missed > 0 ? `, ${count(missed)} absent` : ""}${group.missed_global ? ", away" : ""}`;
  element.append(title, hospital, text(name, 30, 9, "chart-label small"), text(numbers, 30, 22, "chart-text small"), svg("path", { class: "link", d: "M14 20v9" }));
  const below = svg("g", { transform: "translate(4 30)" });
  let height;
  if (group.members) {
    const absent = new Set([...group.missed_exchange, ...group.missed_upload]);
    const there = new Set(group.members);
    const idle = [];
    for (let n = 0; n < group.devices; n += 1) if (!there.has(n)) idle.push(n);
    const size = group.devices > 250 ? 6 : group.devices > 80 ? 7 : 10;
    const perRow = Math.max(1, Math.floor((width - 4) / size));
    height = Math.ceil(group.devices / perRow) * size;
    below.append(...paths([["idle", idle], ["in", group.members.filter((n) => !absent.has(n))], ["missed", [...absent]]], perRow, size));
  } else {
    const whole = width - 8;
    height = 12;
    const part = Math.max(2, whole * group.selected / Math.max(1, group.devices));
    below.append(svg("rect", { class: "idle", width: whole, height: 8, rx: 4 }), svg("rect", { class: "in", width: part, height: 8, rx: Math.min(4, part / 2) }));
  }
  element.append(below);
  return { element, height: 30 + height, missed: group.missed_global };
};

// Dots of each kind as one path: thousands of elements would be slow.
const paths = (kinds, perRow, size) => kinds.filter(([, list]) => list.length > 0).map(([kind, list]) => {
  const r = kind === "idle" ? size * 0.22 : size * 0.36;
  const dot = (n) => `M${((n % perRow) + 0.5) * size - r} ${(Math.floor(n / perRow) + 0.5) * size}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
  return svg("path", { class: `dots ${kind}`, d: list.map(dot).join("") });
});

const dots = (kinds, perRow, width, height, size) => {
  const made = svg("svg", { class: "sign", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const inner = svg("g", { transform: `scale(${width / size})` });
  inner.append(...paths(kinds, perRow, size));
  made.append(inner);
  return made;
};
