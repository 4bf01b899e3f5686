"use strict";
// What the pages of Selvedge share: the theme, numbers as people read them, and elements of drawings.
const selvedge = (() => {
  const root = document.documentElement;
  root.classList.add("js");

  // The theme: what was chosen last, if that can be remembered here; a page opened as a file may not be allowed to.
  const remembered = {
    get() { try { return localStorage.getItem("selvedge-theme"); } catch { return null; } },
    set(theme) { try { localStorage.setItem("selvedge-theme", theme); } catch { /* then it is not remembered */ } },
  };
  const chosen = remembered.get();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  const setUpTheme = () => {
    const button = document.getElementById("theme");
    const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      remembered.set(root.dataset.theme);
      name();
    });
    name();
  };

  // Numbers as people read them.
  const count = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
  const bytes = (n) => {
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let unit = 0;
    while (n >= 999.5 && unit + 1 < units.length) { n /= 1000; unit += 1; }
    return `${n.toFixed(unit === 0 || n >= 99.95 ? 0 : n < 9.995 ? 2 : 1)} ${units[unit]}`;
  };
  const seconds = (s) => {
    const whole = Math.round(s);
    const two = (n) => String(n).padStart(2, "0");
    if (whole >= 3600) return `${Math.floor(whole / 3600)} h ${two(Math.floor(whole % 3600 / 60))} min`;
    if (whole >= 60) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
    return s >= 0.9995 || s === 0 ? `${s.toFixed(1)} s` : `${(s * 1000).toFixed(0)} ms`;
  };
  const value = (y) => Math.abs(y) >= 1e5 ? y.toExponential(3) : y.toFixed(4);

  const element = (name, attributes = {}) => {
    const made = document.createElementNS(document.querySelector("svg").namespaceURI, name);
    for (const [key, text] of Object.entries(attributes)) made.setAttribute(key, text);
    return made;
  };

  return { setUpTheme, count, bytes, seconds, value, element };
})();
