#!/usr/bin/env python3
"""docs/schema/assay.schema.json and what the program writes: every document is what the schema says,
every member of the schema is in a document, and a member that it has not is found.

usage: test_json_schema.py ASSAY SOURCE_DIR
"""
import copy
import json
import pathlib
import random
import shutil
import sys
import tempfile
import unittest

import gguf_make as g
import imatrix_make as imatrix
import shards
from documents import OF_SERVERS, SCHEMA, errors, jsonschema, members, seen
from program import ASSAY, F16, Q4, SOURCE, TEXT, run
from serving import Server
from vocabularies import enlarged, padding, random_rows

sys.path.append(str(SOURCE / "tests" / "random_models"))
import architectures  # noqa: E402
import folders  # noqa: E402
import formats  # noqa: E402
import rewrite  # noqa: E402

TASKS = SOURCE / "tests" / "data" / "tasks"
WINDOWS = ["-c", "32", "--chunks", "2"]
TEXTS = ["-f", TEXT, *WINDOWS]
IQ2_K, IQ2_K_BYTES = 137, 76  # ik_llama.cpp's own; bytes of 256 weights
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.content | trim }}{{ eos_token }}{% endfor %}"
DOCUMENTS = [{"text": "The war ended in 1918 . He lets it cool on a rack .", "id": 7, "category": "a"},
             {"text": "In the town there was a river and many ships .", "category": "b"},
             {"messages": [{"role": "user", "content": "Where?"},
                           {"role": "assistant", "content": "In the harbour, at sea."}]}]
HYPERPARAMETERS = ["block_count", "nextn_predict_layers", "embedding_length", "feed_forward_length", "attention.head_count",
                   "attention.head_count_kv", "attention.key_length", "expert_count",
                   "expert_used_count", "context_length", "attention.sliding_window",
                   "attention.layer_norm_rms_epsilon", "rope.dimension_count", "rope.freq_base",
                   "rope.scaling.type", "rope.scaling.factor", "vocab_size"]
# What this machine cannot make: OpenBLAS may be missing, and a checkout without its history; files
# that were just written are in memory.
ELSEWHERE = {"/$defs/run/properties/versions/properties/openblas",
             "/$defs/run/properties/versions/properties/commit",
             "/$defs/assay-plan/properties/trial/properties/disk_bytes_per_second"}
# The serving program may be built without libmicrohttpd.
OF_SERVER = {"/$defs/model/properties/swapped/items/properties/file"}


def made(*words, codes=(0,), **more):
    """The document that a command writes to its standard output."""
    done = run(*words, "--json", "-", **more)
    if done.returncode not in codes:
        raise AssertionError(f"{words}: {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def write(path, document):
    path.write_text(json.dumps(document))
    return path


def write_nan(path):
    """A model that computes NaN from some token of the second window on."""
    ids = json.loads(run("tokenize", "-m", F16, "-f", TEXT, "--ids").stdout)
    token = next(i for i in ids[48:] if i not in ids[:48])
    listed = json.loads(run("info", "--json", "--tensors", F16).stdout)["tensors"]
    table = next(t for t in listed if t["name"] == "token_embd.weight")
    row = 2 * table["ne"][0]
    data = bytearray(F16.read_bytes())
    at = table["offset"] + token * row
    data[at:at + row] = b"\x00\x7e" * table["ne"][0]
    path.write_bytes(data)


def of_texts(folder):
    """What perplexity and kld write, with all that a text, its windows and the settings can add."""
    yield made("perplexity", "-m", Q4, *TEXTS, "--context-curve", "-ctk", "q8_0,layers 0-1:f16",
               "-ctv", "fp8_e4m3@calibrated", "--activations",
               "q8_1", "--hash-model", "--override-kv", "a.b=int:3", "--state", folder / "s", "--rope-scaling", "yarn",
               "--rope-scale", "1", "--rope-freq-base", "10000", "--yarn-orig-ctx", "256",
               "--yarn-ext-factor", "0", "--yarn-attn-factor", "1", "--yarn-beta-fast", "32",
               "--yarn-beta-slow", "1")
    yield made("perplexity", "-m", Q4, "-p", TEXT.read_text()[:2000], *WINDOWS, "--rope-freq-scale", "1",
               "--stop-when-se", "1e-9")
    (folder / "utf-16").write_bytes("\ufeffOne line ,\r\nthen another of the town .\r\n".encode("utf-16le") * 5)
    yield made("perplexity", "-m", Q4, "-f", folder / "utf-16", "-c", "8", "--chunks", "2")
    (folder / "bytes").mkdir()
    (folder / "bytes" / "a.txt").write_bytes((folder / "utf-16").read_bytes())
    (folder / "bytes" / "b.jsonl").write_text("".join(json.dumps(d) + "\n" for d in DOCUMENTS))
    documents = ["-f", folder / "bytes", "-c", "32", "--chat-template", TEMPLATE, "--context-curve"]
    yield made("perplexity", "-m", Q4, *documents)
    yield made("kld", "-m", Q4, "--base", F16, *documents)
    write_nan(folder / "nan.gguf")
    yield made("perplexity", "-m", folder / "nan.gguf", "-f", TEXT, "-c", "32", "--chunks", "9", codes=(1,))
    yield made("kld", "-m", Q4, "-m", F16, "--base", F16, *TEXTS, "--js", "--worst", "2",
               "--context-curve", "--stop-when-se", "1e-9", "--hash-model",
               "--label", "a", "--label", "b")
    padded = folder / "padded.gguf"
    padded.write_bytes(enlarged(F16, padding(2048, 1), random_rows(F16, 1)))
    yield made("kld", "-m", padded, "--base", F16, *TEXTS)


def of_recordings(folder):
    """What record and those that read its files write."""
    compact, logits = folder / "compact", folder / "logits"
    yield made("record", "-m", F16, *TEXTS, "--hidden", "f16", "--hash-model", "-o", compact)
    yield made("kld", "-m", Q4, "--base", compact, "--hash-model")
    described = compact.read_bytes()
    described = described[described.index(b'{\n\t"schema"'):].decode(errors="replace")
    yield json.JSONDecoder().raw_decode(described)[0]
    yield made("record", "-m", F16, *TEXTS, "--format", "logits", "-o", logits)
    yield made("kld", "-m", Q4, "--base", logits, "--hash-model")
    yield made("check", "-m", F16, "--base", logits, "--worst", "2", "--context-curve",
               "--max-kld", "1", "--max-beyond", "1")
    yield made("check", "-m", folder / "nan.gguf", "--base", logits, codes=(1, 2))
    # Angles that are off depart at the end of long windows, which is the place that is named.
    old, new = folder / "old.kld", folder / "new.kld"
    longer = ("-m", Q4, "-f", TEXT, "-c", "256", "--chunks", "3")
    yield made("record", *longer, "--format", "logits", "-o", old)
    yield made("record", *longer, "--format", "logits", "-o", new, "--rope-freq-base", "10020")
    yield made("check", "-m", Q4, "--base", new, "--against", old, "--or", F16, "--resolve", "1e-4",
               codes=(0, 1, 2))
    yield made("check", "-m", Q4, "--base", new, "--again", old, codes=(0, 1, 2))


def of_best(folder):
    """What best writes: a file that fits, and one that does not; a plan of it."""
    listed = json.loads(run("info", "--json", "--tensors", F16).stdout)["tensors"]
    data = bytearray(F16.read_bytes())
    data[listed[0]["offset"]] ^= 1
    (folder / "other.gguf").write_bytes(data)
    words = ["best", "--base", F16, Q4, folder / "other.gguf", "-f"]
    yield made(*words, TEXT, "-c", "32", "--chunks", "3", "--memory", "4MiB", "--context", "10")
    yield made(*words, TEXT, "-c", "32", "--chunks", "9", "--size", "1GB")
    (folder / F16.name).write_bytes(data)
    yield made("best", "--base", F16, Q4, folder / F16.name, "-f", TEXT, "-c", "32", "--chunks", "2", "--speed",
               "2000", "--prompt-speed", "8000", "--bench",
               SOURCE / "tests" / "data" / "bench" / "llama-bench.json")
    yield json.loads(run("plan", "--seconds", "1", "--json", "-", *words, TEXT, "-c", "32",
                         "--chunks", "9").stdout)
    yield made(*words, folder / "utf-16", "-c", "8", "--chunks", "2")


def of_explanations(folder):
    """What explain writes, of a text with doubts, beside a recording, with a compact base."""
    recorded, base = folder / "rounded.kld", folder / "explained.base"
    (folder / "cr").write_bytes(TEXT.read_bytes()[:3000].replace(b"\n", b"\r\n"))
    text = ["-f", folder / "cr", "-c", "32", "--chunks", "2"]
    run("perplexity", "-q", "-m", Q4, *text, "--kl-divergence-base", recorded, "--activations", "engine")
    run("record", "-q", "-m", F16, *text, "-o", base)
    yield made("explain", "-m", Q4, "--base", F16, *text[:2], "--recorded", recorded)
    yield made("explain", "-m", Q4, "--base", base, *text[:2])


def of_drafts(folder):
    """What draft writes of a random model that has a block for the token after the next."""
    rng, generated = random.Random("drafts"), None
    while not generated or not generated.n_next:
        generated = architectures.generate(rng, "glm4moe")
    (folder / "draft").mkdir()
    file = rewrite.write(folder / "draft", generated.pairs, generated.tensors)
    (folder / "draft" / "text").write_text(generated.text(40)[0])
    yield made("draft", file, "-f", folder / "draft" / "text", "-c", "8")


def of_matrices(folder):
    """What imatrix writes: of a mixture that has experts with few rows."""
    generated = architectures.generate(random.Random("matrices"), "qwen3moe")
    (folder / "imatrix").mkdir()
    file = rewrite.write(folder / "imatrix", generated.pairs, generated.tensors)
    (folder / "imatrix" / "text").write_text(generated.text(40)[0])
    words = ["imatrix", file, "-f", folder / "imatrix" / "text", "-c", "8", "-o", folder / "matrices"]
    yield made(*words)
    n_experts = next(value for key, _, value, _ in generated.pairs if key.endswith(".expert_count"))
    yield made(*words, "--no-ppl", "--experts-used", str(n_experts), "--llama-compat", "-b", "8")
    yield made("imatrix", Q4, "-f", SOURCE / "cli" / "imatrix", "-c", "8", "--chunks", "33", "--stop-when-rows", "1",
               "--stop-when-change", "0.5", "-o", folder / "matrices")
    yield made("imatrix", Q4, "-f", folder / "utf-16", "-c", "8", "--chunks", "2", "-o", folder / "matrices")


def of_conversions(folder):
    """What check writes of a file and the folder that it was converted from, or a recipe."""
    model = folders.Folder(random.Random("conversions"), folders.qwen3)
    model.write(folder / "converted", 1)
    (folder / "words").write_text(model.vocabulary.text(40)[0])
    named = {t.name: t for t in model.tensors}
    named["output_norm.weight"], named["blk.0.attn_norm.weight"] = (
        formats.Tensor.of(a, named[b].values()) for a, b in
        (("output_norm.weight", "blk.0.attn_norm.weight"), ("blk.0.attn_norm.weight", "output_norm.weight")))
    del named["blk.1.ffn_up.weight"]
    model.keys["rope.freq_base"] = 10.0
    file = rewrite.write(folder, model.gguf_pairs(), named.values(), name="converted.gguf")
    yield made("check", "-m", file, "--base", folder / "converted", codes=(1,))
    yield made("check", "-m", file, "--recipe", "ffn_down=q2_K", codes=(1,))
    yield made("compare", F16, Q4, "--base", F16)
    yield made("compare", file, Q4)
    model.keys["rope.freq_base"] = 1000.0
    file = rewrite.write(folder, model.gguf_pairs(), model.tensors, name="converted.gguf")
    yield made("check", "-m", file, "--base", folder / "converted", "-f", folder / "words", "-c", "8")
    model.others["tokenizer.chat_template"] = "{{ raise_exception('no') }}"
    file = rewrite.write(folder, model.gguf_pairs(), model.tensors, name="refusing.gguf")
    yield made("check", "-m", file, "--base", file)


def of_choices(folder):
    """What choice tasks and requests give."""
    for kind, name in (("hellaswag", "hellaswag.txt"), ("winogrande", "winogrande.csv")):
        yield made("perplexity", "-m", Q4, "-f", TASKS / name, "--" + kind)
    truths = write(folder / "mc2", {"question": "Is it far", "mc2_targets": {"yes it is": 1, "no": 0}})
    yield made("perplexity", "-m", Q4, "-f", truths, "--mc2")
    goals = write(folder / "piqa", {"goal": "Go on", "sol1": "and on", "sol2": "then stop"})
    (folder / "labels").write_text("1\n")
    yield made("perplexity", "-m", Q4, "-f", goals, "--multiple-choice", "--task-labels", folder / "labels")
    line = write(folder / "requests", {"context": "In the town", "continuation": " ships"})
    yield made("score", "-m", Q4, line, "-o", folder / "scores")


def of_sweeps(folder):
    """What sweep writes, and recipe of it."""
    sweep = made("sweep", "--base", F16, "--from", Q4, "--around", Q4, "--from", F16, *TEXTS,
                 "--group", "attn_(q|k)")
    yield sweep
    yield json.loads(run("plan", "--seconds", "1", "--json", "-", "sweep", "--base", F16, "--from", Q4,
                         *TEXTS, "--state", folder / "planned").stdout)
    yield made("sweep", "--base", F16, "--from", Q4, "-f", folder / "utf-16", "-c", "8", "--chunks", "2",
               "--by", "layer")
    swept = made("sweep", "--base", F16, "--from", Q4, *TEXTS, "--by", "tensor", "--hash-model")
    yield swept
    path = write(folder / "sweep.json", swept)
    for limit in (["--size", "4MiB"], ["--bpw", "6"], ["--kld", "1"]):
        yield made("recipe", path, *limit)


def of_comparisons(folder, documents):
    """What compare writes of one document and itself. documents: all others."""
    for schema, more in (("assay-perplexity", []), ("assay-tasks", []),
                         ("assay-kld", ["--candidate-a", "1", "--candidate-b", "1"])):
        path = write(folder / "c.json", next(d for d in documents if d["schema"] == schema))
        yield made("compare", path, path, *more)


def of_files(folder):
    """What info writes, and a model in types that one program has alone gives."""
    pairs = [g.pair("general.architecture", g.STRING, "llama"),
             *(g.pair("llama." + key, g.U32, 1) for key in HYPERPARAMETERS),
             g.pair("long", g.ARRAY, range(65), g.I32), g.pair("text", g.STRING, "x" * 70000)]
    (folder / "all.gguf").write_bytes(g.gguf(pairs, [("x", 4242, [256], b"")]))
    yield json.loads(run("info", folder / "all.gguf", "--json", "--tensors").stdout)
    a, b = ({"blk.0.x_exps.w": ([3, n, 0], [[imatrix.ONE] * 2, [n * imatrix.ONE] * 2, [0] * 2])} for n in (0, 2))
    (folder / "a.imatrix").write_bytes(imatrix.exact(a, [0, 0, 1], use={"c": {"blk.0.x_exps.w": [3, 0, 0]}}))
    (folder / "b.imatrix").write_bytes(imatrix.plain({**b, "blk.1.x_exps.w": b["blk.0.x_exps.w"]}))
    yield json.loads(run("info", folder / "a.imatrix", "--json").stdout)
    yield json.loads(run("info", folder / "b.imatrix", "--json").stdout)
    yield made("compare", folder / "a.imatrix", folder / "b.imatrix")
    yield made("compare", folder / "b.imatrix", folder / "a.imatrix")
    pairs, n, tensors = shards.contents(F16)
    name = "blk.0.attn_k.weight"
    tensors = [(t[0], IQ2_K, t[2], bytes(IQ2_K_BYTES * t[2][0] * t[2][1] // 256)) if t[0] == name else t
               for t in tensors]
    pairs = [pairs, g.pair("tokenizer.ggml.merges", g.ARRAY, ["t h"], g.STRING), *[b""] * (n - 1),
             *[g.pair(f"general.base_model.0.{key}", g.STRING, key) for key in ("name", "url")]]
    (folder / "ik.gguf").write_bytes(g.gguf(pairs, tensors))
    yield json.loads(run("info", folder / "ik.gguf", "--json", "--context", "64").stdout)
    yield made("perplexity", "-m", folder / "ik.gguf", *TEXTS, "--tokenizer-pre", "llama-bpe",
               "--override-kv", "tokenizer.ggml.model=str:gpt2")
    model = folders.Folder(random.Random(1), folders.qwen3)
    model.write(folder / "published", 1)
    file = rewrite.write(folder, model.gguf_pairs(), model.tensors)
    yield json.loads(run("info", folder / "published", "--json").stdout)
    yield made("perplexity", "-m", folder / "published", "--tokenizer", file, "-c", "8", "-p",
               model.vocabulary.text(40)[0])


def of_swaps(folder):
    """A run whose files a script replaces."""
    files, other = shards.split(F16), shards.split(Q4)
    names = [shards.part_name("part", i, len(files)) for i in range(len(files))]
    for name, data in zip(names, files):
        (folder / name).write_bytes(data)
    (folder / "other").write_bytes(other[1])
    done = run("perplexity", "-m", folder / names[0], *TEXTS, "-q", "--json", "swapped.json",
               "--watch-script", f"[ -e other ] && mv other {names[1]} && touch {names[1]}",
               cwd=folder)
    if done.returncode:
        raise AssertionError(done.stderr)
    yield json.loads((folder / "swapped.json").read_text())


def of_server(folder):
    """What a server gives; nothing where the program was built without it."""
    with Server(ASSAY, "-m", Q4, "-f", TEXT, "--state-dir", folder) as server:
        if not server.port:
            return
        server.post("/v1/swap", {"tensor": "blk.0.attn_k.weight", "file": str(F16)})
        yield server.post("/perplexity", {"ctx_size": 32, "chunks": 2}).json["document"]
        server.post("/perplexity/save", {"name": "state"})
    yield json.loads((folder / "state.json").read_text())


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-schema-"))
        cls.addClassCleanup(shutil.rmtree, folder)
        documents = [document for make in (of_texts, of_recordings, of_best, of_explanations, of_drafts, of_matrices, of_conversions,
                                           of_choices, of_sweeps, of_files, of_swaps, of_server) for document in make(folder)]
        cls.documents = documents + list(of_comparisons(folder, documents))

    def test_the_schema_is_one(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_documents_are_what_it_says(self):
        for document in self.documents:
            with self.subTest(document["schema"]):
                self.assertEqual(errors(document), [])

    def test_each_member_is_in_a_document(self):
        found = {at for document in self.documents for at in seen(document, "/$defs/" + document["schema"])}
        never = set(members()) - found - ELSEWHERE
        if "assay-perplexity-state" not in {document["schema"] for document in self.documents}:
            never -= {at for at in never if at.startswith("/$defs/assay-perplexity-state/")} | OF_SERVER
        never = {at for at in never if not at.startswith(OF_SERVERS)}  # their own tests have them
        # Null where there are as few windows as here; all are required.
        never = {at for at in never if not at.endswith(("_lot_error", "/lot_se"))}
        self.assertEqual(never, set())

    def test_unknown_members_are_found(self):
        """In each object of a document, the first ones of lists, and of another kind or version."""
        def objects(value, at=()):
            if isinstance(value, dict):
                yield at
                for key, inner in value.items():
                    yield from objects(inner, (*at, key))
            elif isinstance(value, list) and value:
                yield from objects(value[0], (*at, 0))

        for schema in {document["schema"] for document in self.documents}:
            document = next(d for d in self.documents if d["schema"] == schema)
            for at in objects(document):
                if schema == "assay-recipe" and at[-1:] == ("groups",):
                    continue  # a member for each type
                changed = copy.deepcopy(document)
                inner = changed
                for key in at:
                    inner = inner[key]
                inner["undocumented"] = 1
                self.assertNotEqual(errors(changed), [], (schema, at))
            self.assertNotEqual(errors(document | {"schema_version": 2}), [])
            self.assertNotEqual(errors(document | {"schema": "assay." + schema}), [])
            some = dict(document)
            del some[list(some)[2]]
            self.assertNotEqual(errors(some), [])


if __name__ == "__main__":
    if not jsonschema:
        print("python3-jsonschema is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
