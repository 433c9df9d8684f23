#!/usr/bin/env python3
"""assay report: well-formed, whole in itself, with the numbers of the documents, and with their
texts as text, whatever stands in them.

usage: test_report.py ASSAY SOURCE_DIR
"""
import base64
import copy
import hashlib
import html.parser
import json
import pathlib
import re
import tempfile
import unittest
import xml.dom.minidom

from program import F16, Q4, SOURCE, TEXT, run

TASKS = SOURCE / "tests" / "data" / "tasks" / "hellaswag.txt"
VOID = {"meta"}
TAGS = set("""html head meta title style body a header nav main section h1 h2 h3 p strong bdi span
    mark figure figcaption details summary div table caption thead tbody tr th td script svg path
    text circle rect""".split())
EVIL = "</script><script>hacked=1</script>\"'><img src=x onerror=hacked=1>&amp;\u202e]]>"
PARTS = ["scoreboard", "size", "distributions", "position", "confidence", "worst", "pairs",
         "tasks", "sweeps", "provenance"]


class Page(html.parser.HTMLParser):
    """A page as a list of (path of tags, attributes, text inside); fails where tags do not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements = [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        assert tag in TAGS, tag
        assert len(dict(attributes)) == len(attributes), attributes
        self.elements.append([tag, dict(attributes), ""])
        if tag not in VOID:
            self.open.append(self.elements[-1])

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element[2] += data

    def all(self, tag, **attributes):
        return [e for e in self.elements
                if e[0] == tag and all(e[1].get(k) == v for k, v in attributes.items())]


def evaluate(folder, name, *words):
    done = run(*words, "-q", "--json", folder / name)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / name).read_text())


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = f = pathlib.Path(folder.name)
        text = ["-f", TEXT, "-c", "32", "--chunks", "4"]
        cls.kld = evaluate(f, "k.json", "kld", "-m", Q4, "-m", F16, "--base", F16, *text,
                           "--worst", "3", "--context-curve")
        cls.bare = evaluate(f, "b.json", "kld", "-m", Q4, "--base", F16, *text)
        cls.ppl = evaluate(f, "p.json", "perplexity", "-m", Q4, *text)
        for name, model in (("h.json", F16), ("i.json", Q4)):
            cls.tasks = evaluate(f, name, "perplexity", "-m", model, "-f", TASKS, "--hellaswag")
        cls.sweep = evaluate(f, "s.json", "sweep", "--base", F16, "--from", Q4, *text, "--heatmap",
                             f / "s.svg")

    def report(self, *files, code=0):
        done = run("report", *files, "-o", "r.html", cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        self.errors = done.stderr
        return code or (self.folder / "r.html").read_text()

    def of_document(self, document):
        (self.folder / "d.json").write_text(json.dumps(document))
        return self.report("d.json")

    def test_structure(self):
        text = self.report("k.json", "p.json", "h.json", "i.json", "s.json")
        page = Page(text)
        self.assertEqual([e[1]["id"] for e in page.all("section")], PARTS)
        self.assertEqual(len(page.all("h1")), 1)
        self.assertEqual(len(page.all("svg")), 8)
        for svg in page.all("svg"):
            self.assertEqual((svg[1]["role"], bool(svg[1]["aria-label"])), ("img", True))
        for link in page.all("a"):
            self.assertIn(f'id="{link[1]["href"][1:]}"', text)
        for table in page.all("table"):
            self.assertTrue(table[2].strip())
        self.assertEqual(len(page.all("caption")), len(page.all("table")))
        self.assertEqual({e[1].get("scope") for e in page.all("th")}, {"col", "row"})
        self.assertNotIn("{{", text)
        self.assertEqual(page.all("p", **{"class": "missing"}), [])
        for svg in re.findall(r"<svg.*?</svg>", text, re.S):
            xml.dom.minidom.parseString(svg)

    def test_nothing_is_loaded_and_only_the_own_script_runs(self):
        text = self.report("k.json")
        for tag, attributes, _ in Page(text).elements:
            for name, value in attributes.items():
                self.assertFalse(name.startswith("on") or name in ("src", "style"), (tag, name))
                if name == "href":
                    self.assertTrue(value.startswith("#"))
        self.assertEqual(set(re.findall(r"https?://[^\"]*", text)), {"http://www.w3.org/2000/svg"})
        policy = Page(text).all("meta", **{"http-equiv": "Content-Security-Policy"})[0][1]
        for tag in ("style", "script"):
            (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
            digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
            self.assertIn(f"{tag}-src 'sha256-{digest}'", policy["content"])
        self.assertTrue(policy["content"].startswith("default-src 'none'; "))

    def rows(self, page, caption):
        """The rows of a table: values of its cells, by the heads of their columns."""
        at = next(i for i, e in enumerate(page.elements)
                  if e[0] == "caption" and e[2] == caption)
        heads, rows = [], []
        for tag, attributes, text in page.elements[at + 1:]:
            if tag in ("table", "caption"):
                break
            if tag == "th" and attributes["scope"] == "col":
                heads.append(text)
            elif tag == "tr":
                rows.append([])
            elif tag in ("th", "td"):
                rows[-1].append(float(attributes.get("data-value", "nan"))
                                if "data-value" in attributes else text)
        return [dict(zip(heads, row)) for row in rows if row]

    def test_numbers_are_those_of_the_document(self):
        page = Page(self.report("k.json", "p.json", "h.json", "i.json"))
        base, itself, q4, again = self.rows(page, "Models on a text")
        c = self.kld["candidates"][0]
        for head, value in (("PPL", c["ppl"]["value"]), ("ΔPPL", c["ppl"]["difference"]),
                            ("KLD", c["kld"]["mean"]), ("KLD 99.9 %", c["kld"]["p99_9"]),
                            ("Mean Δp %", 100 * c["dp"]["mean"]),
                            ("RMS Δp %", 100 * c["dp"]["rms"]),
                            ("Same top p %", 100 * c["same_top"]),
                            ("bpw", c["model"]["bits_per_weight"]),
                            ("size GiB", c["model"]["n_bytes"] / 2 ** 30)):
            self.assertEqual(q4[head], value, head)
        self.assertEqual((q4["model"], itself["KLD"], base["PPL"]), ("Q4_K_M", 0, c["ppl"]["base"]))
        self.assertEqual(again["PPL"], self.ppl["result"]["ppl"])
        spread = self.rows(page, "KLD, nats")[1]
        for head, key in (("minimum", "min"), ("0.1 %", "p0_1"), ("median", "median"),
                          ("75 %", "p75"), ("maximum", "max")):
            self.assertEqual(spread[head], c["kld"][key])
        worst = self.rows(page, "Tokens of the largest divergence")
        self.assertEqual(len(worst), 3)
        tasks = self.rows(page, "Models on choice tasks")
        self.assertEqual(tasks[1]["score %"], 100 * self.tasks["result"]["score"]["share"])
        bins = self.rows(page, "KL divergence by the base's confidence")
        known = [b["kld"] for b in c["by_confidence"] if b["n_tokens"]]
        self.assertEqual([b["KLD"] for b in bins if b["model"] == "Q4_K_M" and b["KLD"] == b["KLD"]],
                         known)

    def test_pairs_are_those_of_compare(self):
        page = Page(self.report("k.json"))
        done = run("compare", "k.json", "k.json", "--candidate-a", "2", "--candidate-b", "1",
                   "--json", "c.json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = {f["name"]: f for f in
                   json.loads((self.folder / "c.json").read_text())["figures"]}
        (row,) = self.rows(page, "Divergences")
        self.assertEqual((row["A"], row["B"]), ("F16", "Q4_K_M"))
        self.assertEqual(row["Mean KLD: B - A"], figures["kld"]["difference"])
        self.assertEqual(row["Same top p %: B - A"], 100 * figures["same_top"]["difference"])

    def test_what_is_missing_is_said(self):
        page = Page(self.report("b.json"))
        missing = [e[2] for e in page.all("p", **{"class": "missing"})]
        self.assertEqual([m.split(":")[0] for m in missing],
                         ["No curve", "No tokens", "No pairs", "No tasks", "No heat map"])
        self.assertIn("--context-curve", missing[0])
        self.assertIn("--worst N", missing[1])
        missing = [e[2] for e in Page(self.report("h.json")).all("p", **{"class": "missing"})]
        self.assertEqual(len(missing), 8)

    def test_a_sweep_is_drawn_as_it_draws_itself(self):
        text = self.report("s.json", "k.json")
        (drawn,) = [svg for svg in re.findall(r"<svg.*?</svg>", text, re.S) if "heat" in svg]
        own = (self.folder / "s.svg").read_text()
        self.assertEqual(drawn.split("\n")[1:], [line for line in own.strip().split("\n")[1:]
                                                 if "<style>" not in line and "@media" not in line
                                                 and 'class="b"' not in line])
        n_choices = sum(len(group["choices"]) for group in self.sweep["groups"])
        self.assertEqual(drawn.count(" MB saved"), n_choices)
        self.assertIn(self.sweep["candidates"][0]["id"], text)
        page = Page(self.report("s.json"))
        self.assertEqual(len(page.all("svg")), 1)
        self.assertIn("tiny", page.all("strong")[0][2])

    def test_sweeps_that_are_no_picture(self):
        def changed(**changes):
            return {**copy.deepcopy(self.sweep), **changes}
        group = self.sweep["groups"][0]
        many = [{**group, "role": f"kind {i}"} for i in range(1025)]
        evil = [{**group, "name": EVIL, "role": EVIL}]
        for document, what in ((changed(groups=[]), "it tried nothing"),
                               (changed(groups=many), "1024 layers and kinds"),
                               (changed(candidates=self.sweep["candidates"] * 65), "more candidates")):
            page = Page(self.of_document(document))
            self.assertIn(what, page.all("p", **{"class": "missing"})[-1][2])
        text = self.of_document(changed(groups=evil))
        self.assertEqual(len(Page(text).all("script")), 1)
        self.assertNotIn("<script>hacked", text)
        for svg in re.findall(r"<svg.*?</svg>", text, re.S):
            xml.dom.minidom.parseString(svg)
        (self.folder / "d.json").write_text(json.dumps(changed(groups=[{**group, "layer": "one"}])))
        self.report("d.json", code=2)
        self.assertIn("d.json: groups[0].layer is a text", self.errors)

    def test_what_is_not_drawn_is_named(self):
        text = Page(self.report("k.json")).all("figcaption")[0][2]
        self.assertIn(f"Not drawn: F16 (0)", text)

    def test_other_inputs_get_a_chart_of_their_own(self):
        other = copy.deepcopy(self.bare)
        other["tokens"]["sha256"] = "0" * 64
        (self.folder / "o.json").write_text(json.dumps(other))
        page = Page(self.report("k.json", "o.json"))
        self.assertEqual(len([e for e in page.all("svg")
                              if e[1]["aria-label"] == "Mean KL divergence against size"]), 2)
        self.assertIn("tokens.sha256", page.all("p", **{"class": "note"})[0][2])
        self.assertIn("tokens.sha256", self.errors)
        self.assertIn("not compared: ", page.all("table", **{"class": "pairs"})[0][2])

    def test_hostile_texts_stay_texts(self):
        document = copy.deepcopy(self.kld)

        def poison(value):
            if isinstance(value, dict):
                return {key: poison(inner) for key, inner in value.items()}
            if isinstance(value, list):
                return [poison(inner) for inner in value]
            return value + EVIL if isinstance(value, str) else value

        schema = document.pop("schema")
        document = {"schema": schema, **poison(document)}
        document["settings"][EVIL] = EVIL
        text = self.of_document(document)
        page = Page(text)
        self.assertEqual(len(page.all("script")), 1)
        self.assertEqual(page.all("img"), [])
        self.assertNotIn("<script>hacked", text)
        self.assertNotIn("\u202e", text)
        row = self.rows(page, "Models on a text")[1]
        self.assertLessEqual(len(row["model"]), 32)
        for svg in re.findall(r"<svg.*?</svg>", text, re.S):
            xml.dom.minidom.parseString(svg)

    def test_hostile_numbers(self):
        for value in (None, 0, -1, 1e308, -1e308, 5e-324):
            document = copy.deepcopy(self.bare)
            c = document["candidates"][0]
            c["model"]["n_bytes"] = c["model"]["bits_per_weight"] = value
            c["kld"] = dict.fromkeys(c["kld"], value)
            c["dp"] = dict.fromkeys(c["dp"], value)
            c["ppl"] = dict.fromkeys(c["ppl"], value)
            for bucket in c["by_confidence"]:
                bucket["kld"] = bucket["from"] = value
            page = Page(self.of_document(document))
            for tag, attributes, _ in page.elements:
                for name in ("d", "x", "y", "cx", "cy", "width", "viewbox"):
                    self.assertNotRegex(attributes.get(name, ""), "nan|inf|e[+]", (tag, value))

    def test_a_document_that_lies_is_refused_and_leaves_no_page(self):
        (self.folder / "r.html").unlink(missing_ok=True)
        document = copy.deepcopy(self.kld)
        document["candidates"][0]["worst"][0]["kld"] = "much"
        (self.folder / "d.json").write_text(json.dumps(document))
        self.report("d.json", code=2)
        self.assertIn("d.json: candidates[0].worst[0].kld is a text", self.errors)
        self.assertFalse((self.folder / "r.html").exists())

    def test_the_output_is_none_of_the_inputs(self):
        done = run("report", "k.json", "-o", "k.json", cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(json.loads((self.folder / "k.json").read_text()), self.kld)

    def test_the_same_inputs_give_the_same_page(self):
        self.assertEqual(self.report("k.json", "p.json"), self.report("k.json", "p.json"))

    def test_a_chart_alone(self):
        done = run("table", "--svg", "k.json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        svg = xml.dom.minidom.parseString(done.stdout)
        self.assertEqual(len(svg.getElementsByTagName("circle")), 1)
        self.assertIn(f"{Q4.name}: ", done.stdout)
        self.assertIn("prefers-color-scheme: dark", done.stdout)
        done = run("table", "--svg", "h.json", cwd=self.folder)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=[__file__])
