#!/usr/bin/env python3
"""Whether a page of assay report fits its screen: a real browser shows it 390 and 1280 pixels wide,
with every folded part open, and nothing may be wider than what it stands in. No text may leave its
chart, and none of a chart may be smaller than 9 pixels.

usage: report-layout.py ASSAY SOURCE_DIR     (77: there is no chromium)
"""
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (390, 1280)
LONG = "Some-Model-3.1-70B-Instruct-2507-UD-Q4_K_XL-00001-of-00002.gguf"
# Run by a page that has the report in a frame of each width; what it finds is its text.
MEASURE = """
const found = [];
const blocks = new Set(["block", "table", "table-cell", "table-caption", "list-item", "flex"]);
const measure = (frame, width) => {
  const page = frame.contentDocument, view = frame.contentWindow;
  const report = (what, e) => found.push(
    `${width} pixels: ${what}: ${e.tagName} ${e.getAttribute("class") || e.id} ` +
    e.textContent.trim().slice(0, 60));
  const shown = (e) => e.getClientRects().length > 0;
  page.querySelectorAll("details").forEach((e) => { e.open = true; });
  const root = page.documentElement;
  if (root.scrollWidth > root.clientWidth)
    report(`the page is ${root.scrollWidth} wide`, root);
  for (const e of page.body.querySelectorAll("*"))
    if (!e.closest("svg") && blocks.has(view.getComputedStyle(e).display) && shown(e) &&
        e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && !e.matches(".skip"))
      report(`${e.scrollWidth} do not fit in ${e.clientWidth}`, e);
  let n = 0;
  for (const svg of page.querySelectorAll("svg")) {
    if (!shown(svg))
      continue;
    n++;
    const box = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const at = text.getBoundingClientRect();
      if (at.left < box.left - 1 || at.right > box.right + 1 || at.top < box.top - 1 ||
          at.bottom > box.bottom + 1)
        report("a text leaves its chart", text);
      const size = parseFloat(view.getComputedStyle(text).fontSize) *
        box.width / svg.viewBox.baseVal.width;
      if (size < 9)
        report(`a text of ${size.toFixed(1)} pixels`, text);
    }
  }
  for (const figure of page.querySelectorAll("figure"))
    if (figure.querySelector("svg") && [...figure.querySelectorAll("svg")].filter(shown).length !== 1)
      report("not one chart is shown", figure);
  return n;
};
addEventListener("load", () => {
  const frames = [...document.querySelectorAll("iframe")];
  const n = frames.map((f) => measure(f, f.width));
  document.body.innerHTML = "";
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify({ charts: n, found });
  document.body.append(out);
});
"""


def make_report(assay, source, folder):
    """Results of all kinds, of models with long and short names."""
    f16, q4 = source / "data" / "tiny.F16.gguf", source / "data" / "tiny.Q4_K_M.gguf"
    text, tasks = source / "data" / "text.txt", source / "tests" / "data" / "tasks"
    models = []
    for name in ("a.gguf", LONG, *(f"{i}-{LONG}" for i in range(6))):
        models += ["-m", folder / name]
        (folder / name).symlink_to(q4)
    paragraphs = [p for p in text.read_text().split("\n\n") if len(p) > 200]
    with open(folder / "documents.jsonl", "w") as out:
        for i, paragraph in enumerate(paragraphs[:40]):
            print(json.dumps({"text": paragraph, "category": f"category {i % 9} of the text"}),
                  file=out)
    window = ["-c", "64", "--chunks", "4"]
    for name, words in {
            "k": ["kld", *models, "-m", f16, "--base", f16, "-f", text, *window, "--worst", "5",
                  "--context-curve"],
            "d": ["kld", *models, "--base", f16, "-f", folder / "documents.jsonl", "-c", "64"],
            "p": ["perplexity", "-m", q4, "-f", text, *window],
            "h": ["perplexity", "-m", q4, "-f", tasks / "hellaswag.txt", "--hellaswag"],
            "i": ["perplexity", "-m", f16, "-f", tasks / "hellaswag.txt", "--hellaswag"],
            "s": ["sweep", "--base", f16, "--from", q4, "-f", text, "-c", "32", "--chunks", "1"]}.items():
        subprocess.run([assay, *words, "-q", "--json", folder / f"{name}.json"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # One long token, and a heading of a category that cannot be broken at a blank.
    document = json.loads((folder / "k.json").read_text())
    document["candidates"][0]["worst"][0]["token"] = "x" * 200
    (folder / "k.json").write_text(json.dumps(document))
    for page, files in (("one", ["k"]), ("all", ["k", "d", "p", "h", "i", "s"])):
        subprocess.run([assay, "report", *(folder / f"{f}.json" for f in files), "--context", "4096",
                        "-o", folder / f"{page}.html"], check=True, stderr=subprocess.DEVNULL)
        yield folder / f"{page}.html"


def shown(browser, folder, page):
    """What the browser measures of a page at each width."""
    frames = "".join(f'<iframe width="{w}" height="900" srcdoc="{html.escape(page.read_text())}">'
                     "</iframe>" for w in WIDTHS)
    frame = folder / "frame.html"
    frame.write_text(f"<!DOCTYPE html><meta charset=utf-8><style>iframe{{border:0}}</style><body>"
                     f"{frames}<script>{MEASURE}</script>")
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/browser",
         "--virtual-time-budget=20000", "--window-size=1400,1000", "--dump-dom", frame.as_uri()],
        capture_output=True, text=True, timeout=300)
    measured = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)
    if not measured:
        sys.exit(f"{browser} measured nothing: {done.stderr[-2000:]}")
    return json.loads(html.unescape(measured.group(1)))


def main():
    assay, source = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        print("chromium is not installed: no browser shows the report")
        return 77
    n_found = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for page in make_report(assay, source, folder):
            measured = shown(browser, folder, page)
            for sentence in measured["found"]:
                print(f"{page.name}: {sentence}")
            print(f"{page.name}: {measured['charts']} charts at {WIDTHS} pixels")
            n_found += len(measured["found"]) + (min(measured["charts"]) == 0)
    return n_found > 0


if __name__ == "__main__":
    sys.exit(main())
