#!/usr/bin/env python3
"""The model `assay` in the real lm-evaluation-harness, on tasks in local files.

usage: test_lm_eval.py ASSAY SOURCE_DIR

Skipped (77) where lm_eval cannot be imported. What needs torch and transformers, a float32
evaluation of the same weights, is skipped without them.
"""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from importlib.metadata import EntryPoint

SOURCE = pathlib.Path(sys.argv[2]).resolve()
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests" / "cli")]
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
CACHE = tempfile.TemporaryDirectory()
os.environ["HF_HOME"] = CACHE.name

try:
    import lm_eval
    import lm_eval.models  # which makes the harness know its own
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import LM
    from lm_eval.api.registry import Registry
    from lm_eval.tasks import TaskManager
    from lm_eval.utils import RemoteTokenizer, get_rolling_token_windows
except ImportError as error:
    print(f"lm_eval cannot be imported ({error})")
    sys.exit(77)

from assay_gguf import AssayError, harness  # noqa: E402
from program import ASSAY, F16, Q4, TEXT, run  # noqa: E402
from serving import Server  # noqa: E402

N_ITEMS, ITEM_WORDS, CONTEXT_WORDS = 40, 40, 12
WORDS = TEXT.read_text().split()
# Longer than the window of the tests below, and not a multiple of it.
TEXTS = [" ".join(WORDS[200 * i:200 * i + n]) for i, n in enumerate((1, 9, 31, 70, 133))]
N_CTX = 24
CHOICE = """task: local_hellaswag
dataset_path: json
dataset_kwargs: {data_files: %s}
test_split: train
output_type: multiple_choice
doc_to_text: "{{ctx}}"
doc_to_choice: "{{endings}}"
doc_to_target: label
metric_list: [{metric: acc}, {metric: acc_norm}]
"""
ROLLING = """task: local_rolling
dataset_path: json
dataset_kwargs: {data_files: %s}
test_split: train
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: word_perplexity}, {metric: bits_per_byte}]
"""


def write_tasks(folder):
    """HellaSwag's shape: the right ending is what follows, the others follow elsewhere."""
    def ending(i):
        first = ITEM_WORDS * (i % N_ITEMS) + CONTEXT_WORDS
        return " ".join(WORDS[first:first + 6 + i % 5])

    rows = []
    for i in range(N_ITEMS):
        endings = [ending(i + 7 * k) for k in range(4)]
        label = i % 4
        rows.append({"ctx": " ".join(WORDS[ITEM_WORDS * i:ITEM_WORDS * i + CONTEXT_WORDS]),
                     "endings": endings[-label:] + endings[:-label], "label": label})
    lines = {"choice": rows, "rolling": [{"text": text} for text in TEXTS]}
    for name, yaml in ("choice", CHOICE), ("rolling", ROLLING):
        file = folder / f"{name}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in lines[name]))
        (folder / f"{name}.yaml").write_text(yaml % file)


def responses(results, task):
    """By item: what the model answered, as pairs or numbers."""
    return {sample["doc_id"]: [r[0] for r in sample["resps"]] for sample in results["samples"][task]}


def instances(texts):
    return [Instance("loglikelihood_rolling", {}, (text,), i) for i, text in enumerate(texts)]


class Harness(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        harness.register()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        write_tasks(cls.folder)
        cls.manager = TaskManager(include_path=str(cls.folder), include_defaults=False)

    def evaluate(self, model, args, tasks, **more):
        return lm_eval.simple_evaluate(model=model, model_args=args, tasks=tasks, bootstrap_iters=0,
                                       task_manager=self.manager, **more)

    def ours(self, tasks, **args):
        return self.evaluate("assay", {"model": str(Q4), "binary": ASSAY, **args}, tasks)

    def test_accuracies_are_those_of_the_programs_own_tasks(self):
        for precision in "high", "exact":
            with self.subTest(precision):
                document = self.folder / "hellaswag.json"
                done = run("perplexity", "-q", "-m", Q4, "-f", self.folder / "choice.jsonl",
                           "--hellaswag", "--precision", precision, "--json", document)
                self.assertEqual(done.returncode, 0, done.stderr)
                expected = json.loads(document.read_text())
                found = self.ours(["local_hellaswag"], precision=precision)
                figures = found["results"]["local_hellaswag"]
                self.assertEqual(figures["acc,none"], expected["result"]["acc"]["share"])
                self.assertEqual(figures["acc_norm,none"], expected["result"]["acc_norm"]["share"])
                print(f"{precision}: acc {figures['acc,none']:.4f}, acc_norm "
                      f"{figures['acc_norm,none']:.4f}, both ways")
                self.assertEqual({i: [sum_ for sum_, _ in r] for i, r in
                                  responses(found, "local_hellaswag").items()},
                                 {task["task"]: task["sums"] for task in expected["tasks"]})
                about = found["config"]["assay"]["loglikelihood"]
                self.assertEqual(about["settings"]["precision"], precision)
                self.assertEqual(about["model"]["id"], expected["model"]["id"])

    def test_command_line(self):
        done = subprocess.run(
            [sys.executable, "-B", "-m", "assay_gguf", "--model", "assay", "--model_args",
             f"model={Q4},binary={ASSAY},threads=1", "--tasks", "local_hellaswag,local_rolling",
             "--include_path", self.folder, "--output_path", self.folder / "out"],
            env={**os.environ, "PYTHONPATH": str(SOURCE / "python")}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("|local_hellaswag|", done.stdout)
        self.assertIn("|local_rolling", done.stdout)
        (file,) = (self.folder / "out").rglob("results_*.json")
        self.assertEqual(json.loads(file.read_text())["results"]["local_hellaswag"]["acc,none"],
                         self.ours(["local_hellaswag"])["results"]["local_hellaswag"]["acc,none"])

    def test_a_server_gives_the_same(self):
        tasks = ["local_hellaswag", "local_rolling"]
        mine = self.ours(tasks, ctx_size=N_CTX * 4)
        with Server(ASSAY, "-m", Q4) as server:
            other = self.evaluate("assay", {"base_url": f"http://127.0.0.1:{server.port}",
                                            "ctx_size": N_CTX * 4}, tasks)
        for task in tasks:
            self.assertEqual(responses(mine, task), responses(other, task))
            self.assertEqual(mine["results"][task], other["results"][task])

    def remote(self, server, tasks, **args):
        """local-completions, with the tokenizer of the server and none of Hugging Face's."""
        args = {"base_url": f"http://127.0.0.1:{server.port}/v1/completions", "model": Q4.name,
                "max_length": 256, "batch_size": 8, **args}
        return self.evaluate("local-completions", args, tasks)

    def test_local_completions_take_the_servers_tokenizer(self):
        """As texts the server puts BOS in front; ids are evaluated as they stand."""
        for name in "aiohttp", "requests", "tenacity":
            if not importlib.util.find_spec(name):
                self.skipTest(f"{name} is needed: lm_eval[api]")
        with Server(ASSAY, "-m", Q4) as server:
            for task, more, options in (
                    ("local_hellaswag", {"tokenized_requests": False}, {}),
                    ("local_hellaswag", {}, {"bos": "never"}),
                    # The harness takes two of the length for itself.
                    ("local_rolling", {"max_length": N_CTX + 2}, {"ctx_size": N_CTX})):
                with self.subTest(task=task, **more):
                    found, expected = self.remote(server, [task], **more), self.ours([task], **options)
                    if task == "local_hellaswag":
                        self.assertEqual(found["results"], expected["results"])
                        self.assertEqual(responses(found, task), responses(expected, task))
                        continue
                    # It adds up the windows first.
                    for (a,), (b,) in zip(responses(found, task).values(),
                                          responses(expected, task).values()):
                        self.assertLess(abs(a - b), 1e-12 * abs(b))

    def test_a_chat_template_is_the_models_own(self):
        """By the server as by the harness's jinja2; BOS, which it writes, stands in front once."""
        template = ("{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}"
                    "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}")
        with Server(ASSAY, "-m", Q4, "--override-kv",
                    f"tokenizer.chat_template=str:{template}") as server:
            url = f"http://127.0.0.1:{server.port}"
            found = self.evaluate("assay", {"base_url": url}, ["local_hellaswag"],
                                  apply_chat_template=True, system_instruction="Be brief.")
            self.assertEqual(harness.AssayLM(base_url=url).chat_template(True), template)
            tokenizer = RemoteTokenizer(url)
            sent = [s["arguments"][0][0] for s in found["samples"]["local_hellaswag"]]
            docs = [s["doc"] for s in found["samples"]["local_hellaswag"]]
            for text, doc in zip(sent, docs):
                messages = [{"role": "system", "content": "Be brief."},
                            {"role": "user", "content": doc["ctx"]}]
                self.assertEqual(text, tokenizer.apply_chat_template(messages, bos_token="<s>",
                                                                     eos_token="</s>"))
            ids = server.post("/tokenize", {"prompt": sent[0]}).json["tokens"]
            self.assertEqual((ids.count(1), ids.count(2)), (1, 2))
            # The first choice, token by token.
            first = found["samples"]["local_hellaswag"][0]
            whole = server.post("/tokenize", {"prompt": "".join(first["arguments"][0])}).json["tokens"]
            body = {"prompt": whole, "max_tokens": 0, "echo": True, "logprobs": 0}
            listed = server.post("/v1/completions", body).json["choices"][0]["logprobs"]
            self.assertEqual(sum(listed["token_logprobs"][len(ids):]), first["resps"][0][0][0])

    def test_windows_are_the_harnesss_own(self):
        """get_rolling_token_windows cuts the ids; the server scores each window as ids."""
        found = harness.AssayLM(model=Q4, binary=ASSAY, ctx_size=N_CTX).loglikelihood_rolling(
            instances(TEXTS))
        n_windows = 0
        with Server(ASSAY, "-m", Q4) as server:
            for text, score in zip(TEXTS, found):
                ids = json.loads(run("tokenize", "-m", Q4, "-p", text, "--ids",
                                     "--no-parse-special").stdout)
                windows = list(get_rolling_token_windows(ids[1:], ids[0], N_CTX, 1))
                body = {"prompt": [inputs + scored[-1:] for inputs, scored in windows],
                        "max_tokens": 0, "echo": True, "logprobs": 0}
                choices = server.post("/v1/completions", body).json["choices"]
                expected = 0.0
                for (_, scored), choice in zip(windows, choices):
                    for log_prob in choice["logprobs"]["token_logprobs"][-len(scored):]:
                        expected += log_prob
                n_windows += len(windows)
                self.assertEqual(score, expected)
        self.assertGreater(n_windows, 2 * len(TEXTS))

    def test_answers_are_kept_in_the_harnesss_cache(self):
        runs, counting = self.folder / "runs", self.folder / "counting"
        counting.write_text(f'#!/bin/sh\necho >>{runs}\nexec {ASSAY} "$@"\n')
        counting.chmod(0o755)
        first, again = (self.evaluate("assay", {"model": str(Q4), "binary": str(counting)},
                                      ["local_hellaswag"], use_cache=str(self.folder / "cache"))
                        for _ in range(2))
        self.assertEqual(first["results"]["local_hellaswag"], again["results"]["local_hellaswag"])
        self.assertEqual(len(runs.read_text()), 3)  # two models are opened, and scores once

    def test_refusals(self):
        lm = harness.AssayLM(model=Q4, binary=ASSAY)
        with self.assertRaisesRegex(AssayError, "does not write them"):
            lm.generate_until([])
        with self.assertRaisesRegex(AssayError, "chat template is applied by a server"):
            self.evaluate(lm, None, ["local_hellaswag"], apply_chat_template=True)
        with self.assertRaisesRegex(AssayError, "expected model=FILE or base_url=URL"):
            harness.AssayLM()
        with self.assertRaisesRegex(AssayError, "unknown option --foo"):
            self.ours(["local_rolling"], foo=3)
        self.assertEqual(lm.tokenizer_name, "assay/" + Q4.name)
        self.assertEqual(lm.loglikelihood([]), [])

    def test_entry_point(self):
        """As versions after 0.4.13 find it."""
        text = (SOURCE / "python" / "pyproject.toml").read_text()
        (value,) = re.findall(r'^\[project\.entry-points\."lm_eval\.models"\]\nassay = "(.*)"$', text, re.M)
        models = Registry("model", base_cls=LM)
        models.register("assay", target=EntryPoint("assay", value, "lm_eval.models"))
        self.assertIs(models.get("assay"), harness.AssayLM)

    def hf(self, gguf, **more):
        """The harness's own run of the weights in float32, by transformers."""
        try:
            import torch
            from lm_eval.models.huggingface import HFLM
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            self.skipTest(f"torch and transformers are needed ({error})")
        torch.set_num_threads(1)
        names = {"gguf_file": gguf.name}
        read = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **names)
        if hasattr(read.config, "quantization_config"):
            del read.config.quantization_config
        model = type(read)(read.config).to(torch.float32).eval()  # else it passes for quantised
        model.load_state_dict({name: p.to(torch.float32) for name, p in read.state_dict().items()})
        return HFLM(pretrained=model, device="cpu", batch_size=16,
                    tokenizer=AutoTokenizer.from_pretrained(gguf.parent, **names), **more)

    def test_beside_transformers_in_float32(self):
        for gguf in F16, Q4:
            with self.subTest(gguf.name):
                theirs = self.evaluate(self.hf(gguf), None, ["local_hellaswag"])
                mine = self.ours(["local_hellaswag"], model=str(gguf), precision="exact")
                self.assertEqual(mine["results"], {**theirs["results"]})
                pairs = [(a, b) for i, row in responses(theirs, "local_hellaswag").items()
                         for a, b in zip(row, responses(mine, "local_hellaswag")[i])]
                self.assertEqual(len(pairs), 4 * N_ITEMS)
                self.assertEqual([a[1] for a, _ in pairs], [b[1] for _, b in pairs])
                largest = max(abs(a[0] - b[0]) for a, b in pairs)
                print(f"{gguf.name}: {len(pairs)} choices, log-probabilities differ by at most "
                      f"{largest:.2g}; the same greedy flags, the same accuracies")
                self.assertLess(largest, 1e-4)

    def test_rolling_beside_transformers_in_float32(self):
        """Without a BOS of the tokeniser's, which the harness would score."""
        theirs = self.hf(F16, add_bos_token=False, max_length=N_CTX).loglikelihood_rolling(
            instances(TEXTS))
        mine = harness.AssayLM(model=F16, binary=ASSAY, precision="exact",
                               ctx_size=N_CTX).loglikelihood_rolling(instances(TEXTS))
        largest = max(abs(a - b) for a, b in zip(theirs, mine))
        print(f"{len(TEXTS)} texts in windows of {N_CTX}: differ by at most {largest:.2g}")
        self.assertLess(largest, 1e-3)


if __name__ == "__main__":
    unittest.main(argv=["test_lm_eval", *sys.argv[3:]])
