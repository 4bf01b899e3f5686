// One run: how far it is, its curves, who takes part, P, Q and η, bytes, the experiment, its files.

import { AXES, METRICS, badge, bytes, check, count, facts, follower, h, metric, notes, rate, seconds, section, table, tabs } from "./page.js";
import { Chart, seriesOf } from "./chart.js";
import { chiefs, progress } from "./list.js";
import { participation } from "./topology.js";

export const runView = (store, parameters) => {
  const id = parameters.get("run");
  const path = `/api/run/${encodeURIComponent(id)}`;
  let [details, curves, axis, log, gone] = [null, null, "iterations", false, false];
  let [label, shown] = [id, null];

  const heading = h("h1", {}, label);
  const lead = h("p", { className: "lead" });
  const stateLine = h("p", { className: "state-line" });
  const factsPlace = h("div");
  const notesPlace = h("div");
  const reading = h("p", { className: "reading", role: "status" });
  const charts = new Map(METRICS.map(([key, title]) => [key, new Chart({ title })]));
  const panel = h("div", { className: "panel shown" }, [...charts.values()].map((chart) => chart.element));
  const tools = h("div", { className: "tools" },
    tabs("axis", "Horizontal axis", AXES, axis, (key) => { axis = key; draw(); }),
    check("log", "Logarithmic", log, (on) => { log = on; draw(); }));
  const curvesSection = section("curves", "Curves", "Every metric at each evaluation. With very many evaluations, a pale line shows the extremes of each stretch and the line their mean.", tools, reading, panel);

  const who = participation((t) => `${path}/interval${t === null ? "" : `?t=${t}`}`);
  const whoSection = section("who", "Who takes part", "", who.element);

  const intervals = new Chart({ title: "P and Q", show: count, height: 210 });
  const rates = new Chart({ title: "η, learning rate", show: rate, height: 210 });
  const changes = h("div");
  const scheduleSection = section("schedule", "P, Q and η", "", h("div", { className: "panel shown two" }, intervals.element, rates.element), changes);

  const ledger = h("div");
  const bytesSection = section("bytes-section", "Where the bytes went", "", ledger);
  const text = h("code");
  const about = h("div");
  const experimentSection = section("experiment-section", "Experiment", "All settings, including defaults.", about,
    h("details", {}, h("summary", {}, "The experiment as text"), h("pre", { tabindex: "0", "aria-label": "The experiment as TOML" }, text)));
  const files = h("ul", { className: "files" });
  const filesSection = section("files-section", "Download", "The run’s files as they are now.", files);
  const content = h("div", {}, factsPlace, notesPlace, curvesSection, whoSection, scheduleSection, bytesSection, experimentSection, filesSection);
  const missing = h("div");
  const element = h("div", { className: "run-view" }, h("p", {}, h("a", { href: "#", className: "back" }, "← All runs")), heading, lead, stateLine, missing, content);

  const draw = () => {
    if (!curves) return;
    for (const [key, chart] of charts) {
      const curve = curves.curves[key];
      chart.element.hidden = !curve && curves.lines > 0;
      chart.update({ axis, log, series: curve ? [seriesOf(curve, axis, chart.options.title, 0)] : [] });
    }
  };

  const showCurves = (answer) => {
    curves = answer;
    const text = answer.has_more ? `Reading metrics.jsonl: ${Math.round(100 * answer.read / answer.length)} % of ${bytes(answer.length)} …` : "";
    if (reading.textContent !== text) reading.textContent = text;
    draw();
    showNotes();
  };

  const showNotes = () => {
    const run = store.runs.get(id);
    const texts = [run?.note, ...(details?.problems ?? []), ...(curves?.problems ?? [])].filter(Boolean);
    const told = [...new Set(texts)];
    if (notesPlace.dataset.told === told.join("\n")) return;
    notesPlace.dataset.told = told.join("\n");
    notesPlace.replaceChildren(...(told.length > 0 ? [notes(told)] : []));
  };

  const showDetails = (answer) => {
    details = answer;
    showSchedule(answer);
    showLedger(answer);
    about.replaceChildren(facts([
      ["Groups", count(answer.sizes.groups)], ["Devices", count(answer.sizes.devices)], ["Devices per interval", count(answer.sizes.selected)],
      ["Training samples", count(answer.data.training)], ["Validation samples", count(answer.data.validation)], ["Test samples", count(answer.data.test)],
      [answer.data.answers, count(answer.data.classes)], ["Parameters n0, n1, n2", [answer.sizes.n0, answer.sizes.n1, answer.sizes.n2].map(count).join(", ")],
      ["Embeddings d1, d2", `${count(answer.sizes.d1)}, ${count(answer.sizes.d2)}`], ["CPU instructions", answer.instructions],
    ]));
    if (text.textContent !== answer.experiment) text.textContent = answer.experiment;
    showFiles(answer.files);
    showNotes();
  };

  // Links stay, so that whoever has reached one by keys keeps it; sizes change.
  const showFiles = (all) => {
    const names = all.map((file) => file.name).join();
    if (files.dataset.names !== names) {
      files.dataset.names = names;
      files.replaceChildren(...all.map(({ name }) => h("li", {}, h("a", { href: `${path}/file/${name}`, download: `${id}-${name}` }, name), h("small"))));
    }
    all.forEach(({ size }, i) => { files.children[i].lastElementChild.textContent = bytes(size); });
  };

  // Puts a new table where an old one was, scrolled as that was.
  const replaceTable = (place, made) => {
    const old = place.firstElementChild;
    const [top, left] = [old?.scrollTop ?? 0, old?.scrollLeft ?? 0];
    const focused = old && document.activeElement === old;
    place.replaceChildren(...made);
    if (!made[0]) return;
    Object.assign(made[0], { scrollTop: top, scrollLeft: left });
    if (focused) made[0].focus({ preventScroll: true });
  };

  const showSchedule = ({ schedule, steered, summary }) => {
    const steps = schedule.steps;
    const t = Math.max(summary.t, steps[steps.length - 1][0]);
    const line = (i, label, index) => {
      // The last value holds until now.
      const [x, y] = [steps.map((s) => s[0]).concat(t), steps.map((s) => s[i]).concat(steps[steps.length - 1][i])];
      return { label, index, x, y, step: true };
    };
    const wide = (...columns) => {
      const all = steps.flatMap((s) => columns.map((i) => s[i]));
      return Math.max(...all) > 20 * Math.min(...all);
    };
    intervals.update({ series: [line(1, "P", 0), line(2, "Q", 1)], log: wide(1, 2), title: "P (blue), Q (orange, dashed)" });
    rates.update({ series: [line(3, "η", 0)], log: wide(3) });
    const changed = schedule.untold + schedule.changes.length - 1;
    scheduleSection.about(steered === "off"
      ? `This run is not steered: P and Q are those of the experiment${changed > 0 ? ", and η is halved as it states" : ", and so is η"}.`
      : `Steered by ${steered}: ${count(changed)} ${changed === 1 ? "change" : "changes"} so far, newest first, each with its reason.`);
    const rows = [...schedule.changes].reverse().map((c) => ({ cells: [count(c.t), count(c.p), count(c.q), rate(c.eta), c.reason] }));
    const made = table("changes", "Changes of P, Q and η", [["From iteration", "number"], ["P", "number"], ["Q", "number"], ["η", "number"], ["Why", "why"]], rows);
    made.classList.add("tall");
    replaceTable(changes, [made]);
    if (schedule.untold > 0) changes.append(h("p", { className: "about" }, `${count(schedule.untold)} earlier changes are in segments.jsonl.`));
  };

  const showLedger = ({ ledger: lines }) => {
    const total = lines.reduce((sum, line) => sum + line.bytes, 0);
    bytesSection.about(lines.length > 0 ? "Payload sent by all groups so far, by link and kind, with its share of the total." : "There is no ledger yet: it is written with the first checkpoint, after two seconds.");
    const links = [...new Set(lines.map((line) => line.ends))];
    const rows = [];
    for (const ends of links) {
      const of = lines.filter((line) => line.ends === ends).sort((a, b) => b.bytes - a.bytes);
      of.forEach((line, i) => rows.push({ className: i === 0 ? "parted" : "", cells: [i === 0 ? ends : "", line.kind, count(line.messages), bytes(line.bytes), share(line.bytes / Math.max(1, total))] }));
    }
    rows.push({ className: "total", cells: ["Total", "", count(lines.reduce((sum, line) => sum + line.messages, 0)), bytes(total), ""] });
    replaceTable(ledger, lines.length > 0 ? [table("ledger", "Bytes by link and kind", [["From and to", ""], ["What", ""], ["Messages", "number"], ["Bytes", "number"], ["Share", "share"]], rows)] : []);
  };

  const share = (part) => {
    const bar = h("span", { className: "share-bar" });
    bar.style.setProperty("--share", `${100 * part}%`);
    return h("span", { className: "share-cell" }, bar, h("span", {}, `${(100 * part).toFixed(1)} %`));
  };

  const showSummary = (run) => {
    if (label !== run.label) {
      label = run.label;
      heading.textContent = label;
      document.title = `${label} – Selvedge dashboard`;
    }
    const words = run.problem ? "" : `${run.algorithm} on ${run.set}, with seed ${run.seed}${run.deployed ? ", deployed" : ""}. ${run.path}`;
    if (lead.textContent !== words) lead.textContent = words;
    const ended = run.ended && run.ended !== run.state ? ` ${run.ended}` : "";
    const advice = run.state === "stopped" || run.state === "interrupted" ? h("small", {}, ` resume with selvedge train --resume ${run.path}`) : null;
    stateLine.replaceChildren(badge(run), h("small", {}, ended), ...(advice ? [advice] : []), ...(run.problem || run.t >= run.iterations ? [] : [progress(run)]));
    content.hidden = Boolean(run.problem);
    if (run.problem) { missing.replaceChildren(notes([run.problem])); return; }
    const last = run.last ?? {};
    factsPlace.replaceChildren(facts([
      ["Iteration", `${count(run.t)} of ${count(run.iterations)}`], ["Training loss", metric(last.loss)], ...chiefs(last).map(([title, x]) => [`Test ${title}`, metric(x)]),
      ["Bytes per group", last.bytes === undefined ? "–" : bytes(last.bytes)], ["Simulated time", last.seconds === undefined ? "–" : seconds(last.seconds)],
      ["P, Q", `${count(last.p ?? 0)}, ${count(last.q ?? 0)}`], ["η", rate(last.eta)],
      ...(run.real_seconds > 0 ? [["Real time", seconds(run.real_seconds)]] : []),
    ]));
  };

  const fail = (error) => {
    if (error.status === 404) lose(error.message); else missing.replaceChildren(notes([error.message]));
  };
  const lose = (why) => {
    gone = true;
    stateLine.replaceChildren();
    missing.replaceChildren(notes([`${label}: ${why ?? "this run no longer exists: it was removed, moved or renamed"}. Below is its last known state.`]));
  };
  const followers = [follower(() => path, showDetails, fail), follower(() => `${path}/curves`, showCurves, fail)];
  who.onFail(fail);

  const update = () => {
    const run = store.runs.get(id);
    if (!run) { lose(); return; }
    // It is there again, perhaps as another one.
    if (gone) { gone = false; shown = null; followers.forEach((f) => f.again()); who.again(); }
    // Only when something has changed, so that what somebody marks to copy stays marked.
    if (shown !== run.stamp) {
      shown = run.stamp;
      if (!run.problem) missing.replaceChildren();
      showSummary(run);
    }
    if (run.problem) return;
    for (const each of followers) each.look(run);
    who.look(run, whoSection.about);
  };

  return { element, title: () => store.runs.get(id)?.label ?? "Run", update, leave: () => { followers.forEach((f) => f.stop()); who.stop(); charts.forEach((c) => c.leave()); } };
};
