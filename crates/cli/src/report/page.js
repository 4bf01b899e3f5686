(() => {
  const { setUpTheme, count, bytes, seconds, value, element } = selvedge;

  const hiddenSeries = new Set();
  const setUpLegend = () => {
    for (const button of document.querySelectorAll("[data-toggle]")) {
      button.addEventListener("click", () => {
        const index = Number(button.dataset.toggle);
        const hide = !hiddenSeries.has(index);
        if (hide) hiddenSeries.add(index); else hiddenSeries.delete(index);
        button.setAttribute("aria-pressed", String(!hide));
        for (const line of document.querySelectorAll(`[data-series="${index}"]`)) line.classList.toggle("off", hide);
      });
    }
  };

  const headings = { iterations: (x) => `iteration ${count(x)}`, bytes: (x) => `${bytes(x)} per group`, seconds };

  // Where values are in a chart.
  const geometry = (svg) => {
    const numbers = (text) => text.split(" ").map(Number);
    const [left, top, width, height] = numbers(svg.dataset.plot);
    const [xLow, xHigh] = numbers(svg.dataset.x);
    const [yLow, yHigh] = numbers(svg.dataset.y);
    const [xScale, yScale] = svg.dataset.scales.split(" ").map((name) => name === "log" ? Math.log10 : (v) => v);
    const share = (scale, v, low, high) => (scale(v) - scale(low)) / (scale(high) - scale(low));
    return {
      left, top, width, height,
      x: (v) => left + width * share(xScale, v, xLow, xHigh),
      y: (v) => top + height * (1 - share(yScale, v, yLow, yHigh)),
      has: (v) => v >= xLow && v <= xHigh,
    };
  };

  const setUpPointing = (data) => {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("role", "status");
    tip.hidden = true;
    document.body.append(tip);
    let shown = null;

    const hide = () => {
      if (shown) shown.cross.remove();
      shown = null;
      tip.hidden = true;
    };

    // The point of a curve that lies nearest to a place across the chart.
    const nearest = (xs, place, at) => {
      let best = -1;
      for (let i = 0; i < xs.length; i += 1) {
        if (place.has(xs[i]) && (best < 0 || Math.abs(place.x(xs[i]) - at) < Math.abs(place.x(xs[best]) - at))) best = i;
      }
      return best;
    };

    // Shows what every visible series has at a place across the chart.
    const show = (svg, at) => {
      const { metric, axis } = svg.dataset;
      const place = geometry(svg);
      const found = [];
      data.series.forEach((series, index) => {
        const curve = series.curves[metric];
        if (hiddenSeries.has(index) || !curve) return;
        const i = nearest(curve[axis], place, at);
        if (i >= 0) found.push({ index, series, x: curve[axis][i], y: curve.y[i], seeds: curve.seeds[i], far: Math.abs(place.x(curve[axis][i]) - at) });
      });
      if (found.length === 0) { hide(); return; }
      const x = found.reduce((a, b) => b.far < a.far ? b : a).x;
      const line = place.x(x);
      // A series that ends before this place has nothing to say here.
      const here = found.filter((f) => Math.abs(place.x(f.x) - line) <= Math.max(24, place.width / 12));
      hide();
      const cross = element("g", { class: "cross" });
      cross.append(element("line", { x1: line, x2: line, y1: place.top, y2: place.top + place.height }));
      for (const f of here) cross.append(element("circle", { class: `c${f.index % 7}`, cx: place.x(f.x), cy: place.y(f.y[0]), r: 3.6 }));
      svg.append(cross);
      shown = { svg, cross, x };
      fill(headings[axis](x), here);
      position(svg, line);
    };

    const fill = (heading, rows) => {
      const title = document.createElement("p");
      title.textContent = heading;
      tip.replaceChildren(title, ...rows.map(({ index, series, y: [mean, low, high], seeds }) => {
        const row = document.createElement("div");
        row.className = `c${index % 7}`;
        const [swatch, name, text, aside] = ["i", "b", "span", "small"].map((tag) => document.createElement(tag));
        name.textContent = series.label;
        const spread = { deviation: ` ± ${value(high - mean)}`, range: ` (${value(low)}–${value(high)})` }[series.band] ?? "";
        aside.textContent = (seeds > 1 ? spread : "") + (seeds < series.seeds ? `, ${seeds} of ${series.seeds} seeds` : "");
        text.append(value(mean), aside);
        row.append(swatch, name, text);
        return row;
      }));
      tip.hidden = false;
    };

    const position = (svg, line) => {
      const box = svg.getBoundingClientRect();
      const scale = box.width / svg.viewBox.baseVal.width;
      const x = box.left + line * scale;
      const [width, height] = [tip.offsetWidth, tip.offsetHeight];
      const right = x + 14 + width < innerWidth - 8;
      const left = right ? x + 14 : Math.max(8, x - 14 - width);
      // Where neither side has room, above the chart, so that a finger does not cover it.
      const covers = !right && x - 14 - width < 8;
      const top = covers ? box.top - height + 20 : box.top + 44 * scale;
      tip.style.left = `${Math.min(left, innerWidth - width - 8)}px`;
      tip.style.top = `${Math.max(8, Math.min(top, innerHeight - height - 8))}px`;
    };

    // Arrow keys go from point to point of the series with the most of them.
    const step = (svg, by) => {
      const { metric, axis } = svg.dataset;
      const place = geometry(svg);
      const curves = data.series.filter((s, i) => !hiddenSeries.has(i) && s.curves[metric]).map((s) => s.curves[metric][axis].filter(place.has));
      const xs = curves.reduce((a, b) => b.length > a.length ? b : a, []);
      if (xs.length === 0) return;
      const now = shown && shown.svg === svg ? nearest(xs, place, place.x(shown.x)) : (by > 0 ? -1 : xs.length);
      show(svg, place.x(xs[Math.max(0, Math.min(xs.length - 1, now + by))]));
    };

    for (const svg of document.querySelectorAll("svg[data-metric]")) {
      const follow = (event) => {
        const box = svg.getBoundingClientRect();
        show(svg, (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width);
      };
      svg.addEventListener("pointermove", follow);
      svg.addEventListener("pointerdown", follow);
      svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hide(); });
      svg.addEventListener("blur", hide);
      svg.addEventListener("keydown", (event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (by) { event.preventDefault(); step(svg, by); }
        if (event.key === "Escape") hide();
      });
    }
    addEventListener("scroll", hide, { passive: true });
    document.addEventListener("pointerdown", (event) => { if (!event.target.closest("svg[data-metric]")) hide(); });
  };

  // Copying works without the clipboard interface too, which browsers keep from some pages.
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      area.className = "hidden";
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  };
  const setUpCopying = (data) => {
    for (const button of document.querySelectorAll("[data-copy]")) {
      const text = button.textContent;
      button.addEventListener("click", async () => {
        button.textContent = await copy(data.csv[button.dataset.copy]) ? "Copied" : "Copying is not allowed here";
        setTimeout(() => { button.textContent = text; }, 1600);
      });
    }
  };

  // A chart as a file of its own: on white, with its legend, in the colours that it has without this page's style.
  const asFile = (svg) => {
    const file = svg.cloneNode(true);
    const width = svg.viewBox.baseVal.width;
    const height = Number(svg.dataset.fullHeight);
    for (const cross of file.querySelectorAll(".cross, .off")) cross.remove();
    for (const name of [...file.getAttributeNames()]) if (!["viewBox", "font-family"].includes(name)) file.removeAttribute(name);
    file.setAttribute("viewBox", `0 0 ${width} ${height}`);
    file.setAttribute("width", width);
    file.setAttribute("height", height);
    file.prepend(element("rect", { width: "100%", height: "100%", fill: "#ffffff" }));
    return new XMLSerializer().serializeToString(file);
  };
  const setUpDownloads = () => {
    for (const button of document.querySelectorAll("[data-file]")) {
      button.addEventListener("click", () => {
        const address = URL.createObjectURL(new Blob([asFile(button.closest("figure").querySelector("svg"))], { type: "image/svg+xml" }));
        const link = document.createElement("a");
        link.href = address;
        link.download = button.dataset.file;
        link.click();
        setTimeout(() => URL.revokeObjectURL(address), 10000);
      });
    }
  };

  // On paper nothing can be opened.
  const setUpPrinting = () => {
    let closed = [];
    addEventListener("beforeprint", () => {
      closed = [...document.querySelectorAll("details:not([open])")];
      for (const details of closed) details.open = true;
    });
    addEventListener("afterprint", () => { for (const details of closed) details.open = false; });
  };

  document.addEventListener("DOMContentLoaded", () => {
    const data = JSON.parse(document.getElementById("data").textContent);
    setUpTheme();
    setUpLegend();
    setUpPointing(data);
    setUpCopying(data);
    setUpDownloads();
    setUpPrinting();
  });
})();
