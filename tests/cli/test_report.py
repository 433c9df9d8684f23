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
import math
import pathlib
import re
import shlex
import tempfile
import unittest
import xml.dom.minidom

import gguf_make as g
import imatrix_make as imatrix
import shards
from program import F16, Q4, SOURCE, TEXT, run

TASKS = SOURCE / "tests" / "data" / "tasks" / "hellaswag.txt"
VOID = {"meta"}
TAGS = set("""html head meta title style body a header nav main section h1 h2 h3 p strong bdi span
    mark figure figcaption details summary div table caption thead tbody tr th td script svg path
    text circle rect ul li g""".split())
EVIL = "</script><script>hacked=1</script>\"'><img src=x onerror=hacked=1>&amp;\u202e]]>"
PARTS = ["scoreboard", "size", "distributions", "position", "confidence", "worst", "pairs", "tasks",
         "sweeps", "missing", "provenance"]


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
        self.assertEqual([e[1]["href"][1:] for e in page.all("a")][1:1 + len(PARTS)], PARTS)
        self.assertEqual(len(page.all("h1")), 1)
        wide = [e for e in page.all("svg") if "wide" in e[1]["class"]]
        narrow = [e for e in page.all("svg") if "narrow" in e[1]["class"]]
        self.assertEqual([e[1]["aria-label"] for e in wide], [e[1]["aria-label"] for e in narrow])
        self.assertEqual((len(wide), len(page.all("svg"))), (7, 15))
        for svg in page.all("svg"):
            self.assertEqual((svg[1]["role"], bool(svg[1]["aria-label"])), ("img", True))
        for link in page.all("a"):
            self.assertIn(f'id="{link[1]["href"][1:]}"', text)
        for table in page.all("table"):
            self.assertTrue(table[2].strip())
        self.assertEqual(len(page.all("caption")), len(page.all("table")))
        self.assertEqual({e[1].get("scope") for e in page.all("th")}, {"col", "row"})
        self.assertNotIn("{{", text)
        self.assertEqual([m[2].split(":")[0] for m in page.all("p", **{"class": "missing"})],
                         ["No speeds beside divergences", "No categories", "No use of experts"])
        for e in page.all("td"):
            self.assertTrue(e[1].get("data-label") or "colspan" in e[1] or not e[1], e)
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
                            ("size MiB", c["model"]["n_bytes"] / 2 ** 20)):
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

    def candidate(self, name, kld, n_bytes):
        """A model whose divergences are so many times those of the first one."""
        c = copy.deepcopy(self.kld["candidates"][0])
        c["model"].update(file=f"tiny.{name}.gguf", id=name * 64, quantisation=name, n_bytes=n_bytes)
        for window in c["windows"]:
            window["kld"] *= kld
        for key, value in c["kld"].items():
            c["kld"][key] = value and value * kld
        return c

    def test_title_and_verdict(self):
        page = Page(self.report("k.json", "h.json", "i.json"))
        title = f"tiny-4m: Q4_K_M against F16 on {TEXT.name} and others"
        self.assertEqual([e[2] for e in page.all("title")[:1] + page.all("h1")], [title, title])
        document = copy.deepcopy(self.kld)
        document["text"]["sha256"] = \
            "173c87a53759e0201f33e0ccf978e510c2042d7f2cb78229d9a50d79b9e7dd08"
        document["candidates"][1:] = [self.candidate("b", 1, 2000000),
                                      self.candidate("c", 3, 1000000),
                                      self.candidate("d", 20, 4000000)]
        document["candidates"][0]["model"]["n_bytes"] = 3000000
        page = Page(self.of_document(document))
        self.assertIn("Q4_K_M, b, c and d against F16 on WikiText-2 (test)", page.all("h1")[0][2])
        mean, top = document["candidates"][0]["kld"], document["candidates"][0]["same_top"]
        self.assertEqual(page.all("p", **{"class": "answer"})[0][2],
                         f"Q4_K_M is nearest to F16: its mean KLD is {mean['mean']:.5f} ± "
                         f"{mean['mean_error']:.5f} nats, and after {100 * top:.2f} % of the "
                         "tokens both have the same most likely next one. Within chance, b is as "
                         "good. d gains nothing: another one is no larger and better.")
        self.assertEqual(page.all("p", **{"class": "note"})[0][2],
                         "There are only 4 windows: the tests may take chance for a difference.")
        rows = self.rows(page, "The best of each size")
        self.assertEqual([r["model"] for r in rows], ["Q4_K_M", "b", "c"])
        self.assertEqual(rows[0]["KLD"], mean["mean"])
        self.assertEqual(rows[0]["ΔPPL %"],
                         100 * math.expm1(document["candidates"][0]["ppl"]["ln_ratio"]))
        words = [e[2] for e in page.all("li")]
        self.assertEqual(words[:1] + words[2:], [
            "Further away, in multiples of its divergence: c (3) and d (20).",
            "These sizes gain nothing: d (Q4_K_M is no larger).",
            "What Q4_K_M gains over the smaller b may be chance."])
        self.assertRegex(words[1], "erplexity differs from that of F16 by more than chance")
        document["candidates"][0]["ppl"].update(ln_ratio=math.log(2.375), ln_ratio_error=0.01,
                                                ln_ratio_lot_error=0.01)
        self.assertIn("than chance: Q4_K_M (+138 %", self.of_document(document).replace(
            "<bdi>", "").replace("</bdi>", ""))

    def test_figures_are_as_long_as_their_errors_let_them_be(self):
        document = copy.deepcopy(self.bare)
        kld = document["candidates"][0]["kld"]
        kld.update(mean=0.0316683, mean_error=0.0005401, mean_lot_error=None)
        text = self.of_document(document)
        self.assertIn('data-value="0.0316683', text)
        self.assertEqual(text.count('title="0.0316683 ± 0.00054"><span>0.03167 <span '
                                    'class="error">± 0.00054</span>'), 2)

    def test_every_mark_has_a_name(self):
        document = copy.deepcopy(self.kld)
        document["candidates"] = [self.candidate(f"name {i:02}", 1 + i % 3 / 50, 3000000 + 9000 * i)
                                  for i in range(30)]
        text = self.of_document(document)
        for svg in re.findall(r"<svg.*?</svg>", text, re.S)[:4]:
            names = re.findall('<text class="name" x="([^"]*)" y="([^"]*)"[^>]*>([^<]*)<', svg)
            self.assertEqual(sorted(name for _, _, name in names if name != "F16"),
                             [f"name {i:02}" for i in range(30)])
            self.assertIn('class="leader"', svg)

    def test_a_model_has_one_colour(self):
        text = self.report("k.json", "p.json", "h.json", "i.json")
        self.assertEqual(set(re.findall(r'"(?:key|dot|line) (\w+ f\d)', text)), {"m0 f0", "mb f0"})
        self.assertRegex(text, f'class="key m0 f0"><bdi>Q4_K_M')

    def test_size_with_a_cache(self):
        info = json.loads(run("info", "--json", Q4).stdout)["hyperparameters"]
        model = self.kld["candidates"][0]["model"]
        n = info["n_layers"] * info["n_kv_heads"] * info["head_size"]
        self.assertEqual(model["cache"], {"k": n, "v": n, "window": 0, "window_k": 0, "window_v": 0,
                                          "state_bytes": 0})
        for key in ("n_weights", "n_bytes"):
            self.assertEqual(sum(t[key] for t in model["types"]), model[key])
        done = run("report", "k.json", "-o", "-", "--context", "1000", cwd=self.folder)
        q4 = self.rows(Page(done.stdout), "Models on a text")[2]
        self.assertEqual(q4["with cache MiB"], (model["n_bytes"] + 4000 * n) / 2 ** 20)
        self.assertIn(">weights and cache of 1000 tokens, MiB<", done.stdout)
        document = copy.deepcopy(self.bare)
        one = document["candidates"][0]["model"]
        one["cache"].update(window=100, window_k=32, window_v=64, state_bytes=7)
        for k, v, k_bytes, v_bytes in (("Q8_0", "F32", 34 / 32, 2), ("MXFP8", "F8_E4M3@0.02", 33 / 32, 1)):
            one["kv_types"] = {"k": k, "v": v, "rotation": True}
            (self.folder / "d.json").write_text(json.dumps(document))
            done = run("report", "d.json", "-o", "-", "--context", "1000", cwd=self.folder)
            self.assertEqual(self.rows(Page(done.stdout), "Models on a text")[1]["with cache MiB"],
                             (model["n_bytes"] + (1000 * n + 3200) * k_bytes
                              + v_bytes * (1000 * n + 6400) + 7) / 2 ** 20)
        del one["cache"]
        (self.folder / "d.json").write_text(json.dumps(document))
        done = run("report", "d.json", "-o", "-", "--context", "1000", cwd=self.folder)
        self.assertIn("does not say what a cache takes", done.stdout)

    def test_categories(self):
        document = copy.deepcopy(self.kld)
        for i, c in enumerate(document["candidates"]):
            c["categories"] = [{"category": name, "n_tokens": 5, "kld": kld, "kld_error": 0.1}
                               for name, kld in (("a", 1e-3 * i), (EVIL, 0.1), (None, 0.01))]
        text = self.of_document(document)
        rows = self.rows(Page(text), "Mean KLD by category, nats")
        self.assertEqual([r["category"] for r in rows],
                         ["a", EVIL.replace("\u202e", r"\xe2\x80\xae"), "no category"])
        self.assertEqual([(r["F16"], r["Q4_K_M"]) for r in rows],
                         [(1e-3, 0), (0.1, 0.1), (0.01, 0.01)])
        self.assertEqual(re.findall(r'class="n (h\d)"', text), ["h0", "h9", "h9", "h5", "h5"])

    def test_tokens_are_characters(self):
        document = copy.deepcopy(self.kld)
        worst = document["candidates"][1]["worst"] # F16, the first row
        for token, texts in zip(worst, ((r"\x94 children \xe2\x80", r"\x94"), (r"a\n", r"\xe2\x80"),
                                        (r"\\x41", "  "))):
            token["context"], token["token"] = texts
        rows = self.rows(Page(self.of_document(document)), "Tokens of the largest divergence")
        self.assertEqual([r["text"] for r in rows], ["… children —", "…a↵▯", "…\\x41␣␣"])

    def test_positions_are_on_a_logarithmic_axis(self):
        page = Page(self.report("k.json"))
        rows = [r for r in self.rows(page, "KL divergence by position in the window")
                if r["model"] == "Q4_K_M"]
        at = [r["position in the window"] for r in rows]
        self.assertEqual(at, sorted(set(at)))
        self.assertLess(len(at), 33)

    def test_the_noise_floor(self):
        caption = Page(self.report("b.json")).all("figcaption")[0][2]
        rounding = self.bare["candidates"][0]["kld"]["rounding"]
        self.assertIn(f"by more than about {rounding:.2g} nats, which is below the chart", caption)
        document = copy.deepcopy(self.bare)
        document["candidates"][0]["kld"]["rounding"] = 1e-3
        text = self.of_document(document)
        self.assertIn("by more than about 0.001 nats (the dashed line)", text)
        self.assertEqual(text.count("<title>rounding: 0.001 nats</title>"), 2)
        document["candidates"][0]["kld"]["rounding"] = None
        self.assertNotIn("noise floor", self.of_document(document))

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
                         ["No speeds beside divergences", "No curve", "No categories", "No tokens",
                          "No pairs", "No tasks", "No heat map", "No use of experts"])
        self.assertIn("--context-curve", missing[1])
        self.assertIn("--worst N", missing[3])
        missing = [e[2] for e in Page(self.report("h.json")).all("p", **{"class": "missing"})]
        self.assertEqual(len(missing), 10)

    def test_a_sweep_is_drawn_as_it_draws_itself(self):
        text = self.report("s.json", "k.json")
        (drawn,) = [svg for svg in re.findall(r"<svg.*?</svg>", text, re.S) if "heat" in svg]
        own = (self.folder / "s.svg").read_text()
        n_choices = sum(len(group["choices"]) for group in self.sweep["groups"])
        saved = re.compile(r"-?[\d.]+ M(?:i)?B saved")
        self.assertEqual(drawn.count(" MiB saved"), n_choices)
        own, drawn = saved.sub("", own), saved.sub("", drawn)
        self.assertEqual(drawn.split("\n")[1:], [line for line in own.strip().split("\n")[1:]
                                                 if "<style>" not in line and "@media" not in line
                                                 and 'class="b"' not in line])
        self.assertIn(self.sweep["candidates"][0]["id"], text)
        page = Page(self.report("s.json"))
        self.assertEqual(len(page.all("svg")), 1)
        self.assertRegex(page.all("title")[0][2], "^tiny-4m: tensors in other types on ")

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
            self.assertIn(what, page.all("p", **{"class": "missing"})[0][2])
        text = self.of_document(changed(groups=evil))
        self.assertEqual(len(Page(text).all("script")), 1)
        self.assertNotIn("<script>hacked", text)
        for svg in re.findall(r"<svg.*?</svg>", text, re.S):
            xml.dom.minidom.parseString(svg)
        (self.folder / "d.json").write_text(json.dumps(changed(groups=[{**group, "layer": "one"}])))
        self.report("d.json", code=2)
        self.assertIn("d.json: groups[0].layer is 'one', expected a whole number", self.errors)

    def test_use_of_experts(self):
        rows = {0: [2000, 4, 0, 500], 3: [100, 100, 100, 100]}
        (self.folder / "e.gguf").write_bytes(imatrix.plain({
            f"blk.{i}.ffn_{what}_exps.weight": (counts, [[imatrix.ONE * (n > 0)] * 2 for n in counts])
            for i, counts in rows.items() for what in ("up", "down")}))
        done = run("info", "--json", self.folder / "e.gguf")
        document = json.loads(done.stdout)
        text = self.of_document(document)
        page = Page(text)
        self.assertEqual(page.all("title")[0][2], "The use of experts")
        drawn = [t for t in re.findall("<title>(layer[^<]*)</title>", text)]
        even = {i: sum(counts) / 4 for i, counts in rows.items()}
        self.assertEqual(drawn, [f"layer {i}, expert {k}: {n} rows, {n / even[i]:.3g} of an even share"
                                 for i, counts in rows.items() for k, n in enumerate(counts)])
        self.assertEqual(text.count('class="n"><title>layer'), 1)
        table = self.rows(page, "Use of experts")
        self.assertEqual([row["matrices"] for row in table],
                         [f"blk.{i}.ffn_down_exps.weight" for i in rows])
        self.assertEqual([(row["without rows"], row["with few"]) for row in table], [(1, 1), (0, 0)])
        for row, use in zip(table, document["experts"]):
            self.assertEqual((row["entropy"], row["so many"]), (use["entropy"], use["effective"]))
        self.assertEqual(len(Page(self.report("k.json", "d.json")).all("svg", **{"class": "chart heat"})), 1)
        for change, what in (({"experts": []}, "no experts"),
                             ({"experts": [{**document["experts"][0], "rows": [1] * 140000}]}, "more experts")):
            missing = Page(self.of_document({**document, **change})).all("p", **{"class": "missing"})
            self.assertIn(what, missing[0][2])
        evil = {**document["experts"][0], "name": EVIL, "rows": [None, -1, 1e308, EVIL]}
        text = self.of_document({**document, "file": EVIL, "experts": [evil]})
        self.assertEqual(len(Page(text).all("script")), 1)
        xml.dom.minidom.parseString(re.findall(r"<svg.*?</svg>", text, re.S)[0])
        self.assertEqual(run("table", "d.json", cwd=self.folder).returncode, 2)

    def test_what_is_not_drawn_is_named(self):
        text = Page(self.report("k.json")).all("figcaption")[0][2]
        self.assertIn(f"Not drawn: F16 (0)", text)

    def test_other_inputs_get_a_chart_of_their_own(self):
        other = copy.deepcopy(self.bare)
        other["tokens"]["sha256"] = "0" * 64
        (self.folder / "o.json").write_text(json.dumps(other))
        page = Page(self.report("k.json", "o.json"))
        self.assertEqual(len([e for e in page.all("svg")
                              if e[1]["aria-label"] == "Mean KL divergence against size"]), 4)
        self.assertIn("tokens.sha256", page.all("p", **{"class": "note"})[0][2])
        self.assertIn("tokens.sha256", self.errors)
        self.assertEqual(len(self.rows(page, "Divergences")), 1) # not of different inputs

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
        self.assertIn("d.json: candidates[0].worst[0].kld is 'much', expected a finite number", self.errors)
        self.assertFalse((self.folder / "r.html").exists())

    def test_the_output_is_none_of_the_inputs(self):
        done = run("report", "k.json", "-o", "k.json", cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(json.loads((self.folder / "k.json").read_text()), self.kld)

    def test_the_same_inputs_give_the_same_page(self):
        self.assertEqual(self.report("k.json", "p.json"), self.report("k.json", "p.json"))

    def test_a_card(self):
        done = run("card", "k.json", "p.json", "--svg", "a b.svg", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| `")]
        c = self.kld["candidates"][0]
        self.assertEqual([r[0] for r in rows], [f"| `{m.name}`" for m in (F16, F16, Q4, Q4)])
        self.assertEqual(rows[2][2:], [
            f"{c['model']['n_bytes'] / 2 ** 20:.3f}", f"{c['model']['bits_per_weight']:.4f}",
            f"{c['ppl']['value']:.4f} ± {c['ppl']['value_error']:.4f}",
            f"{c['ppl']['ratio']:.5f} ± {c['ppl']['ratio_error']:.5f}",
            f"{c['kld']['mean']:.6f} ± {c['kld']['mean_error']:.6f}", 
            f"{c['kld']['p99_9']:.6f} ± {c['kld']['p99_9_error']:.6f}",
            f"{100 * c['same_top']:.2f} ± {100 * c['same_top_error']:.2f} |"])
        self.assertIn("![Mean KL divergence against size](a%20b.svg)\n", done.stdout)
        self.assertIn(f"`{TEXT.name}`; SHA-256 `{self.kld['text']['sha256']}`; ", done.stdout)
        self.assertRegex(done.stdout, f"  - `{Q4.name}`: `Q4_K` [\\d.]+ %, `Q6_K` [\\d.]+ %\n")
        less = 100 * (1 - c["model"]["n_bytes"] / self.kld["base"]["n_bytes"])
        self.assertIn(f"\n  - `{F16.name}`: 0 nats from the base (tokens drawn otherwise: none beyond "
                      f"rounding), the nearest\n  - `{Q4.name}`: {c['kld']['mean']:.3g} nats from the base "
                      f"(tokens drawn otherwise: at most 1 in 20), {less:.3g} % smaller than "
                      f"`{F16.name}`\n", done.stdout)
        self.assertEqual(re.findall("^</?details>", done.stdout, re.M), ["<details>", "</details>"] * 2)
        self.assertRegex(done.stdout, f"\n- \\*\\*Importance matrix\\*\\* `[^`]+` of the text "
                                      f"`imtext.txt`: `{Q4.name}`\n")
        document = copy.deepcopy(self.kld)
        document["candidates"][0]["model"]["imatrix_dataset"] = None
        document["candidates"][0]["model"]["imatrix_file"] = None
        (self.folder / "d.json").write_text(json.dumps(document))
        self.assertIn("\n- **Importance matrix:** none that a file names\n",
                      run("card", "d.json", cwd=self.folder).stdout)
        document["candidates"][1]["model"]["imatrix_dataset"] = "folder/wiki.txt"
        (self.folder / "d.json").write_text(json.dumps(document))
        self.assertIn(f"\n- **Importance matrix** `wiki.txt`: `{F16.name}`\n",
                      run("card", "d.json", cwd=self.folder).stdout)
        chart = run("table", "--svg", "k.json", "p.json", cwd=self.folder).stdout
        self.assertEqual((self.folder / "a b.svg").read_text(), chart)
        self.assertEqual(run("card", "h.json", cwd=self.folder).returncode, 2)

    def test_which_file_a_card_names(self):
        document = copy.deepcopy(self.kld)
        document["candidates"] = []
        for file, n_bytes, kld in (("a", 400, 0.1), ("b", 300, 0.2), ("c", 350, 0.3), ("d", 300, 0.7),
                                   ("e", 200, 0.2)):
            one = copy.deepcopy(self.kld["candidates"][0])
            one["model"].update(file=file, n_bytes=n_bytes)
            one["kld"]["mean"] = kld
            document["candidates"].append(one)
        document["base"].update(file="f", n_bytes=800)
        (self.folder / "d.json").write_text(json.dumps(document))
        card = run("card", "d.json", cwd=self.folder).stdout
        self.assertEqual(re.findall("^  - (`[^`]*`: .* nats .*)$", card, re.M), [
            "`a`: 0.100 nats from the base (tokens drawn otherwise: at most 1 in 2), the nearest, 50 % "
            "smaller than `f`",
            "`b`: 0.200 nats from the base (tokens drawn otherwise: at most 1 in 2), 25 % smaller than `a`",
            "`e`: 0.200 nats from the base (tokens drawn otherwise: at most 1 in 2), 33.3 % smaller than "
            "`b`",
            "`c`: 0.300 nats from the base (tokens drawn otherwise: at most 1 in 2); `b` is 14.3 % "
            "smaller and nearer (0.200)",
            "`d`: 0.700 nats from the base (tokens drawn otherwise: perhaps most); `b` is as large and "
            "nearer (0.200)"])
        for one in document["candidates"]:
            one["model"]["kv_types"] = {"k": "Q8_0", "v": "Q8_0", "rotation": True}
        (self.folder / "d.json").write_text(json.dumps(document))
        self.assertNotIn("Which file", run("card", "d.json", cwd=self.folder).stdout)

    def test_origins_on_a_card(self):
        pairs, n, tensors = shards.contents(Q4)
        link, parent = "https://example.com/a b/(c)?d=1", "general.base_model"
        said = {f"{parent}.0.name": "A [parent]", f"{parent}.0.repo_url": link, f"{parent}.0.url": "-",
                f"{parent}.1.name": "Another", f"{parent}.1.url": "javascript:alert(1)",
                f"{parent}.2.organization": "nobody", "general.source.url": "http://example.com/"}
        more = [g.pair(key, g.STRING, text) for key, text in said.items()]
        (self.folder / "o.gguf").write_bytes(g.gguf([pairs, *[b""] * (n - 1), *more], tensors))
        document = evaluate(self.folder, "o.json", "kld", self.folder / "o.gguf", "--base", F16, "-f",
                            TEXT, "-c", "32", "--chunks", "2")
        model = document["candidates"][0]["model"]
        self.assertEqual(model["origins"], [
            {"of": "parent", "name": "A [parent]", "url": link},
            {"of": "parent", "name": "Another", "url": "javascript:alert(1)"},
            {"of": "source", "url": "http://example.com/"}])
        model["imatrix_file"] = link
        document["candidates"].append(document["candidates"][0])
        (self.folder / "d.json").write_text(json.dumps(document))
        card = run("card", "d.json", cwd=self.folder).stdout
        address = "https://example.com/a%20b/%28c%29?d=1"
        self.assertEqual(re.findall(r"^- \*\*(?:Parent|Source|Imp).*", card, re.M), [
            rf"- **Parent model:** [A \[parent\]]({address})", "- **Parent model:** `Another`",
            r"- **Source:** [http\://example.com/](http://example.com/)",
            f"- **Importance matrix** [(c)?d=1]({address}) of the text `imtext.txt`: `o.gguf`, `o.gguf`"])

    def test_the_command_of_a_card_gives_the_figures_again(self):
        more = ["-c", "16", "--chunks", "3", "--chunk-from", "1", "--precision", "exact", "--ctk",
                "q8_0,f16", "--ctv", "q4_0", "--no-kv-rotation", "--parse-special", "-e", "--js",
                "--override-kv", "a.b=str:it's", "--rope-scale", "1.5", "--rope-scaling", "linear"]
        first = evaluate(self.folder, "e.json", "kld", "-m", Q4, "--base", F16, "-f", TEXT, *more)
        card = run("card", "e.json", cwd=self.folder).stdout
        (command,) = re.findall(r"```sh\nassay (.*)\n```", card)
        for file in (Q4, F16, TEXT):
            (self.folder / file.name).symlink_to(file)
        done = run(*shlex.split(command), "-q", "--json", "f.json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        again = json.loads((self.folder / "f.json").read_text())
        for key in ("candidates", "settings", "text", "tokens", "windows"):
            self.assertEqual(again[key], first[key])
        document = copy.deepcopy(self.ppl)
        document["settings"].update(protocol="fixed", split_lines=True, later=1)
        (self.folder / "d.json").write_text(json.dumps(document))
        self.assertIn(f"assay perplexity -m {Q4.name} -f {TEXT.name} -c 32 --chunks 4 --protocol "
                      "fixed --split-lines\n# another setting: later\n```",
                      run("card", "d.json", cwd=self.folder).stdout)

    def test_a_race(self):
        race = evaluate(self.folder, "r.json", "best", "--base", F16, Q4, "-f", TEXT, "-c", "32",
                        "--chunks", "8", "--size", "3MB", "--margin", "0.002+4%")
        page = Page(self.report("r.json"))
        self.assertEqual(page.all("p", **{"class": "answer"})[0][2], race["verdict"][0])
        self.assertEqual(self.rows(page, "Models on a text")[1]["KLD"],
                         race["candidates"][0]["kld"])
        table = run("table", "r.json", cwd=self.folder)
        self.assertEqual((table.returncode, table.stderr), (0, ""))
        self.assertIn("| Q4_K_M ", table.stdout)
        card = run("card", "r.json", cwd=self.folder).stdout
        self.assertIn(f"assay best -m {Q4.name} --base {F16.name} -f {TEXT.name} -c 32 --chunks 8 "
                      "--size 3000000 --margin 0.002+4%\n```", card)
        self.assertEqual(card.count("\n  - Take "), 1)
        del race["candidates"][0]["figures"]
        (self.folder / "d.json").write_text(json.dumps(race))
        self.report("d.json", code=2)
        self.assertIn("candidates[0].figures", self.errors)

    def test_a_race_beside_a_result_of_the_same_models(self):
        text = [Q4, "--base", F16, "-f", TEXT, "-c", "32", "--chunks", "8"]
        race = evaluate(self.folder, "race.json", "best", *text)
        evaluate(self.folder, "same.json", "kld", *text)
        for files in (("race.json", "same.json"), ("same.json", "race.json")):
            page = Page(self.report(*files))
            answers = [e[2] for e in page.all("p", **{"class": "answer"})]
            self.assertEqual(answers[0], race["verdict"][0])
            self.assertIn(" is nearest to ", answers[1])
            self.assertNotIn("gains nothing", answers[1])
            self.assertEqual(len(answers), 2)
            self.assertEqual([e[2] for e in page.all("h3")][:1], [f"{TEXT.name}, 8 windows"])
            self.assertEqual(len(self.rows(page, "The best of each size")), 1)
            self.assertNotIn("Not tested for chance", self.report(*files))

    def test_results_of_one_model_that_are_no_repetitions(self):
        """Another precision, and tasks of another text: nothing of the kind is left out."""
        evaluate(self.folder, "exact.json", "kld", "-m", Q4, "--base", F16, "-f", TEXT, "-c", "32", "--chunks",
                 "4", "--precision", "exact")
        page = Page(self.report("b.json", "exact.json"))
        self.assertEqual(page.all("h3")[0][2], f"{TEXT.name}, 4 windows")
        self.assertEqual(len(self.rows(page, "The best of each size")), 2)
        other = copy.deepcopy(self.tasks)
        other["text"]["sha256"] = 64 * "0"
        (self.folder / "other.json").write_text(json.dumps(other))
        self.assertEqual(len(self.rows(Page(self.report("i.json", "other.json")), "Best first")), 2)
        (self.folder / "again.json").write_text(json.dumps(self.tasks))
        self.assertEqual(len(self.rows(Page(self.report("i.json", "again.json")), "Best first")), 1)

    def test_a_hostile_card(self):
        document = copy.deepcopy(self.bare)
        evil = "a`|b\n```\n<img src=x> 'q' \u202e"
        document["candidates"][0]["model"].update(file=evil, quantisation=evil)
        document["run"]["text_file"] = evil
        document["settings"].update({evil: 1, "precision": evil})
        (self.folder / "d.json").write_text(json.dumps(document))
        done = run("card", "d.json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
        self.assertEqual({len(re.findall(r"(?<!\\)\|", row)) for row in rows}, {10})
        self.assertEqual(re.findall("^```.*$", done.stdout, re.M), ["```sh", "```"])
        self.assertNotIn("<img", re.sub("`[^`]*`", "", done.stdout.split("```")[0]))

    def test_a_chart_alone(self):
        done = run("table", "--svg", "k.json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        svg = xml.dom.minidom.parseString(done.stdout)
        marks = [e for e in svg.getElementsByTagName("path")
                 if e.getAttribute("class").startswith("dot")]
        self.assertEqual([e.getAttribute("class") for e in marks], ["dot m0 f0 best"])
        self.assertIn(f"{Q4.name}: ", done.stdout)
        self.assertIn("prefers-color-scheme: dark", done.stdout)
        done = run("table", "--svg", "h.json", cwd=self.folder)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=[__file__])
