#!/usr/bin/env python3
"""Open a report in a headless Chromium and compare what it shows with compare.json.

Usage: report.py CHROMIUM FOLDER      Prints what is wrong, a line each; exits 1 if anything is.
"""

import html.parser
import json
import re
import sys

from browser import Browser

chromium, folder = sys.argv[1:]
report = f"{folder}/report.html"
problems = []
comparison = json.load(open(f"{folder}/compare.json"))
rows = comparison["rows"] + comparison["batch_size_rows"]
done = [row for row in comparison["rows"] if row["state"] == "done"]


def check(true, text):
    if not true:
        problems.append(text)


class Page(html.parser.HTMLParser):
    """Cells of the big table, canvases, figures' tables, texts by id."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.cells, self.canvases, self.texts, self.figures = {}, [], {}, {}
        self.open, self.cell, self.figure, self.ids = [], None, None, []
        self.outside = []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.open.append(tag)
        self.ids.append(attributes.get("id"))
        for key in ("src", "href", "data-src", "action"):
            if key in attributes:
                self.outside.append((tag, attributes[key]))
        if tag == "td" and "data-key" in attributes:
            self.cell = (attributes["data-row"], int(attributes["data-batch"]), attributes["data-key"])
            self.cells[self.cell] = {"text": "", "values": [], "title": attributes.get("title")}
        if tag == "figure":
            self.figure = attributes["id"].removeprefix("figure-")
            self.figures[self.figure] = []
        if tag == "canvas":
            self.canvases.append(attributes)
        if tag == "data":
            if self.cell:
                self.cells[self.cell]["values"].append(float(attributes["value"]))
            elif self.figure:
                self.figures[self.figure].append(float(attributes["value"]))
        if tag in ("meta", "link", "br", "img", "input"):
            self.open.pop()
            self.ids.pop()

    def handle_endtag(self, tag):
        if tag in ("td", "figure"):
            self.cell = None
        if tag == "figure":
            self.figure = None
        while self.open and self.open.pop() != tag:
            self.ids.pop()
        if self.ids:
            self.ids.pop()

    def handle_data(self, text):
        if self.cell:
            self.cells[self.cell]["text"] += text
        for name in self.ids:
            if name:
                self.texts[name] = self.texts.get(name, "") + text


def shown_number(text):
    """A number as the page writes it, and half of its last digit's place."""
    match = re.match(r"-?[\d,]+(?:\.(\d+))?", text)
    return float(match.group().replace(",", "")), 0.5000001 * 10.0 ** -len(match.group(1) or "")


def scale_of(key):
    if key.endswith("_bytes") or key == "bytes_sent_per_step":
        return 1 << 20
    if key.startswith("share_") or key == "efficiency":
        return 0.01
    return 1e9 if key.startswith("flops_per_") else 1


browser = Browser(chromium)
browser.look(report)
page = Page()
page.feed(browser.ask("document.documentElement.outerHTML"))
check(not page.outside, f"the page names other files: {page.outside}")

# The table: every number of compare.json, exactly in the markup, rounded to what is shown.
ignored = {"name", "training_loss", "validation_accuracy", "seeds", "memory", "rounds_samples_per_second", "evaluated_on",
           "op_bytes_per_second", "final_loss_deviation", "accuracy_deviation", "macro_f1_deviation"}
numbers = 0
for row in rows:
    for key, value in row.items():
        if key in ignored or (key in ("reason", "bottleneck", "advice") and all(not other[key] for other in rows)):
            continue
        cell = page.cells.get((row["name"], row["batch_size"], key))
        where = f"{row['name']}, batch size {row['batch_size']}, {key}"
        if cell is None:
            check(False, f"{where}: not in the table")
        elif value is None:
            check(cell["text"] == "–", f"{where}: shows {cell['text']} for null")
        elif isinstance(value, bool):
            check(cell["text"] == ("yes" if value else "no"), f"{where}: shows {cell['text']}")
        elif key == "weights_sha256":
            check(cell["title"] == value and cell["text"] == value[:12] + "…", f"{where}: shows {cell['text']}")
        elif isinstance(value, str):
            check(cell["text"] == value, f"{where}: shows {cell['text']}")
        else:
            shown, place = shown_number(cell["text"])
            check(cell["values"][0] == value, f"{where}: holds {cell['values'][0]} instead of {value}")
            check(abs(shown - value / scale_of(key)) <= place, f"{where}: shows {cell['text']} instead of {value}")
            deviation = row.get(f"{key}_deviation")
            check(cell["values"][1:] == ([] if deviation is None else [deviation]), f"{where}: deviation {cell['values'][1:]}")
            numbers += 1
check(numbers > 8 * len(done), f"only {numbers} numbers")

# Charts: each is described and has its numbers as a table.
check(page.figures.get("throughput") == [row["samples_per_second"] for row in done], "throughput chart")
check(page.figures.get("accuracy") == [row["accuracy"] for row in done if row["accuracy"] is not None], "accuracy chart")
check(page.figures.get("scaling") == [row["speed_up"] for row in done if row["speed_up"] is not None], "scaling chart")
check("loss" in page.figures and "memory" in page.figures, "charts of loss and memory")
if any(row["memory"] for row in done):
    check(sum(page.figures["memory"]) > 0.99 * sum(row["planned_device_bytes"] for row in done) / (1 << 20), "memory by part")
if any(row["bottleneck"] for row in done):
    check("timeline" in page.figures, "a timeline")
if any(row["share_forward"] is not None for row in done):
    steps = page.figures.get("breakdown", [])
    for i, row in enumerate(done):
        step = 1000 * row["batch_size"] / row["samples_per_second"]
        check(abs(sum(steps[5 * i : 5 * i + 5]) / step - 1) <= 0.02, f"{row['name']}: the parts do not sum to the step")
if comparison["batch_size_rows"]:
    check({"study-speed", "study-memory", "study-accuracy"} <= set(page.figures), "charts of batch sizes")
check(len(page.canvases) == len(page.figures), "a canvas a figure")
for canvas in page.canvases:
    check(canvas.get("role") == "img" and len(canvas.get("aria-label", "")) > 20, f"no description: {canvas}")
    check(int(canvas.get("width", 0)) > 100, f"nothing was drawn: {canvas}")

# What the charts draw is compare.json's, too, and something is drawn.
DRAWN = """JSON.stringify(Object.fromEntries([...document.querySelectorAll("figure")].map(figure => {
  const canvas = figure.querySelector("canvas"), chart = Chart.getChart(canvas);
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return [figure.id.replace("figure-", ""), {painted: pixels.some(part => part), labels: chart.data.labels,
    sets: chart.data.datasets.map(one => [one.label, one.data])}];
})))"""
drawn = json.loads(browser.ask(DRAWN))


def titled(row):
    return f"{row['name']} \u00d7 {row['devices']}" if row["devices"] > 1 else row["name"]


def check_bars(name, key):
    """One bar a row; of parts, one row's bars together."""
    wanted = [row[key] for row in done if row[key] is not None]
    sets = drawn[name]["sets"]
    bars = [sum(data[i] for _, data in sets) for i in range(len(wanted))]
    scale = 1 << 20 if key.endswith("bytes") else 1
    check(all(abs(bar * scale / value - 1) < 1e-6 for bar, value in zip(bars, wanted, strict=True)), f"bars of {name}: {bars}")


for name, one in drawn.items():
    check(one["painted"], f"the chart {name} is empty")
if done:
    check_bars("throughput", "samples_per_second")
    check_bars("memory", "planned_device_bytes")
    if any(row["accuracy"] is not None for row in done):
        check_bars("accuracy", "accuracy")
    curves = {label: [[point["x"], point["y"]] for point in data] for label, data in drawn["loss"]["sets"]}
    check(curves == {titled(row): row["training_loss"] for row in done if row["training_loss"]}, "curves of loss")
if comparison["batch_size_rows"]:
    sized = [row for row in rows if row["state"] == "done"]
    for name, key, scale in (("speed", "samples_per_second", 1), ("memory", "peak_device_bytes", 1 << 20), ("accuracy", "accuracy", 1)):
        for label, data in drawn[f"study-{name}"]["sets"]:
            wanted = sorted((row["batch_size"], row[key] / scale) for row in sized if row["name"] == label)
            check([(point["x"], point["y"]) for point in data] == wanted, f"study of {name}, {label}: {data}")
if "timeline" in drawn:
    ranks = {label.split()[1] for label in drawn["timeline"]["labels"] if label.startswith("rank ")}
    check(len(ranks) == max(row["devices"] for row in done), f"ranks of the timeline: {ranks}")
for word in [comparison["version"], comparison["date"], comparison["machine"]["system"]]:
    check(word in page.texts.get("origin", ""), f"where it comes from: no {word}")

for verdict in comparison["verdicts"]:
    text = verdict["text"].split(": ", 1)[-1]
    check(text[1:] in page.texts.get("verdicts", ""), f"verdict: {text}")
check(page.texts.get("command") == comparison["command"], "the command to repeat it")

# Light or dark, as the user's system is; text stands out from what it lies on, in the charts too.
COLOURS = """(() => {
  const colour = (name, of) => getComputedStyle(document.querySelector(of))[name].match(/[0-9.]+/g).slice(0, 3).map(Number);
  const axis = Chart.getChart(document.querySelector("canvas")).options.scales.x.ticks.color;
  const mark = document.createElement("i");
  mark.style.color = axis;
  document.body.append(mark);
  const shown = {page: colour("backgroundColor", "body"), card: colour("backgroundColor", "figure"), text: colour("color", "body"),
    note: colour("color", "header p"), axis: colour("color", "body > i")};
  mark.remove();
  return shown;
})()"""
PRINTED_WIDTH = 718  # pixels of A4 between a browser's margins


def luminance(colour):
    """Relative luminance and, below, contrast as WCAG 2.1 defines them; a contrast of 4.5 is its level AA."""
    linear = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def check_colours(name, light):
    colours = browser.ask(COLOURS)
    for ground in ("page", "card"):
        check((luminance(colours[ground]) > 0.5) == light, f"{name}: {ground} is {colours[ground]}")
        for text in ("text", "note", "axis"):
            check(contrast(colours[text], colours[ground]) >= 4.5, f"{name}: {text} {colours[text]} on {colours[ground]}")


def check_width(name, width):
    taken = browser.ask("document.documentElement.scrollWidth")
    check(taken <= width, f"{name}: {taken} pixels wide on {width}")
    least = browser.ask("Math.min(...[...document.querySelectorAll('canvas')].map(one => one.clientWidth))")
    check(least > 0.6 * min(width, 400), f"{name}: a chart of {least} pixels")


if page.canvases:
    check_colours("light", True)
    browser.look(report, scheme="dark")
    check_colours("dark", False)
    for width in (360, 768):
        browser.look(report, width=width)
        check_width("phone" if width < 600 else "tablet", width)
    # A printer has white paper whatever the screen's colours are, and nothing to scroll with.
    browser.look(report, width=PRINTED_WIDTH, media="print", scheme="dark")
    check_colours("print", True)
    check_width("print", PRINTED_WIDTH)
    cut = browser.ask("[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1).length")
    check(cut == 0, f"print: {cut} tables wider than the paper")
    # From a wide screen: charts are drawn anew for the columns of the paper.
    browser.look(report, media="")
    browser.ask("dispatchEvent(new Event('beforeprint'))")
    widths = set(browser.ask("[...document.querySelectorAll('canvas')].map(one => Chart.getChart(one).width)"))
    check(widths == {317, 684}, f"print: charts of {sorted(widths)} pixels")
    pages = len(re.findall(rb"/Type\s*/Page\b", browser.paper()))
    check(1 <= pages <= 8, f"print: {pages} pages")
browser.close()
for line in browser.said:
    problems.append(f"console: {line}")

print("\n".join(problems) or f"{numbers} numbers, {len(page.figures)} charts")
sys.exit(bool(problems))
