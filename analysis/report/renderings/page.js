// Draws the array `charts`, which the report writes before this script, with Chart.js 3 or newer.
(() => {
  const screen = matchMedia("(prefers-color-scheme: dark)");
  const dark = { get matches() { return screen.matches && !paper; } };
  let paper = false;  // while printing, where everything is light
  // The viewer's colours (viewer/drawing/palette.cpp). They can be told apart with each kind of colour blindness.
  const phaseColours = () => ({ startup: dark.matches ? "#6e7680" : "#656c77", preprocess: "#e69f00", forward: "#56b4e9",
    backward: dark.matches ? "#077bc2" : "#0072b2", optimizer: dark.matches ? "#05a867" : "#009e73", communication: "#d55e00",
    evaluate: "#cc79a7", checkpoint: dark.matches ? "#7d116f" : "#882255", copy: "#f0e442",
    launch: dark.matches ? "#865d3b" : "#7a5230", idle: dark.matches ? "#343b44" : "#ebeff4",
    other: dark.matches ? "#565f6b" : "#b9c0ca", "events lost": dark.matches ? "#98a2b0" : "#6b7482" });
  const causeColours = () => ({ computing: dark.matches ? "#565f6b" : "#b9c0ca", "computing longer": dark.matches ? "#077bc2" : "#0072b2",
    "bytes moving": "#56b4e9", blocked: "#e69f00", "input/output": "#009e73", "major page faults": dark.matches ? "#7d116f" : "#882255",
    "garbage collection": "#cc79a7", "CPU limit": "#d55e00", "no CPU": dark.matches ? "#ffb8a8" : "#9c0019",
    unknown: dark.matches ? "#98a2b0" : "#6b7482" });
  // Numbers have a minus, not a hyphen.
  const minus = text => typeof text === "string" ? text.replace(/^-/, "−") : text;
  const numeric = Chart.defaults.scales.linear.ticks.callback;
  Chart.defaults.scales.linear.ticks.callback = function (...of) { return minus(numeric.apply(this, of)); };
  let drawn = [];
  // A chart in a folded part is drawn when the part is unfolded, because it has no width before.
  const place = i => document.getElementById("chart" + i);
  const folded = element => element.closest("details:not([open])") !== null;

  // The value of each bar beside its end, so that nothing has to be pointed at.
  const texts = { id: "texts", afterDatasetsDraw(chart) {
    const { ctx, chartArea: area } = chart, texts = chart.data.datasets[0].texts;
    if (!texts || texts.length > 16) return;
    ctx.save();
    ctx.font = "12px " + Chart.defaults.font.family; ctx.fillStyle = Chart.defaults.color; ctx.textBaseline = "middle";
    chart.getDatasetMeta(0).data.forEach((bar, i) => {
      const right = Math.max(bar.x, bar.base), left = Math.min(bar.x, bar.base), width = ctx.measureText(texts[i]).width;
      const beyond = right + 6 + width <= area.right, before = left - 6 - width >= area.left, inside = right - left > width + 12;
      let x = right + 6;
      ctx.textAlign = "left";
      if (!beyond && before) { ctx.textAlign = "right"; x = left - 6; }
      if (!beyond && !before) x = inside ? left + 6 : Math.max(area.left, area.right - width);
      if (!beyond && !before) {  // on the bar: on the colour of the page
        ctx.fillStyle = paper ? "#ffffffcc" : dark.matches ? "#1d2126cc" : "#ffffffcc";
        ctx.fillRect(x - 3, bar.y - 8, width + 6, 16);
      }
      ctx.fillStyle = Chart.defaults.color;
      ctx.fillText(texts[i], x, bar.y);
    });
    ctx.restore();
  } };

  // Draws the 95 % intervals of points that have one.
  const intervals = { id: "intervals", afterDatasetsDraw(chart) {
    const context = chart.ctx;
    chart.data.datasets.forEach((set, index) => {
      chart.getDatasetMeta(index).data.forEach((element, i) => {
        const point = set.data[i];
        if (!point || !point.ci) return;
        const low = chart.scales.y.getPixelForValue(point.ci[0]), high = chart.scales.y.getPixelForValue(point.ci[1]);
        context.save();
        context.strokeStyle = set.borderColor; context.lineWidth = 1.5; context.beginPath();
        context.moveTo(element.x, low); context.lineTo(element.x, high);
        for (const y of [low, high]) { context.moveTo(element.x - 5, y); context.lineTo(element.x + 5, y); }
        context.stroke(); context.restore();
      });
    });
  } };

  function draw() {
    drawn.forEach(chart => chart && chart.destroy());
    drawn = [];
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(name).trim();
    const ink = colour("--ink"), soft = colour("--soft"), line = colour("--line"), accent = colour("--accent");
    const measured = [accent, "#d55e00", "#009e73", "#cc79a7", "#e69f00"];
    Chart.defaults.color = soft; Chart.defaults.borderColor = line; Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    Chart.defaults.font.size = 12; Chart.defaults.animation = false; Chart.defaults.maintainAspectRatio = false;
    Chart.defaults.plugins.legend.labels.boxWidth = 12; Chart.defaults.plugins.legend.position = "bottom";
    Chart.defaults.plugins.legend.labels.usePointStyle = true; Chart.defaults.plugins.legend.labels.boxHeight = 7;
    const axis = title => ({ title: { display: true, text: title }, grid: { color: line }, border: { display: false } });
    const seconds = value => minus(value.toLocaleString("en", { maximumSignificantDigits: 4 }));

    const kinds = {
      speedup(d) {
        const sets = d.series.map((s, i) => ({ label: s.label, data: s.points, borderColor: measured[i % 5], backgroundColor: measured[i % 5],
          pointRadius: 5, pointHoverRadius: 7, showLine: false }));
        const thin = { borderWidth: 1.5, pointStyle: "line", pointRadius: 0, pointHitRadius: 0 };
        d.curves.forEach((c, i) => {
          sets.push({ label: c.label, data: c.points.map(({ x, y }) => ({ x, y })), borderColor: i ? "#cc79a7" : ink, ...thin });
          if (!c.points[0].ci) return;
          const edge = side => c.points.map(p => ({ x: p.x, y: p.ci[side] })), shade = soft + "33";
          sets.push({ label: "", data: edge(0), borderColor: "transparent", ...thin },
            { label: "its 95 % band", data: edge(1), borderColor: "transparent", backgroundColor: shade, fill: "-1", ...thin, pointStyle: "rect" });
        });
        sets.push({ label: "ideal", data: [{ x: 1, y: 1 }, { x: d.most, y: d.most }], borderColor: soft, borderDash: [5, 5], borderWidth: 1.5,
          pointStyle: "line", pointRadius: 0, pointHitRadius: 0 });
        return { type: "line", data: { datasets: sets }, plugins: [intervals], options: { scales: {
          x: { ...axis("ranks"), type: "linear", min: 1, max: d.most, ticks: { precision: 0 }, offset: true },
          y: { ...axis("speed-up"), min: 0, suggestedMax: d.most } },
          plugins: { legend: { labels: { filter: item => item.text } }, tooltip: { callbacks: { title: items => items[0].raw.x + " ranks",
            label: item => "S = " + item.raw.y.toFixed(3) + (item.raw.ci ? " (95 %: " + item.raw.ci.map(v => v.toFixed(3)).join("–") + ")" : "") } } } } };
      },
      lost(d) {
        // Time that faster parallel work saved is below 0, left of the axis.
        const change = d.rows.map(r => r.values[3]);
        const parallel = change.every(v => v >= 0) ? "slower parallel work" : change.every(v => v <= 0)
          ? "saved by faster parallel work" : "slower parallel work (below 0: saved by faster work)";
        const parts = [[3, parallel, "#009e73"], [0, "serial work", "#8a919c"],
          [1, "communication: transfer", "#d55e00"], [2, "communication: waiting", "#f0b48a"]];
        return stacked(d.rows.map(r => r.label), parts.map(([part, label, backgroundColor]) =>
          ({ label, data: d.rows.map(r => r.values[part]), backgroundColor })));
      },
      // From one total to another: each bar begins where the one before it ends.
      waterfall(d) {
        const colours = { total: accent, serial: "#8a919c", transfer: "#d55e00", waiting: "#f0b48a", parallel: "#009e73", last_rank: "#cc79a7", no_cpu: causeColours()["no CPU"] };
        return bars(d, r => colours[r.kind], "speed-up");
      },
      lasting: d => kinds.bars(d),
      bars(d) {
        const colours = { ...phaseColours(), rank: accent, slow: "#d55e00" };
        return bars(d, r => colours[r.kind], "seconds");
      },
      // A matrix of cells, the stronger coloured the larger their size; values below 0 have a colour of their own.
      heat(d) {
        const above = dark.matches ? "#ff8a3d" : "#d55e00", below = dark.matches ? "#56b4e9" : "#0072b2";
        const some = (scale, labels, most) => {
          const letters = labels.reduce((longest, label) => Math.max(longest, String(label).length), 0);
          const room = scale.isHorizontal() ? Math.min(most, scale.width / (8 * (letters + 1))) : most;
          return labels.map((_, i) => i).filter(i => i >= scale.min && i <= scale.max)
            .filter((_, i, shown) => i % Math.ceil(shown.length / room) === 0).map(value => ({ value }));
        };
        const place = (title, labels, most) => ({ ...axis(title), type: "linear", min: -0.5, max: labels.length - 0.5, grid: { display: false },
          afterBuildTicks: scale => { scale.ticks = some(scale, labels, most); },
          ticks: { callback: value => labels[value], autoSkip: true, maxRotation: 0 } });
        const cells = { id: "cells", beforeDatasetsDraw({ ctx, chartArea: area, scales: { x, y } }) {
          ctx.save();
          ctx.beginPath(); ctx.rect(area.left, area.top, area.width, area.height); ctx.clip();
          for (const cell of d.cells) {
            const left = x.getPixelForValue(cell.x - 0.5), top = y.getPixelForValue(cell.y - 0.5);
            ctx.globalAlpha = Math.min(Math.abs(cell.v) / d.full, 1);
            ctx.fillStyle = cell.v < 0 ? below : above;
            ctx.fillRect(left, top, x.getPixelForValue(cell.x + 0.5) - left, y.getPixelForValue(cell.y + 0.5) - top);
          }
          ctx.restore(); ctx.save();
          ctx.strokeStyle = line; ctx.strokeRect(area.left, area.top, area.width, area.height);
          // The scale, above the cells at the right.
          ctx.font = "12px " + Chart.defaults.font.family; ctx.fillStyle = soft; ctx.textBaseline = "middle";
          const end = d.full_text + (d.above ? " " + d.above : ""), begin = d.signed ? d.full_text + " " + d.signed : "0";
          const width = 90, right = area.right - ctx.measureText(end).width - 6, bar = right - width, top = area.top - 20;
          const shade = ctx.createLinearGradient(bar, 0, right, 0), clear = colour("--card");
          shade.addColorStop(0, d.signed ? below : clear); shade.addColorStop(d.signed ? 0.5 : 0, clear); shade.addColorStop(1, above);
          ctx.textAlign = "left"; ctx.fillText(end, right + 6, top + 6);
          ctx.textAlign = "right"; ctx.fillText(begin, bar - 6, top + 6);
          ctx.fillStyle = shade; ctx.fillRect(bar, top, width, 12);
          ctx.strokeRect(bar, top, width, 12); ctx.restore();
        } };
        return { type: "scatter", data: { datasets: [{ data: d.cells, pointRadius: 0, pointHoverRadius: 0 }] }, plugins: [cells], options: {
          layout: { padding: { top: 26 } }, interaction: { mode: "nearest", intersect: false, axis: "xy" },
          scales: { x: place(d.x, d.columns, 12), y: { ...place(d.y, d.rows, 16), reverse: true } },
          plugins: { legend: { display: false }, tooltip: { displayColors: false, callbacks: {
            title: items => items.map(i => d.y + " " + d.rows[i.raw.y] + ", " + d.x + " " + d.columns[i.raw.x])[0], label: item => item.raw.text } } } } };
      },
      throughput(d) {
        return { type: "bar", data: { labels: d.rows.map(r => r.label), datasets: [{ data: d.rows.map(r => r.value), backgroundColor: accent,
          maxBarThickness: 48 }] }, options: { plugins: { legend: { display: false } }, scales: { x: { ...axis("ranks × epochs"), grid: { display: false } }, y: axis("images/s") } } };
      },
      phases(d) {
        return (d.ranks.length > 16 ? columns : stacked)(d.ranks, d.phases.map(p => ({ label: p.name, data: p.seconds, backgroundColor: phaseColours()[p.name] })));
      },
      // The phases or causes of each iteration one above the other; the median is that of the iterations after the warm-up.
      iterations(d) {
        const unit = d.unit || "ms";
        const dashed = { type: "line", label: "median", data: d.numbers.map(() => d.median), borderColor: ink, borderDash: [4, 4], borderWidth: 1,
          pointStyle: "line", pointRadius: 0, order: -1 };
        const colours = { ...phaseColours(), ...causeColours() }, others = ["#d55e00", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8a919c", "#7a5230"];
        const config = columns(d.numbers, d.phases.map((p, i) => ({ label: p.name, data: p.ms, backgroundColor: colours[p.name] || others[i % 8], stack: "phases" })));
        if (d.median) config.data.datasets.push(dashed);
        config.options.scales = { x: { ...axis(d.x), stacked: true, grid: { display: false }, ticks: { maxRotation: 0 } },
          y: { ...axis(unit), stacked: true, max: d.end, ticks: { includeBounds: false } } };
        config.options.interaction = { mode: "index", intersect: false };
        config.options.plugins.tooltip = { filter: item => item.raw > 0, callbacks: { title: items => items.length ? d.x + " " + items[0].label : "",
          label: item => item.dataset.label + ": " + seconds(item.raw) + " " + unit,
          footer: items => "together: " + seconds(items.reduce((sum, item) => sum + (item.dataset.stack ? item.raw : 0), 0)) + " " + unit } };
        config.options.datasets = { bar: { barPercentage: 1, categoryPercentage: d.numbers.length > 60 ? 1 : 0.9 } };
        return config;
      },
      history(d) {
        return { type: "line", data: { labels: d.labels, datasets: d.series.map((s, i) => ({ label: s.label, data: s.values, borderColor: measured[i % 5],
          backgroundColor: measured[i % 5], borderWidth: 1.5, pointRadius: 3, spanGaps: true })) },
          options: { interaction: { mode: "index", intersect: false }, scales: { x: { grid: { display: false }, ticks: { maxRotation: 0 } }, y: { ...axis(d.unit), min: 0 } },
            plugins: { tooltip: { callbacks: { label: item => item.dataset.label + ": " + seconds(item.raw) + " " + d.unit } } } } };
      },
      accuracy(d) {
        const last = d.points[d.points.length - 1].x;
        return { type: "line", data: { datasets: [
          { label: "test accuracy", data: d.points, borderColor: "#009e73", backgroundColor: "#009e73", borderWidth: 1.5, pointRadius: 3 },
          { label: "target", data: [{ x: 0, y: d.target }, { x: last, y: d.target }], borderColor: soft, borderDash: [4, 4], borderWidth: 1, pointStyle: "line", pointRadius: 0 } ] },
          options: { scales: { x: { ...axis("seconds"), type: "linear", min: 0 }, y: { ...axis("%"), min: 0, max: 100 } } } };
      },
    };
    // Labels are texts, because a range of a scale is given by positions, and a number would be looked up as a label.
    function stacked(labels, datasets) {
      labels = labels.map(String);
      datasets.forEach(set => { set.maxBarThickness = 30; set.pointStyle = "rect"; });
      return { type: "bar", data: { labels, datasets }, options: { indexAxis: "y", scales: {
        x: { ...axis("seconds"), stacked: true }, y: { stacked: true, grid: { display: false } } },
        plugins: { tooltip: { callbacks: { label: item => item.dataset.label + ": " + seconds(item.raw) + " s" } } } } };
    }
    // Few bars lie, with their labels and values; many stand side by side.
    function bars(d, colourOf, unit) {
      const lying = d.rows.length <= 16, narrow = document.documentElement.clientWidth < 640;
      const most = Math.max(0, ...d.rows.map(r => Math.max(r.from, r.to))), least = Math.min(d.origin || 0, ...d.rows.map(r => Math.min(r.from, r.to)));
      const short = unit === "seconds" && Math.max(most, -least) < 0.5;
      const value = { ...axis(short ? "milliseconds" : unit), grid: { color: line } };
      if (short) value.ticks = { callback: v => seconds(1000 * v), maxRotation: 0 };
      if (lying) value.suggestedMax = most + (narrow ? 0.9 : 0.6) * (most - (d.origin || least));  // room for the texts
      if (d.origin > 0) value.min = d.origin;
      const from = r => Math.max(Math.min(r.from, r.to), d.origin || -Infinity);
      return { type: "bar", plugins: lying ? [texts] : [], data: { labels: d.rows.map(r => narrow ? r.label.split(/(?<=[,:]) /) : r.label), datasets: [{ texts: d.rows.map(r => r.text),
        data: d.rows.map(r => d.origin > 0 ? [from(r), Math.max(r.from, r.to)] : [r.from, r.to]), maxBarThickness: 24, minBarLength: 2,
        backgroundColor: d.rows.map(colourOf) }] }, options: { indexAxis: lying ? "y" : "x",
        scales: lying ? { x: value, y: { grid: { display: false } } } : { x: { grid: { display: false }, ticks: { maxRotation: 0 } }, y: value },
        plugins: { legend: { display: false }, tooltip: { displayColors: false, callbacks: { label: item => d.rows[item.dataIndex].text } } } } };
    }
    function columns(labels, datasets) {
      const config = stacked(labels, datasets);
      config.options.indexAxis = "x";
      config.options.scales = { x: { stacked: true, grid: { display: false }, ticks: { maxRotation: 0 } }, y: { ...axis("seconds"), stacked: true } };
      return config;
    }
    charts.forEach((d, i) => { if (!folded(place(i))) drawn[i] = new Chart(place(i), kinds[d.kind](d)); });
  }

  // Drag over a chart to enlarge that range of iterations, ranks or runs; with Shift, a drag moves it. A double click shows all of it.
  const enlarged = { iterations: () => ["x"], history: () => ["x"], heat: () => ["x", "y"], phases: d => [d.ranks.length > 16 ? "x" : "y"] };
  function make_enlargeable(i) {
    const canvas = place(i), axes = enlarged[charts[i].kind](charts[i]), box = document.createElement("div");
    const hint = document.createElement("p");
    box.className = "range"; hint.className = "note hint"; box.hidden = true;
    hint.textContent = "Drag over a part to enlarge it, with Shift to move it. A double click shows everything again.";
    canvas.after(box); canvas.closest("figure").append(hint);
    let from = null, moved = null;  // where the drag began; the ranges that it moves
    const at = event => { const edge = canvas.getBoundingClientRect(); return { x: event.clientX - edge.left, y: event.clientY - edge.top }; };
    const edges = axis => { const { left, right, top, bottom } = drawn[i].chartArea; return axis === "x" ? [left, right] : [top, bottom]; };
    const span = (axis, to) => {
      const [least, most] = edges(axis);
      if (!axes.includes(axis)) return [least, most];
      return [from[axis], to[axis]].map(v => Math.min(Math.max(v, least), most)).sort((a, b) => a - b);
    };
    const set = (axis, min, max) => Object.assign(drawn[i].options.scales[axis], { min, max });
    canvas.addEventListener("pointerdown", event => {
      const chart = drawn[i];
      if (!chart) return;
      const ranges = axes.map(axis => [axis, chart.scales[axis].min, chart.scales[axis].max]);
      from = at(event); chart.whole ??= ranges; moved = event.shiftKey ? ranges : null;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      if (!from) return;
      const to = at(event), chart = drawn[i];
      if (moved) {
        moved.forEach(([axis, min, max], n) => {
          const [begin, end] = edges(axis), [, least, most] = chart.whole[n], shown = max - min + (chart.scales[axis].type === "category");
          const by = Math.min(Math.max(Math.round((from[axis] - to[axis]) / (end - begin) * shown), least - min), most - max);
          set(axis, min + by, max + by);
        });
        return chart.update();
      }
      const [left, right] = span("x", to), [top, bottom] = span("y", to);
      box.hidden = false;
      Object.assign(box.style, { left: left + "px", width: right - left + "px", top: top + "px", height: bottom - top + "px" });
    });
    canvas.addEventListener("pointerup", event => {
      const to = at(event), chart = drawn[i];
      for (const axis of from && !moved ? axes : []) {
        const [begin, end] = span(axis, to);
        if (end - begin < 8) continue;
        const [low, high] = [begin, end].map(v => Math.round(chart.scales[axis].getValueForPixel(v))).sort((a, b) => a - b);
        const half = charts[i].kind === "heat" ? 0.5 : 0;  // of a cell
        set(axis, low - half, high + half);
      }
      from = null; box.hidden = true; chart.update();
    });
    canvas.addEventListener("dblclick", () => draw());
  }

  // The figures of a chart as a table, made when a reader asks for it.
  function values(chart) {
    const { labels, datasets } = chart.data, rows = [];
    const cell = v => v === undefined || v === null ? "" : typeof v === "number" ? minus(v.toLocaleString("en", { maximumSignificantDigits: 5 })) : String(v);
    if (labels.length > 0) {
      const named = datasets[0].texts;
      rows.push(["", ...datasets.map(set => set.label || "value")]);
      labels.forEach((label, i) => rows.push([[label].flat().join(" "), ...datasets.map(set => named ? named[i] : cell(set.data[i]))]));
    } else {
      rows.push(["series", "x", "y", "95 % interval"]);
      for (const set of datasets) for (const p of set.data.slice(0, 2000)) {
        rows.push([set.label || "", cell(p.x), p.text || cell(p.y), p.ci ? p.ci.map(cell).join("–") : ""]);
      }
      if (rows.every(row => !row[3] || row === rows[0])) rows.forEach(row => row.pop());
    }
    const table = document.createElement("table");
    rows.forEach((row, r) => {
      const line = (r ? table.tBodies[0] || table.createTBody() : table.createTHead()).insertRow();
      row.forEach((text, c) => {
        const of = document.createElement(r && c ? "td" : "th");
        of.scope = r ? "row" : "col"; of.textContent = text; if (c) of.className = "n";
        line.append(of);
      });
    });
    return table;
  }
  charts.forEach((d, i) => {
    const part = document.createElement("details"), summary = document.createElement("summary"), box = document.createElement("div");
    part.className = "values"; box.className = "scroll"; box.tabIndex = 0; summary.textContent = "The figures of this chart";
    part.append(summary, box);
    part.addEventListener("toggle", () => { if (part.open && drawn[i]) box.replaceChildren(values(drawn[i])); });
    place(i).closest("figure").append(part);
    if (enlarged[d.kind]) make_enlargeable(i);
  });

  draw();
  screen.addEventListener("change", draw);
  for (const part of document.querySelectorAll("details.part")) part.addEventListener("toggle", () => {
    if (part.open && charts.some((_, i) => part.contains(place(i)) && !drawn[i])) draw();
  });
  const print = on => {
    paper = on; document.documentElement.classList.toggle("paper", on);
    draw();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
})();
