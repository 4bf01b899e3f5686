// Asks every second what has changed, and shows the view that the address names: #run=ID, #compare=ID,ID or all runs.

import { ask, count, h, Refused } from "./page.js";
import { compareView } from "./compare.js";
import { listView } from "./list.js";
import { runView } from "./run.js";

const EVERY = 1000; // milliseconds
const HIDDEN = 15000; // the same for a page that nobody sees
const LONGEST = 8000; // between two attempts while the server does not answer

const store = { runs: new Map(), notes: [], roots: [], chosen: new Set(), loaded: false };
let version = null;
let failures = 0;
let timer = null;
let asking = false;
let view = null;

const main = document.getElementById("main");
const byId = (id) => document.getElementById(id);
const setText = (element, text) => { if (element.textContent !== text) element.textContent = text; };

const take = (list) => {
  // Another server knows other runs.
  if (version && list.ids && version.split(".")[0] !== list.version.split(".")[0]) store.runs.clear();
  version = list.version;
  for (const run of list.runs) store.runs.set(run.id, run);
  if (!list.ids) return;
  const there = new Set(list.ids);
  for (const id of [...store.runs.keys()]) if (!there.has(id)) store.runs.delete(id);
  Object.assign(store, { notes: list.notes, roots: list.roots });
  setText(byId("about"), `Selvedge ${list.selvedge} · reads ${list.roots.join(", ")} · changes nothing`);
};

const tellState = () => {
  const running = [...store.runs.values()].filter((run) => run.state === "running").length;
  const runs = `${count(store.runs.size)} ${store.runs.size === 1 ? "run" : "runs"}`;
  setText(byId("status"), running > 0 ? `${runs}, ${count(running)} running` : runs);
  document.body.classList.toggle("lost", failures > 1);
};

const tellProblem = (error) => {
  const alert = byId("alert");
  alert.hidden = !error;
  if (!error) return;
  setText(alert, error instanceof Refused
    ? `The dashboard refuses to answer: ${error.message}.`
    : "The dashboard’s server does not answer. Training continues without it. This page shows the last known state, and updates again by itself once the server is back.");
};

const poll = async () => {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  let wait = document.hidden ? HIDDEN : EVERY;
  try {
    const list = await ask(`/api/runs${version ? `?since=${encodeURIComponent(version)}` : ""}`);
    failures = 0;
    take(list);
    store.loaded = true;
    tellProblem(null);
    tellState();
  } catch (error) {
    failures += 1;
    // One lost answer is nothing to tell of.
    if (failures > 1 || error instanceof Refused) { tellProblem(error); tellState(); }
    wait = Math.min(LONGEST, EVERY * 2 ** Math.min(failures - 1, 3));
  } finally {
    asking = false;
    timer = setTimeout(poll, wait);
  }
  if (failures === 0) view.update();
};

const views = { run: runView, compare: compareView };
const show = () => {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const name = Object.keys(views).find((key) => parameters.get(key));
  view?.leave();
  view = (views[name] ?? listView)(store, parameters);
  main.replaceChildren(view.element);
  document.title = `${view.title()} – Selvedge dashboard`;
  scrollTo(0, 0);
  if (store.loaded) view.update();
};

// The token has become a cookie; it need not stand in the address, nor in the history.
const address = new URL(location.href);
if (address.searchParams.has("token")) {
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
}

selvedge.setUpTheme();
byId("skip").addEventListener("click", () => { main.focus(); main.scrollIntoView(); });
addEventListener("hashchange", () => { show(); main.focus({ preventScroll: true }); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
addEventListener("online", poll);
main.replaceChildren(h("p", { className: "lead" }, "Looking for runs …"));
show();
poll();
