// Chosen runs side by side: one metric as lines, all results as a table, and what their experiments differ in.

import { AXES, METRICS, badge, bytes, check, count, follower, h, metric, notes, seconds, section, table, tabs } from "./page.js";
import { Chart, seriesOf, swatch } from "./chart.js";

const MOST = 14;

export const compareView = (store, parameters) => {
  const wanted = [...new Set(parameters.get("compare").split(",").filter(Boolean))];
  const ids = wanted.slice(0, MOST);
  const words = ids.length < wanted.length ? `The first ${MOST} of ${count(wanted.length)} runs: more lines could not be told apart.` : `${count(ids.length)} runs, side by side.`;
  let chosen = METRICS.some(([key]) => key === parameters.get("metric")) ? parameters.get("metric") : "loss";
  let axis = AXES.some(([key]) => key === parameters.get("axis")) ? parameters.get("axis") : "iterations";
  let log = parameters.get("log") === "1";
  const hidden = new Set();
  store.chosen = new Set(ids);

  const chart = new Chart({ title: "", height: innerWidth < 640 ? 300 : 420 });
  const legend = h("div", { className: "legend", role: "group", "aria-label": "Runs: press to hide or show" });
  const missing = h("div");
  const results = h("div");
  const differences = h("div");
  const differing = section("differences-section", "What differs", "", differences);
  const remember = () => {
    const hash = new URLSearchParams({ compare: ids.join(","), metric: chosen, axis, ...(log ? { log: "1" } : {}) });
    history.replaceState(null, "", `#${decodeURIComponent(hash)}`);
    draw();
  };
  const select = h("select", { id: "metric", onchange: (event) => { chosen = event.target.value; remember(); } },
    METRICS.map(([key, title]) => h("option", { value: key, selected: key === chosen }, title)));
  const tools = h("div", { className: "tools" }, h("label", { className: "check", for: "metric" }, "Metric"), select,
    tabs("axis", "Horizontal axis", AXES, axis, (key) => { axis = key; remember(); }),
    check("log", "Logarithmic", log, (on) => { log = on; remember(); }), legend);
  const element = h("div", { className: "compare-view" }, h("p", {}, h("a", { href: "#", className: "back" }, "← All runs")),
    h("h1", {}, "Comparison"), h("p", { className: "lead" }, words), missing, tools, chart.element,
    section("results-section", "Results", "The last evaluation, and the one that was best on the validation samples. The best value of a column is bold. Precision, recall and F1 are means over the classes or labels; MAE and RMSE are in the unit of the quantity.", results), differing);

  const runs = ids.map((id, index) => {
    const of = { id, index, curves: null, experiment: null };
    const path = `/api/run/${encodeURIComponent(id)}`;
    of.followers = [
      follower(() => `${path}/curves`, (answer) => { of.curves = answer; draw(); }, () => {}),
      follower(() => path, (answer) => { of.experiment = answer.experiment; showDifferences(); }, () => {}),
    ];
    return of;
  });
  const name = (run) => store.runs.get(run.id)?.label ?? run.label ?? run.id;

  const showLegend = () => {
    const key = runs.map((run) => `${name(run)} ${hidden.has(run.id)} ${store.runs.get(run.id)?.state}`).join("\n");
    if (legend.dataset.key === key) return;
    legend.dataset.key = key;
    const focused = document.activeElement?.dataset?.toggle;
    legend.replaceChildren(...runs.map((run) => h("button", { type: "button", "data-toggle": run.index, "aria-pressed": String(!hidden.has(run.id)), onclick: () => {
      if (hidden.has(run.id)) hidden.delete(run.id); else hidden.add(run.id);
      draw();
    } }, swatch(run.index), h("span", {}, name(run)))));
    if (focused) legend.querySelector(`[data-toggle="${focused}"]`)?.focus();
  };

  const draw = () => {
    const title = METRICS.find(([key]) => key === chosen)[1];
    const series = runs.filter((run) => !hidden.has(run.id) && run.curves?.curves[chosen]).map((run) => seriesOf(run.curves.curves[chosen], axis, name(run), run.index));
    chart.update({ series, axis, log, title });
    showLegend();
    showResults();
  };

  const showResults = () => {
    const rows = [];
    // Without those of other outcomes than these runs have.
    const measured = (of) => of && [of.last, of.best].filter(Boolean);
    const shown = METRICS.filter(([key]) => runs.some((run) => measured(run.curves)?.some((at) => (at[key] ?? null) !== null)));
    for (const [kind, words] of [["last", "last"], ["best", "best on validation"]]) {
      const of = runs.filter((run) => run.curves?.[kind]);
      const best = Object.fromEntries(shown.map(([key, , isLower]) => {
        const values = of.map((run) => run.curves[kind][key]).filter((x) => (x ?? null) !== null);
        return [key, isLower ? Math.min(...values) : Math.max(...values)];
      }));
      of.forEach((run, i) => {
        const at = run.curves[kind];
        const cell = (key) => of.length > 1 && at[key] === best[key] ? h("strong", {}, metric(at[key])) : metric(at[key]);
        const summary = store.runs.get(run.id);
        const label = h("span", { className: "series" }, swatch(run.index), h("a", { href: `#run=${run.id}` }, name(run)));
        rows.push({ className: i === 0 && rows.length > 0 ? "parted" : "", cells: [label, words, summary ? badge(summary) : "gone", count(at.t), ...shown.map(([key]) => cell(key)), bytes(at.bytes), seconds(at.seconds)] });
      });
    }
    const columns = [["Run", ""], ["Evaluation", ""], ["State", ""], ["Iteration", "number"], ...shown.map(([, title]) => [title, "number"]), ["Bytes per group", "number"], ["Simulated time", "number"]];
    const key = rows.map((row) => row.cells.map((cell) => cell.textContent ?? cell).join(" ")).join("\n");
    if (results.dataset.key === key || results.contains(document.activeElement)) return;
    results.dataset.key = key;
    results.replaceChildren(...(rows.length > 0 ? [table("results", "Results", columns, rows)] : [h("p", { className: "about" }, "Nothing has been evaluated yet.")]));
  };

  // Keys of a TOML text as the server writes it: one on each line.
  const keys = (toml) => {
    const found = new Map();
    let prefix = "";
    for (const line of toml.split("\n")) {
      const header = line.match(/^\[+([^\]]+)\]+$/);
      const pair = line.match(/^([A-Za-z0-9_]+) = (.*)$/);
      if (header) prefix = `${header[1]}.`;
      else if (pair) found.set(prefix + pair[1], (found.has(prefix + pair[1]) ? `${found.get(prefix + pair[1])}, ` : "") + pair[2]);
    }
    return found;
  };
  const showDifferences = () => {
    const known = runs.filter((run) => run.experiment);
    const all = known.map((run) => keys(run.experiment));
    const names = [...new Set(all.flatMap((of) => [...of.keys()]))].filter((key) => all.some((of) => of.get(key) !== all[0].get(key)));
    differing.about(names.length > 0 ? "Keys whose values differ between the experiments." : "The experiments are identical except for their folders.");
    const rows = names.map((key) => ({ cells: [key, ...all.map((of) => of.get(key) ?? "–")] }));
    differences.replaceChildren(...(names.length > 0 ? [table("differences", "What differs", [["Key", ""], ...known.map((run) => [name(run), ""])], rows)] : []));
  };

  const update = () => {
    const gone = [];
    for (const run of runs) {
      const summary = store.runs.get(run.id);
      if (!summary) { gone.push(name(run)); continue; }
      run.label = summary.label;
      run.followers.forEach((f) => f.look(summary));
    }
    const texts = gone.map((label) => `${label}: this run no longer exists: it was removed, moved or renamed.`);
    if (missing.dataset.told !== texts.join()) {
      missing.dataset.told = texts.join();
      missing.replaceChildren(...(texts.length > 0 ? [notes(texts)] : []));
    }
    showLegend();
    showResults();
  };

  return { element, title: () => "Comparison", update, leave: () => { runs.forEach((run) => run.followers.forEach((f) => f.stop())); chart.leave(); } };
};
