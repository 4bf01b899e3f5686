// All runs, to look at one or to choose some to compare.

import { ago, badge, bytes, count, h, metric, notes, seconds } from "./page.js";

const COLUMNS = [
  ["", "choose"], ["Run", ""], ["State", ""], ["Iteration", "number"], ["Training loss", "number"], ["AUC, R² or concordance", "number"],
  ["F1, MAE or Brier score", "number"], ["Bytes per group", "number"], ["Simulated", "number"], ["Updated", "number"],
];

const falling = (of) => (a, b) => (of(b) ?? -Infinity) - (of(a) ?? -Infinity);
const ORDERS = {
  new: ["Running first, then newest", (a, b) => (b.state === "running") - (a.state === "running") || (a.state === "running" ? 0 : b.written - a.written) || a.label.localeCompare(b.label, undefined, { numeric: true })],
  name: ["Name", (a, b) => a.label.localeCompare(b.label, undefined, { numeric: true })],
  auc: ["Highest AUC", falling((run) => run.last?.auc)],
  loss: ["Lowest training loss", (a, b) => (a.last?.loss ?? Infinity) - (b.last?.loss ?? Infinity)],
  bytes: ["Fewest bytes", (a, b) => (a.last?.bytes ?? Infinity) - (b.last?.bytes ?? Infinity)],
};

const CLASSES = { AUC: "auc", F1: "f1" };
const CHIEFS = [CLASSES, { "R²": "r2", MAE: "mae" }, { Concordance: "concordance", "Brier score": "brier" }];

// The two metrics that stand for all of a run, whatever its outcome is, with their titles.
export const chiefs = (last) => {
  const has = (titles) => Object.values(titles).some((key) => (last[key] ?? null) !== null);
  return Object.entries(CHIEFS.find(has) ?? CLASSES).map(([title, key]) => [title, last[key]]);
};

export const progress = (run) => {
  const share = run.iterations ? Math.min(1, run.t / run.iterations) : 0;
  const bar = h("progress", { max: 1, value: share, "aria-label": `${Math.round(100 * share)} % of the iterations` });
  return bar;
};

export const listView = (store) => {
  let [words, order] = ["", "new"];
  const rows = new Map();
  const body = h("tbody");
  const empty = h("p", { className: "lead empty" });
  const notesPlace = h("div");
  const shown = h("p", { className: "hidden", role: "status" });
  const compareButton = h("a", { className: "button" }, "Compare");
  const choice = h("p", {});
  const compareBar = h("div", { className: "compare-bar", role: "region", "aria-label": "Selected runs", hidden: true },
    choice, h("button", { type: "button", className: "quiet", onclick: () => { store.chosen.clear(); update(); } }, "Clear selection"), compareButton);
  const search = h("input", { type: "search", id: "filter", placeholder: "name, algorithm, state …", autocomplete: "off", oninput: (event) => { words = event.target.value.toLowerCase(); update(); } });
  const select = h("select", { id: "order", onchange: (event) => { order = event.target.value; update(); } },
    Object.entries(ORDERS).map(([key, [title]]) => h("option", { value: key }, title)));
  const tools = h("div", { className: "list-tools" }, h("label", { for: "filter" }, "Filter"), search, h("label", { for: "order" }, "Sort by"), select);
  const head = h("thead", {}, h("tr", {}, COLUMNS.map(([title, kind]) => h("th", { scope: "col", className: kind }, title || h("span", { className: "hidden" }, "Compare")))));
  const table = h("table", { className: "runs", id: "all-runs" }, h("caption", { className: "hidden" }, "All runs"), head, body);
  const element = h("div", {}, h("h1", {}, "Runs"), notesPlace, tools, shown, table, empty, compareBar);

  const matches = (run) => words.split(/\s+/).every((word) => `${run.label} ${run.name} ${run.algorithm} ${run.set} ${run.state} ${run.problem ?? ""}`.toLowerCase().includes(word));

  const row = (run) => {
    const box = h("input", { type: "checkbox", "aria-label": `Compare ${run.label}`, checked: store.chosen.has(run.id), disabled: run.state === "damaged", onchange: (event) => {
      if (event.target.checked) store.chosen.add(run.id); else store.chosen.delete(run.id);
      update();
    } });
    const about = run.problem ?? [run.algorithm, run.set, `seed ${run.seed}`, run.deployed ? "deployed" : null].filter(Boolean).join(" · ");
    const cell = (title, kind, ...content) => h("td", { className: kind, "data-title": title }, ...content);
    const last = run.last ?? {};
    const state = cell("State", "state", badge(run));
    if (run.state === "running") state.append(progress(run));
    const made = h("tr", { "data-run": run.id, className: run.state },
      h("td", { className: "choose" }, box),
      h("th", { scope: "row", className: "name" }, h("a", { href: `#run=${run.id}` }, run.label), h("small", {}, about)),
      state);
    if (run.problem) { made.append(h("td", { className: "rest", colspan: COLUMNS.length - 3 })); return made; }
    made.append(
      cell("Iteration", "number", count(run.t), h("small", {}, ` of ${count(run.iterations)}`)),
      cell("Training loss", "number", metric(last.loss)), ...chiefs(last).map(([title, x]) => cell(title, "number", metric(x), ...(title in CLASSES ? [] : [h("small", {}, ` ${title}`)]))),
      cell("Bytes per group", "number", last.bytes === undefined ? "–" : bytes(last.bytes)),
      cell("Simulated", "number", last.seconds === undefined ? "–" : seconds(last.seconds)),
      cell("Updated", "number when", h("time", { datetime: new Date(run.written).toISOString() }, ago(run.written))));
    return made;
  };

  // The box and the name stay the same elements: a click that is under way would be lost with them, and so would the focus.
  const renew = (there, made) => {
    there.className = made.className;
    there.querySelector("input").disabled = made.querySelector("input").disabled;
    const [name, now] = [there, made].map((one) => one.querySelector(".name"));
    if (name.innerHTML !== now.innerHTML) name.replaceWith(now);
    while (there.children.length > 2) there.lastElementChild.remove();
    there.append(...[...made.children].slice(2));
  };

  // Only what has changed is made anew, so that nobody loses the place where he is.
  const update = () => {
    const runs = [...store.runs.values()].filter(matches).sort(ORDERS[order][1]);
    for (const id of [...store.chosen]) if (!store.runs.has(id)) store.chosen.delete(id);
    const there = new Set(runs.map((run) => run.id));
    for (const [id, known] of rows) if (!there.has(id)) { known.row.remove(); rows.delete(id); }
    let place = body.firstElementChild;
    for (const run of runs) {
      let known = rows.get(run.id);
      if (!known) {
        known = { row: row(run) };
        rows.set(run.id, known);
      } else if (known.stamp !== run.stamp) {
        renew(known.row, row(run));
      }
      known.stamp = run.stamp;
      if (known.row !== place) body.insertBefore(known.row, place); else place = place.nextElementSibling;
      known.row.querySelector("input").checked = store.chosen.has(run.id);
      const time = known.row.querySelector("time");
      if (time && time.textContent !== ago(run.written)) time.textContent = ago(run.written);
    }
    table.hidden = runs.length === 0;
    empty.hidden = runs.length > 0;
    empty.textContent = store.runs.size > 0 ? "No run matches this filter."
      : `There are no runs in ${store.roots.join(", ")} yet. They appear here automatically: try selvedge train.`;
    shown.textContent = words ? `${count(runs.length)} of ${count(store.runs.size)} runs` : "";
    notesPlace.replaceChildren(...(store.notes.length > 0 ? [notes(store.notes)] : []));
    const chosen = store.chosen.size;
    compareBar.hidden = chosen === 0;
    choice.textContent = chosen === 1 ? "1 run selected; select another one to compare" : `${chosen} runs selected`;
    compareButton.href = `#compare=${[...store.chosen].join(",")}`;
    compareButton.classList.toggle("off", chosen < 2);
  };

  return { element, title: () => "Runs", update, leave: () => {} };
};
