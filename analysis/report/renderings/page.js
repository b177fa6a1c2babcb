// Draws the array `charts`, which the report writes before this script, with Chart.js 3 or newer.
(() => {
  const screen = matchMedia("(prefers-color-scheme: dark)");
  const dark = { get matches() { return screen.matches && !paper; } };
  let paper = false;  // while printing, where everything is light
  // One colour a phase, the same as in the viewer; told apart by colour-blind readers (M. Okabe, K. Ito).
  const phaseColours = () => ({ startup: dark.matches ? "#7f8791" : "#8a919c", preprocess: "#e69f00", forward: "#56b4e9",
    backward: dark.matches ? "#1a84c7" : "#0072b2", optimizer: "#009e73", communication: "#d55e00", evaluate: "#cc79a7",
    checkpoint: "#882255", copy: "#f0e442", launch: "#999933", idle: dark.matches ? "#343b44" : "#dfe3e8",
    other: dark.matches ? "#565f6b" : "#b9c0ca", "events lost": dark.matches ? "#98a2b0" : "#6b7482" });
  let drawn = [];

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
    drawn.forEach(chart => chart.destroy());
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(name).trim();
    const ink = colour("--ink"), soft = colour("--soft"), line = colour("--line"), accent = colour("--accent");
    const measured = [accent, "#d55e00", "#009e73", "#cc79a7", "#e69f00"];
    Chart.defaults.color = soft; Chart.defaults.borderColor = line; Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    Chart.defaults.font.size = 12; Chart.defaults.animation = false; Chart.defaults.maintainAspectRatio = false;
    Chart.defaults.plugins.legend.labels.boxWidth = 12; Chart.defaults.plugins.legend.position = "bottom";
    Chart.defaults.plugins.legend.labels.usePointStyle = true;
    const axis = title => ({ title: { display: true, text: title }, grid: { color: line }, border: { display: false } });
    const seconds = value => value.toLocaleString("en", { maximumSignificantDigits: 4 });

    const kinds = {
      speedup(d) {
        const sets = d.series.map((s, i) => ({ label: s.label, data: s.points, borderColor: measured[i % 5], backgroundColor: measured[i % 5],
          pointRadius: 5, pointHoverRadius: 7, showLine: false }));
        d.curves.forEach(c => sets.push({ label: c.label, data: c.points, borderColor: ink, borderWidth: 1.5, pointStyle: "line", pointRadius: 0,
          pointHitRadius: 0 }));
        sets.push({ label: "ideal", data: [{ x: 1, y: 1 }, { x: d.most, y: d.most }], borderColor: soft, borderDash: [5, 5], borderWidth: 1.5,
          pointStyle: "line", pointRadius: 0, pointHitRadius: 0 });
        return { type: "line", data: { datasets: sets }, plugins: [intervals], options: { scales: {
          x: { ...axis("ranks"), type: "linear", min: 1, max: d.most, ticks: { precision: 0 }, offset: true },
          y: { ...axis("speed-up"), min: 0, suggestedMax: d.most } },
          plugins: { tooltip: { callbacks: { title: items => items[0].raw.x + " ranks",
            label: item => "S = " + item.raw.y.toFixed(3) + (item.raw.ci ? " (95 %: " + item.raw.ci.map(v => v.toFixed(3)).join("–") + ")" : "") } } } } };
      },
      lost(d) {
        // Time that faster parallel work saved is below 0, left of the axis.
        const change = d.rows.map(r => r.values[4]);
        const parallel = change.every(v => v >= 0) ? "slower parallel work" : change.every(v => v <= 0)
          ? "saved by faster parallel work" : "slower parallel work (below 0: saved by faster work)";
        const parts = [[0, "T(1)/N", "#0072b2"], [4, parallel, "#009e73"], [1, "serial work", "#8a919c"],
          [2, "communication: transfer", "#d55e00"], [3, "communication: waiting", "#f0b48a"]];
        return stacked(d.rows.map(r => r.label), parts.map(([part, label, backgroundColor]) =>
          ({ label, data: d.rows.map(r => r.values[part]), backgroundColor })));
      },
      // From one total to another: each bar begins where the one before it ends.
      waterfall(d) {
        const colours = { total: accent, serial: "#8a919c", transfer: "#d55e00", waiting: "#f0b48a", parallel: "#009e73", last_rank: "#cc79a7" };
        return { type: "bar", data: { labels: d.rows.map(r => r.label), datasets: [{ data: d.rows.map(r => [r.from, r.to]), maxBarThickness: 26,
          minBarLength: 2, backgroundColor: d.rows.map(r => colours[r.kind]) }] }, options: { indexAxis: "y",
          scales: { x: { ...axis("speed-up"), beginAtZero: true }, y: { grid: { display: false } } },
          plugins: { legend: { display: false }, tooltip: { displayColors: false, callbacks: { label: item => d.rows[item.dataIndex].text } } } } };
      },
      // A matrix of cells, the stronger coloured the larger their size; values below 0 have a colour of their own.
      heat(d) {
        const above = dark.matches ? "#ff8a3d" : "#d55e00", below = dark.matches ? "#56b4e9" : "#0072b2";
        const some = (labels, most) => labels.map((_, i) => i).filter(i => i % Math.ceil(labels.length / most) === 0).map(value => ({ value }));
        const place = (title, labels, most) => ({ ...axis(title), type: "linear", min: -0.5, max: labels.length - 0.5, grid: { display: false },
          afterBuildTicks: scale => { scale.ticks = some(labels, most); },
          ticks: { callback: value => labels[value], autoSkip: true, maxRotation: 0 } });
        const cells = { id: "cells", beforeDatasetsDraw({ ctx, chartArea: area, scales: { x, y } }) {
          ctx.save();
          for (const cell of d.cells) {
            const left = x.getPixelForValue(cell.x - 0.5), top = y.getPixelForValue(cell.y - 0.5);
            ctx.globalAlpha = Math.min(Math.abs(cell.v) / d.full, 1);
            ctx.fillStyle = cell.v < 0 ? below : above;
            ctx.fillRect(left, top, x.getPixelForValue(cell.x + 0.5) - left, y.getPixelForValue(cell.y + 0.5) - top);
          }
          ctx.globalAlpha = 1; ctx.strokeStyle = line; ctx.strokeRect(area.left, area.top, area.width, area.height);
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
        return stacked(d.ranks, d.phases.map(p => ({ label: p.name, data: p.seconds, backgroundColor: phaseColours()[p.name] })));
      },
      iterations(d) {
        const last = d.points[d.points.length - 1].x;
        return { type: "line", data: { datasets: [
          { label: "iteration", data: d.points, borderColor: accent, backgroundColor: accent, borderWidth: 1, pointRadius: d.points.length > 200 ? 0 : 1.5 },
          { label: "median", data: [{ x: 0, y: d.median }, { x: last, y: d.median }], borderColor: ink, borderDash: [4, 4], borderWidth: 1, pointStyle: "line", pointRadius: 0 } ] },
          options: { parsing: false, scales: { x: { ...axis("iteration"), type: "linear", max: last, ticks: { precision: 0 } }, y: { ...axis("ms"), min: 0 } },
            plugins: { tooltip: { callbacks: { title: items => "iteration " + items[0].raw.x, label: item => item.raw.y.toFixed(2) + " ms" } } } } };
      },
      accuracy(d) {
        const last = d.points[d.points.length - 1].x;
        return { type: "line", data: { datasets: [
          { label: "test accuracy", data: d.points, borderColor: "#009e73", backgroundColor: "#009e73", borderWidth: 1.5, pointRadius: 3 },
          { label: "target", data: [{ x: 0, y: d.target }, { x: last, y: d.target }], borderColor: soft, borderDash: [4, 4], borderWidth: 1, pointStyle: "line", pointRadius: 0 } ] },
          options: { scales: { x: { ...axis("seconds"), type: "linear", min: 0 }, y: { ...axis("%"), min: 0, max: 100 } } } };
      },
    };
    function stacked(labels, datasets) {
      datasets.forEach(set => { set.maxBarThickness = 30; set.pointStyle = "rect"; });
      return { type: "bar", data: { labels, datasets }, options: { indexAxis: "y", scales: {
        x: { ...axis("seconds"), stacked: true }, y: { stacked: true, grid: { display: false } } },
        plugins: { tooltip: { callbacks: { label: item => item.dataset.label + ": " + seconds(item.raw) + " s" } } } } };
    }
    drawn = charts.map((d, i) => new Chart(document.getElementById("chart" + i), kinds[d.kind](d)));
  }
  draw();
  screen.addEventListener("change", draw);
  // On paper, tables that are folded up cannot be opened.
  let folded = [];
  const print = on => {
    paper = on; document.documentElement.classList.toggle("paper", on);
    if (on) folded = [...document.querySelectorAll("details")].filter(table => !table.open);
    folded.forEach(table => { table.open = on; });
    draw();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
})();
