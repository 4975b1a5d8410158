"use strict";
/* The page of a comparison: verdicts, charts, table, all from the one JSON block. Text goes into the page as
   text only. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const comparison = data.comparison;
  const rows = comparison.rows.filter((row) => row.state === "done");
  const charts = []; // {chart, recolour}
  const palette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8a8f00", "#7f7f7f", "#a05195"];
  const partColours = ["#0072b2", "#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#8a8f00", "#a05195", "#7f7f7f"];
  const kindColours = {
    forward: "#0072b2", backward: "#56b4e9", exchange: "#e69f00", optimizer: "#009e73", data: "#cc79a7", communication: "#d55e00",
    wait: "#9aa0a6", copy: "#8a8f00",
  };
  const MIB = 1048576;

  /* --- words and numbers --- */

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  const isNumber = (value) => typeof value === "number";

  /* Grouped by commas, with as many decimals as make three figures. */
  function figures(value) {
    const size = Math.abs(value);
    const decimals = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  }
  const fixed = (digits) => (value) => value.toFixed(digits);
  const percent = (value) => `${(100 * value).toFixed(1)} %`;
  const mebibytes = (value) => (value / MIB).toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const giga = (value) => figures(value / 1e9);
  const counted = (value) => Math.round(value).toLocaleString("en-US");
  const title = (row) => (row.devices > 1 ? `${row.name} × ${row.devices}` : row.name);

  /* --- a chart, its description, its numbers --- */

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /* heads: column heads; lines: [[name, value, ...]]; show: how a value is written. */
  function dataTable(heads, lines, show) {
    const table = element("table");
    const head = table.createTHead().insertRow();
    for (const text of heads) head.append(element("th", text, { scope: "col" }));
    const body = table.createTBody();
    for (const [name, ...values] of lines) {
      const line = body.insertRow();
      line.append(element("th", name, { scope: "row" }));
      for (const value of values) {
        const cell = line.insertCell();
        if (isNumber(value)) cell.append(element("data", show(value), { value }));
        else cell.textContent = value ?? "–";
      }
    }
    return table;
  }

  function describe(kind, name, heads, lines, show) {
    const said = lines.slice(0, 12).map(([head, ...values]) =>
      `${head}: ${values.map((value, i) => `${heads.length > 2 ? `${heads[i + 1]} ` : ""}${isNumber(value) ? show(value) : value ?? "not measured"}`).join(", ")}`);
    return `${kind}. ${name}. ${said.join("; ")}${lines.length > 12 ? "; and more in the table below" : ""}.`;
  }

  function addFigure({ id, name, note, kind, heads, lines, show = figures, height = 260, wide = false, config }) {
    const figure = element("figure", undefined, { id: `figure-${id}` });
    if (wide) figure.className = "wide";
    const caption = element("figcaption");
    caption.append(element("h3", name));
    if (note) caption.append(element("p", note));
    const holder = element("div", undefined, { class: "canvas" });
    holder.style.height = `${height}px`;
    const canvas = element("canvas", undefined, { role: "img", "aria-label": describe(kind, name, heads, lines, show) });
    holder.append(canvas);
    const details = element("details");
    details.append(element("summary", "The numbers of this chart"));
    const scroll = element("div", undefined, { class: "scroll", tabindex: "0" });
    scroll.append(dataTable(heads, lines, show));
    details.append(scroll);
    figure.append(caption, holder, details);
    document.getElementById("charts").append(figure);
    const base = { responsive: true, maintainAspectRatio: false, animation: false };
    config.options = { ...base, ...config.options };
    charts.push(new Chart(canvas, config));
  }

  function axis(text, extra = {}) {
    return { title: { display: Boolean(text), text }, beginAtZero: true, ...extra };
  }

  const barHeight = (count) => 90 + 34 * count;
  const noLegend = { legend: { display: false } };
  const rowColour = (index) => palette[index % palette.length];
  const shown = (show) => ({ callbacks: { label: (item) => `${item.dataset.label}: ${show(item.parsed.x ?? item.parsed.y)}` } });

  /* Horizontal bars, one a row. */
  function bars({ id, name, note, key, scale = 1, unit, show = figures, of = rows, extra = [], most }) {
    const known = of.filter((row) => isNumber(row[key]));
    if (!known.length) return;
    const values = known.map((row) => row[key] / scale);
    addFigure({
      id, name, note, kind: "Bar chart", heads: ["strategy", unit], show, height: barHeight(known.length),
      lines: known.map((row, i) => [title(row), values[i]]),
      config: {
        type: "bar",
        data: {
          labels: known.map(title),
          datasets: [{ label: unit, data: values, backgroundColor: known.map((row) => rowColour(of.indexOf(row))), maxBarThickness: 26 }],
        },
        options: { indexAxis: "y", scales: { x: axis(unit, { suggestedMax: most }) }, plugins: { ...noLegend, tooltip: shown(show) } },
        plugins: extra,
      },
    });
  }

  /* Horizontal bars made of parts: parts [[label, (row) => value]]. */
  function stackedBars({ id, name, note, parts, unit, show = figures, max }) {
    const known = rows.filter((row) => parts.some(([, value]) => isNumber(value(row))));
    if (!known.length) return;
    addFigure({
      id, name, note, kind: "Stacked bar chart", heads: ["strategy", ...parts.map(([label]) => label)], show,
      height: barHeight(known.length) + 40,
      lines: known.map((row) => [title(row), ...parts.map(([, value]) => value(row))]),
      config: {
        type: "bar",
        data: {
          labels: known.map(title),
          datasets: parts.map(([label, value], i) => ({
            label, data: known.map(value), backgroundColor: kindColours[label] ?? partColours[i % partColours.length], maxBarThickness: 26,
          })),
        },
        options: {
          indexAxis: "y",
          scales: { x: axis(unit, { stacked: true, max }), y: { stacked: true } },
          plugins: { legend: { position: "bottom" }, tooltip: shown(show) },
        },
      },
    });
  }

  /* A legend's boxes without the dashes and widths of the lines that they stand for. */
  function filledLabels(chart) {
    const labels = Chart.defaults.plugins.legend.labels.generateLabels(chart);
    return labels.map((label) => ({ ...label, lineWidth: 0, lineDash: [] }));
  }

  /* Curves over numbers: series [{label, points, ...}]. */
  function curves({ id, name, note, series, x, y, show = figures, wide, beginAtZero = false, ticks }) {
    if (!series.length) return;
    const at = [...new Set(series.flatMap((one) => one.data.map((point) => point.x)))].sort((a, b) => a - b);
    const sample = at.length > 12 ? at.filter((_, i) => i % Math.ceil(at.length / 12) === 0 || i === at.length - 1) : at;
    addFigure({
      id, name, note, kind: "Line chart", heads: ["series", ...sample.map((value) => `${x} ${value}`)], show, wide,
      height: wide ? 340 : 280,
      lines: series.map((one) => [one.label, ...sample.map((value) => one.data.find((point) => point.x === value)?.y)]),
      config: {
        type: "line",
        data: { datasets: series },
        options: {
          scales: {
            x: {
              type: "linear", title: { display: true, text: x },
              ...(ticks && { afterBuildTicks: (scale) => { scale.ticks = ticks.map((value) => ({ value })); } }),
            },
            y: axis(y, { beginAtZero }),
          },
          plugins: { legend: { position: "bottom", labels: { generateLabels: filledLabels } }, tooltip: shown(show) },
        },
      },
    });
  }

  /* --- the charts --- */

  /* A mark at the speed of each timing round, on the bars of throughput. */
  const roundMarks = {
    id: "rounds",
    afterDatasetsDraw(chart) {
      const { ctx, scales } = chart;
      ctx.save();
      ctx.strokeStyle = style("--text");
      rows.filter((row) => isNumber(row.samples_per_second)).forEach((row, i) => {
        const y = scales.y.getPixelForValue(i);
        for (const value of row.rounds_samples_per_second) {
          const x = scales.x.getPixelForValue(value);
          ctx.beginPath();
          ctx.moveTo(x, y - 8);
          ctx.lineTo(x, y + 8);
          ctx.stroke();
        }
      });
      ctx.restore();
    },
  };

  /* From mean - deviation to mean + deviation. */
  const whiskers = {
    id: "whiskers",
    afterDatasetsDraw(chart) {
      const { ctx, scales } = chart;
      ctx.save();
      ctx.strokeStyle = style("--text");
      ctx.lineWidth = 1.5;
      rows.filter((row) => isNumber(row.accuracy)).forEach((row, i) => {
        if (!isNumber(row.accuracy_deviation)) return;
        const y = scales.y.getPixelForValue(i);
        const ends = [-1, 1].map((sign) => scales.x.getPixelForValue(row.accuracy + sign * row.accuracy_deviation));
        ctx.beginPath();
        ctx.moveTo(ends[0], y);
        ctx.lineTo(ends[1], y);
        for (const end of ends) {
          ctx.moveTo(end, y - 6);
          ctx.lineTo(end, y + 6);
        }
        ctx.stroke();
      });
      ctx.restore();
    },
  };

  /* What the devices could give at most, on the bars of speed-up. */
  const idealMarks = {
    id: "ideal",
    afterDatasetsDraw(chart) {
      const { ctx, scales } = chart;
      ctx.save();
      ctx.strokeStyle = style("--text");
      ctx.setLineDash([4, 3]);
      rows.filter((row) => isNumber(row.speed_up)).forEach((row, i) => {
        const x = scales.x.getPixelForValue(row.speed_up / row.efficiency);
        const y = scales.y.getPixelForValue(i);
        ctx.beginPath();
        ctx.moveTo(x, y - 15);
        ctx.lineTo(x, y + 15);
        ctx.stroke();
      });
      ctx.restore();
    },
  };

  function memoryParts() {
    const names = [...new Set(rows.flatMap((row) => Object.keys(row.memory ?? {})))].filter((name) => !name.startsWith("in_"));
    const size = (name) => Math.max(...rows.map((row) => row.memory?.[name] ?? 0));
    names.sort((a, b) => size(b) - size(a));
    const kept = names.slice(0, 8), rest = names.slice(8);
    const parts = kept.map((name) => [name.replaceAll("_", " "), (row) => (row.memory ? (row.memory[name] ?? 0) / MIB : null)]);
    if (rest.length)
      parts.push(["other", (row) => (row.memory ? rest.reduce((sum, name) => sum + (row.memory[name] ?? 0), 0) / MIB : null)]);
    return parts;
  }

  function drawMemory() {
    const note = "What one device holds, in MiB; what lies in host memory or in a file instead is not counted.";
    if (rows.some((row) => row.memory))
      stackedBars({ id: "memory", name: "Memory of a device", note, parts: memoryParts(), unit: "MiB" });
    else bars({ id: "memory", name: "Memory of a device", note, key: "peak_device_bytes", scale: MIB, unit: "MiB" });
  }

  function drawBreakdown() {
    const parts = ["forward", "backward", "exchange", "optimizer", "data"].map((part) => [
      part,
      (row) => (isNumber(row[`share_${part}`]) ? (row[`share_${part}`] * 1000 * row.batch_size) / row.samples_per_second : null),
    ]);
    stackedBars({
      id: "breakdown", name: "Where a step goes", parts, unit: "ms",
      note: "Time of a mean step by what it was spent on; exchange is the time waited for it.",
    });
  }

  function drawLosses() {
    const known = rows.filter((row) => row.training_loss.length);
    const dash = 7;
    const series = known.map((row, i) => ({
      label: title(row), data: row.training_loss.map(([x, y]) => ({ x, y })), borderColor: rowColour(rows.indexOf(row)),
      backgroundColor: rowColour(rows.indexOf(row)), borderWidth: 2.5, pointRadius: 0, tension: 0,
      borderDash: [dash, dash * (known.length - 1)], borderDashOffset: -dash * i,
    }));
    curves({
      id: "loss", name: "Training loss", series, x: "step", y: "loss", show: fixed(4), wide: true,
      note: "First seed. Equal curves lie on one another and show their colours in turn.",
    });
  }

  /* The same strategy at all batch sizes, base included. */
  function drawStudy() {
    const all = [...comparison.rows, ...comparison.batch_size_rows].filter((row) => row.state === "done");
    const names = [...new Set(comparison.batch_size_rows.map((row) => row.name))];
    const series = (key, scale) => names.map((name, i) => ({
      label: name, borderColor: palette[i % palette.length], backgroundColor: palette[i % palette.length], pointRadius: 4, tension: 0,
      data: all.filter((row) => row.name === name && isNumber(row[key])).map((row) => ({ x: row.batch_size, y: row[key] / scale }))
        .sort((a, b) => a.x - b.x),
    })).filter((one) => one.data.length);
    const x = "batch size";
    const ticks = [...new Set(all.map((row) => row.batch_size))].sort((a, b) => a - b);
    if (!names.length) return;
    curves({ id: "study-speed", name: "Batch size and speed", series: series("samples_per_second", 1), x, ticks, y: "samples/s", beginAtZero: true });
    curves({ id: "study-memory", name: "Batch size and memory of a device", series: series("peak_device_bytes", MIB), x, ticks, y: "MiB", beginAtZero: true });
    curves({ id: "study-accuracy", name: "Batch size and accuracy", series: series("accuracy", 1), x, ticks, y: "accuracy", show: fixed(4) });
  }

  function drawTimeline() {
    const timeline = data.timeline;
    if (!timeline || !timeline.events.length) return;
    const lane = (event) => `rank ${event.rank} ${event.thread}`;
    const lanes = [...new Set(timeline.events.map(lane))].sort();
    const categories = [...new Set(timeline.events.map((event) => event.category))];
    const total = (name, category) => timeline.events.filter((event) => lane(event) === name && event.category === category)
      .reduce((sum, event) => sum + event.to_ms - event.from_ms, 0);
    addFigure({
      id: "timeline", name: "One step by rank", wide: true, kind: "Timeline", height: 110 + 34 * lanes.length,
      note: `${timeline.name}, ${timeline.step}, in milliseconds from its begin; below: milliseconds by kind.`,
      heads: ["thread", ...categories], lines: lanes.map((name) => [name, ...categories.map((category) => total(name, category))]),
      config: {
        type: "bar",
        data: {
          labels: lanes,
          datasets: categories.map((category, i) => ({
            label: category, backgroundColor: kindColours[category] ?? partColours[i % partColours.length], grouped: false, maxBarThickness: 22,
            data: timeline.events.filter((event) => event.category === category)
              .map((event) => ({ x: [event.from_ms, event.to_ms], y: lane(event), event })),
          })),
        },
        options: {
          indexAxis: "y",
          scales: { x: axis("ms") },
          plugins: {
            legend: { position: "bottom" },
            tooltip: {
              callbacks: {
                label: ({ raw }) => `${raw.event.name}${raw.event.layer ? ` (${raw.event.layer})` : ""}: ${figures(raw.event.to_ms - raw.event.from_ms)} ms`,
              },
            },
          },
        },
      },
    });
  }

  function drawCharts() {
    bars({
      id: "throughput", name: "Throughput", key: "samples_per_second", unit: "samples/s", extra: [roundMarks],
      note: "More is better. Thin marks: the single timing rounds.",
    });
    bars({
      id: "scaling", name: "Scaling", key: "speed_up", unit: "times single", extra: [idealMarks],
      most: 1.05 * Math.max(1, ...rows.map((row) => (isNumber(row.efficiency) ? row.speed_up / row.efficiency : 1))),
      note: "Speed-up over one device of the same size. Dashed: what as many cores could give at most.",
    });
    drawMemory();
    drawBreakdown();
    bars({
      id: "sent", name: "Sent between devices", key: "bytes_sent_per_step", scale: MIB, unit: "MiB a step",
      note: "All devices together.",
    });
    const on = rows[0]?.evaluated_on ?? "test";
    bars({
      id: "accuracy", name: "Accuracy", key: "accuracy", unit: "accuracy", show: fixed(4), extra: [whiskers],
      note: `On the ${on} file, mean over the seeds; whiskers: the standard deviation.`,
    });
    drawLosses();
    drawStudy();
    drawTimeline();
  }

  /* --- the table --- */

  const groups = [
    ["Run", [["state", "state"], ["reason", "reason"], ["devices", "devices", counted], ["threads", "threads a device", counted], ["batch_size", "batch size", counted]]],
    ["Speed", [
      ["samples_per_second", "samples/s", figures], ["real_tokens_per_second", "real tokens/s", counted], ["step_ms_median", "ms a step, median", figures],
      ["step_ms_p95", "ms a step, 95th percentile", figures], ["speed_up", "speed-up", figures], ["efficiency", "efficiency", percent],
      ["flops_per_step", "GFLOP a step", giga], ["flops_per_second", "GFLOP/s", giga], ["share_of_peak", "share of this machine's peak", percent],
      ["seconds_to_target_accuracy", "seconds to the target accuracy", figures]]],
    ["Memory and communication", [
      ["planned_device_bytes", "device memory planned, MiB", mebibytes], ["peak_device_bytes", "device memory measured, MiB", mebibytes],
      ["host_peak_bytes", "process at its peak, MiB", mebibytes], ["bytes_sent_per_step", "sent in a step, MiB", mebibytes],
      ["elements_sent_per_step", "elements sent in a step", counted], ["exposed_communication_ms", "waited for the exchange, ms a step", figures]]],
    ["Share of a step", [
      ...["forward", "backward", "exchange", "optimizer", "data"].map((part) => [`share_${part}`, part, percent]),
      ["bottleneck", "bottleneck"], ["advice", "try"]]],
    ["Result", [
      ["final_loss", "loss", fixed(4)], ["accuracy", "accuracy", fixed(4)], ["macro_f1", "macro-F1", fixed(4)],
      ["same_bits_as_single", "same bits as single"], ["weights_sha256", "sha256 of the weights"]]],
  ];

  const wordy = ["reason", "bottleneck", "advice"];

  function fill(cell, row, key, show) {
    const value = row[key], deviation = row[`${key}_deviation`];
    cell.dataset.key = key;
    if (isNumber(value)) cell.append(element("data", show(value), { value }));
    else cell.textContent = value === true ? "yes" : value === false ? "no" : value ?? "–";
    if (isNumber(deviation)) cell.append(" ± ", element("data", show(deviation), { value: deviation }));
    if (key === "weights_sha256" && value) {
      cell.className = "hash";
      cell.textContent = `${value.slice(0, 12)}…`;
      cell.title = value;
    }
    if (wordy.includes(key) && value) cell.className = "words";
  }

  function drawTable() {
    const table = document.getElementById("numbers");
    const all = [...comparison.rows, ...comparison.batch_size_rows];
    const studied = (row) => comparison.batch_size_rows.includes(row);
    const head = table.createTHead().insertRow();
    head.append(element("th", "", { scope: "col" }));
    for (const row of all) head.append(element("th", studied(row) ? `${title(row)}, batch ${row.batch_size}` : title(row), { scope: "col" }));
    const body = table.createTBody();
    for (const [name, lines] of groups) {
      const group = body.insertRow();
      group.append(element("th", name, { scope: "rowgroup", class: "group" }));
      group.append(element("td", "", { colspan: all.length }));
      for (const [key, label, show] of lines) {
        if (wordy.includes(key) && all.every((row) => !row[key])) continue;
        const line = body.insertRow();
        line.append(element("th", label, { scope: "row" }));
        for (const row of all) {
          const cell = line.insertCell();
          cell.dataset.row = row.name;
          cell.dataset.batch = row.batch_size;
          fill(cell, row, key, show);
        }
      }
    }
  }

  /* --- verdicts and origin --- */

  function drawVerdicts() {
    const names = {
      fastest: "Fastest", smallest: "Smallest", devices: "Do more devices pay?", scaling: "Scaling", bits: "Same bits", target: "Target accuracy",
      batch: "Batch size", failed: "Not compared",
    };
    for (const { kind, text } of comparison.verdicts) {
      const bad = kind === "failed" || (kind === "bits" && comparison.rows.some((row) => row.same_bits_as_single === false));
      const item = element("li", undefined, { class: bad ? "bad" : kind === "bits" ? "good" : "" });
      const name = names[kind] ?? kind;
      const rest = text.startsWith(`${name}: `) ? text.slice(name.length + 2) : text;
      const isName = comparison.rows.some((row) => rest.startsWith(row.name));
      item.append(element("strong", name), isName ? rest : rest.charAt(0).toUpperCase() + rest.slice(1));
      document.getElementById("verdicts").append(item);
    }
  }

  function drawOrigin() {
    const { machine, settings } = comparison;
    const length = settings.max_steps > 0 ? `${settings.max_steps} steps` : `${settings.epochs} epoch${settings.epochs === 1 ? "" : "s"}`;
    const lines = [
      ["Machine", `${machine.processor || "unknown processor"}, ${machine.cores} cores, ${(machine.memory_bytes / 2 ** 30).toFixed(1)} GiB of memory`],
      ["System", machine.system],
      ["Instruction set", machine.instruction_set],
      ["Memory bandwidth", isNumber(machine.memory_bytes_per_second) ? `${giga(machine.memory_bytes_per_second)} GB/s with ${machine.memory_threads} threads, reads and writes` : "not measured"],
      ["Lockstep", comparison.version],
      ["Date", comparison.date],
      ["Model", settings.model],
      ["Data", [settings.train, settings.validation, settings.test].filter(Boolean).join(", ")],
      ["Length", `${length}, batch size ${settings.batch_size}`],
      ["Devices", `${settings.devices} of ${settings.threads} thread${settings.threads === 1 ? "" : "s"}`],
      ["Timing", `${settings.timing_rounds} rounds of ${settings.timing_steps} steps, strategies in turn`],
    ];
    for (const [name, value] of lines) document.getElementById("origin").append(element("dt", name), element("dd", value));
    document.getElementById("command").textContent = comparison.command;
    document.getElementById("subject").textContent =
      `${settings.model}, ${length} of ${settings.batch_size} samples, ${settings.devices} devices, ${comparison.date.slice(0, 10)}`;
  }

  /* --- colours of light, dark and paper --- */

  function colour() {
    Chart.defaults.color = style("--text");
    Chart.defaults.borderColor = style("--line");
    for (const chart of charts) chart.update("none");
  }

  /* --- paper --- */

  /* Drawn anew for the columns that a sheet of A4 has: what was drawn for a screen would be scaled, its text too. */
  const columnOfPaper = 317, widthOfPaper = 684;
  function fitPaper() {
    for (const chart of charts) {
      const wide = chart.canvas.closest("figure").classList.contains("wide");
      chart.resize(wide ? widthOfPaper : columnOfPaper, parseInt(chart.canvas.parentElement.style.height, 10));
    }
  }

  function fitScreen() {
    for (const chart of charts) chart.resize();
  }

  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 13;
  colour();
  drawVerdicts();
  drawCharts();
  drawTable();
  drawOrigin();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", colour);
  matchMedia("print").addEventListener("change", colour);
  addEventListener("beforeprint", fitPaper);
  addEventListener("afterprint", fitScreen);
})();
