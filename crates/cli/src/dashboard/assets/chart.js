// Lines over an axis, drawn anew whenever there is something new. Pointing, touching and arrow keys show values.

import { bytes, count, h, hideTip, seconds, showTip, svg, value } from "./page.js";

const DASHES = ["", "7 3", "2 2.5", "9 3 2 3", "13 4", "5 2 1.5 2 1.5 2"];
export const dash = (index) => DASHES[(index + Math.floor(index / 7)) % DASHES.length];

// A short stretch of a line, for legends.
export const swatch = (index) => {
  const made = svg("svg", { class: `c${index % 7}`, width: 28, height: 10, viewBox: "0 0 28 10", "aria-hidden": "true" });
  made.append(svg("line", { x1: 1, x2: 27, y1: 5, y2: 5, stroke: "currentColor", "stroke-width": 2.2, "stroke-dasharray": dash(index) }));
  return made;
};

const niceStep = (rough) => {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 2.5, 5, 10].find((step) => step * power >= rough * 0.999) ?? 10);
};

const linearTicks = (low, high, wanted) => {
  const step = niceStep((high - low) / wanted);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) ticks.push(i * step);
  return ticks;
};

const logTicks = (low, high, wanted) => {
  const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const factors = to - from <= 2 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil((to - from) / wanted));
  const ticks = [];
  for (let power = from; power <= to; power += every) for (const factor of factors) ticks.push(factor * 10 ** power);
  return ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
};

const plain = (tick) => tick === 0 ? "0" : Math.abs(tick) >= 1e5 || Math.abs(tick) < 1e-3 ? tick.toExponential(0).replace("e+", "e") : String(Number(tick.toPrecision(4)));

// What an axis is in: a factor, and how its title and its values are written.
const units = {
  iterations: () => ({ factor: 1, title: "iterations", tick: (x) => count(x), heading: (x) => `iteration ${count(x)}` }),
  bytes: (high) => {
    const [factor, name] = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([f]) => high >= f) ?? [1, "B"];
    return { factor, title: `bytes sent per group, ${name}`, tick: plain, heading: (x) => `${bytes(x)} per group` };
  },
  seconds: (high) => {
    const [factor, name] = high >= 7200 ? [3600, "h"] : high >= 120 ? [60, "min"] : [1, "s"];
    return { factor, title: `simulated time, ${name}`, tick: plain, heading: seconds };
  },
};

const extent = (lists) => {
  let [low, high] = [Infinity, -Infinity];
  for (const list of lists) for (const x of list) {
    if (x < low) low = x;
    if (x > high) high = x;
  }
  return [low, high];
};

// A curve of the server as a series.
export const seriesOf = (curve, axis, label, index) => ({
  label, index, x: curve[axis], y: curve.y, mean: curve.mean ? { x: curve.mean[axis], y: curve.mean.y } : null,
});

export class Chart {
  // `options`: title, height, and show: how a value is written.
  constructor(options) {
    this.options = { height: 250, show: value, ...options };
    this.svg = svg("svg", { class: "chart", role: "img", tabindex: "0", "aria-label": this.options.title || "chart" });
    this.element = h("figure", {}, this.svg);
    this.series = [];
    this.axis = "iterations";
    this.listen();
    this.width = 0;
    // Drawn in the size that it has, so that letters are as large as all others.
    new ResizeObserver(([{ contentRect }]) => {
      if (Math.abs(contentRect.width - this.width) > 1) { this.width = contentRect.width; this.draw(); }
    }).observe(this.element);
  }

  // `series`: label, index (which colour), x, y, mean (x and y too) where points are extremes, and step where values hold
  // until the next one.
  update({ series, axis, log, title }) {
    this.series = series.filter((s) => s.x.length > 0);
    Object.assign(this, { axis: axis ?? "iterations", log: log ?? false });
    if (title) this.options.title = title;
    this.draw();
  }

  draw() {
    if (this.width < 40) return;
    const [width, height] = [this.width, this.options.height];
    const box = { left: 50, right: width - 12, top: 34, bottom: height - 40 };
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    const usable = (y) => !this.log || y > 0;
    const series = this.series.map((s) => {
      const kept = s.y.map((_, i) => i).filter((i) => usable(s.y[i]));
      // Where every extreme is above 0, so is every mean.
      const mean = s.mean && kept.length === s.y.length ? s.mean : null;
      return { ...s, mean, x: kept.map((i) => s.x[i]), y: kept.map((i) => s.y[i]) };
    }).filter((s) => s.x.length > 0);
    const [, xHigh] = extent(series.map((s) => s.x));
    let [yLow, yHigh] = extent(series.map((s) => s.y));
    const nothing = series.length === 0;
    const unit = units[this.axis](nothing ? 1 : xHigh);
    const xTop = nothing || xHigh <= 0 ? 1 : xHigh;
    if (nothing) [yLow, yHigh] = [this.log ? 0.1 : 0, 1];
    if (this.log) {
      if (yLow === yHigh) [yLow, yHigh] = [yLow / 2, yHigh * 2];
      else [yLow, yHigh] = [yLow / 1.08, yHigh * 1.08];
    } else {
      const slack = yHigh > yLow ? 0.06 * (yHigh - yLow) : Math.abs(yHigh) * 0.5 || 1;
      [yLow, yHigh] = [yLow >= 0 && yLow - slack < 0 ? 0 : yLow - slack, yHigh + slack];
    }
    const scale = this.log ? Math.log10 : (v) => v;
    const x = (v) => box.left + (box.right - box.left) * v / xTop;
    const y = (v) => box.bottom - (box.bottom - box.top) * (scale(v) - scale(yLow)) / (scale(yHigh) - scale(yLow));
    this.geometry = { series, x, y, unit, box };
    this.svg.replaceChildren(...this.frame(box, unit, xTop, [yLow, yHigh], x, y), ...series.flatMap((s) => this.line(s, x, y)));
    if (nothing) this.svg.append(this.text("nothing to show yet", (box.left + box.right) / 2, (box.top + box.bottom) / 2, "chart-text", "middle"));
    const ends = series.map((s) => `${s.label} ${this.options.show(s.y[s.y.length - 1])}`).join(", ");
    this.svg.setAttribute("aria-label", `${this.options.title} against ${unit.title}${ends ? `; last: ${ends}` : ""}. Arrow keys move from point to point.`);
    if (this.shown !== undefined) this.show(this.shown, false);
  }

  frame(box, unit, xTop, [yLow, yHigh], x, y) {
    const parts = [this.text(this.options.title, 12, 19, "chart-title"), this.text(unit.title, (box.left + box.right) / 2, box.bottom + 33, "chart-text", "middle")];
    const [rows, columns] = [Math.max(3, Math.round((box.bottom - box.top) / 30)), Math.max(2, Math.round((box.right - box.left) / 95))];
    for (const tick of this.log ? logTicks(yLow, yHigh, rows) : linearTicks(yLow, yHigh, rows)) {
      parts.push(svg("line", { class: "chart-grid", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }));
      parts.push(this.text(plain(tick), box.left - 7, y(tick) + 4, "chart-text", "end"));
    }
    for (const tick of linearTicks(0, xTop / unit.factor, columns)) {
      const at = x(tick * unit.factor);
      parts.push(svg("line", { class: "chart-axis", x1: at, x2: at, y1: box.bottom, y2: box.bottom + 4 }));
      parts.push(this.text(unit.tick(tick), at, box.bottom + 17, "chart-text", at > box.right - 14 ? "end" : "middle"));
    }
    parts.push(svg("line", { class: "chart-axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
    return parts;
  }

  // Where many evaluations lie behind a point, their extremes are pale and their means in front.
  line(s, x, y) {
    const path = (xs, ys) => xs.map((v, i) => {
      const [px, py] = [x(v).toFixed(1), y(ys[i]).toFixed(1)];
      return i === 0 ? `M${px} ${py}` : s.step ? `H${px}V${py}` : `L${px} ${py}`;
    }).join("");
    const last = s.x.length - 1;
    const style = { fill: "none", stroke: "currentColor", "stroke-width": 1.8, "stroke-linejoin": "round" };
    const [name, dashes] = [`c${s.index % 7}`, { "stroke-dasharray": dash(s.index) }];
    const parts = s.mean
      ? [svg("path", { ...style, class: `line pale ${name}`, "stroke-width": 1, d: path(s.x, s.y) }), svg("path", { ...style, ...dashes, class: `mean ${name}`, d: path(s.mean.x, s.mean.y) })]
      : [svg("path", { ...style, ...dashes, class: `line ${name}`, d: path(s.x, s.y) })];
    return [...parts, svg("circle", { class: name, cx: x(s.x[last]), cy: y(s.y[last]), r: 3, fill: "currentColor" })];
  }

  text(content, x, y, name, anchor = "start") {
    const made = svg("text", { x, y, class: name, "text-anchor": anchor });
    made.textContent = content;
    return made;
  }

  // Shows what every line has at a value of the axis.
  show(at, withTip = true) {
    const { series, x, y, unit, box } = this.geometry ?? {};
    this.hide();
    if (!series || series.length === 0) return;
    const found = series.map((s) => {
      let i = 0;
      if (s.step) while (i + 1 < s.x.length && s.x[i + 1] <= at) i += 1;
      else s.x.forEach((v, j) => { if (Math.abs(v - at) < Math.abs(s.x[i] - at)) i = j; });
      return { s, i, far: Math.abs(s.x[i] - at) };
    });
    const nearest = found.reduce((a, b) => b.far < a.far ? b : a);
    const place = nearest.s.step ? at : nearest.s.x[nearest.i];
    // A line that ends before has nothing to say here.
    const here = found.filter(({ s, i }) => s.step || Math.abs(x(s.x[i]) - x(place)) <= Math.max(24, (box.right - box.left) / 12));
    this.shown = place;
    this.cross = svg("g", { class: "cross" });
    this.cross.append(svg("line", { x1: x(place), x2: x(place), y1: box.top, y2: box.bottom }));
    for (const { s, i } of here) this.cross.append(svg("circle", { class: `c${s.index % 7}`, cx: x(s.step ? place : s.x[i]), cy: y(s.y[i]), r: 3.8 }));
    this.svg.append(this.cross);
    if (!withTip) return;
    const outer = this.svg.getBoundingClientRect();
    showTip(outer, outer.left + x(place), unit.heading(place), here.map(({ s, i }) => [s.index, s.label, this.options.show(s.y[i])]));
  }

  hide() {
    this.cross?.remove();
    [this.cross, this.shown] = [undefined, undefined];
  }

  leave() {
    this.hide();
    hideTip();
  }

  listen() {
    const follow = (event) => {
      if (!this.geometry) return;
      const { box, series } = this.geometry;
      if (series.length === 0) return;
      const [, high] = extent(series.map((s) => s.x));
      const share = (event.clientX - this.svg.getBoundingClientRect().left - box.left) / (box.right - box.left);
      this.show(Math.max(0, Math.min(1, share)) * high);
    };
    this.svg.addEventListener("pointermove", follow);
    this.svg.addEventListener("pointerdown", follow);
    this.svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") this.leave(); });
    this.svg.addEventListener("blur", () => this.leave());
    this.svg.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") this.leave();
      if (!by || !this.geometry || this.geometry.series.length === 0) return;
      event.preventDefault();
      const xs = this.geometry.series.reduce((a, b) => b.x.length > a.x.length ? b : a).x;
      if (this.shown === undefined) { this.show(xs[by > 0 ? 0 : xs.length - 1]); return; }
      let i = xs.findIndex((v) => v >= this.shown);
      if (i < 0) i = xs.length - 1;
      this.show(xs[Math.max(0, Math.min(xs.length - 1, i + by))]);
    });
  }
}
