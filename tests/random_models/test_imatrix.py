#!/usr/bin/env python3
"""assay imatrix of random models, against sums of squares in double precision: every architecture,
the experts of mixtures, heads of latent attention; counts to the row; the same bytes of other
batches, threads and instruction sets; the rows that masks name; the block that predicts the token
after the next; which matrices are said to have no entry.

usage: test_imatrix.py ASSAY SOURCE_DIR [COUNT [FIRST_SEED [ARCHITECTURE...]]]
       (`all`: every architecture)
"""
import collections
import json
import math
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
import drafts  # noqa: E402
from evaluate import Evaluation  # noqa: E402
import rewrite  # noqa: E402

# Of a tensor's largest sum. Inputs of products are float32 and come from float32.
TOLERANCE = 1e-5
USUAL = "qwen3moe", "gemma4", "qwen3next", "deepseek2", "gemma3n", "deepseek32", "kimi-k3", "glm4moe", "qwen35", \
    "step35", "glm5-next", "llama"
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
F32, I64, STRING, ARRAY = 0, 27, 8, 9


def read(path):
    """{name: (counts, sums of all matrices, one after the other)} and the keys of a file."""
    data = path.read_bytes()
    at = 24
    n_tensors, n_keys = struct.unpack_from("<QQ", data, 8)

    def take(kind):
        nonlocal at
        if kind == STRING:
            (n,) = struct.unpack_from("<Q", data, at)
            at += 8 + n
            return data[at - n:at].decode()
        if kind == ARRAY:
            element, n = struct.unpack_from("<IQ", data, at)
            at += 12
            return [take(element) for _ in range(n)]
        at += SIZES[kind]
        return int.from_bytes(data[at - SIZES[kind]:at], "little")
    keys = {}
    for _ in range(n_keys):
        name = take(STRING)
        keys[name] = take(take(4))
    tensors = {}
    for _ in range(n_tensors):
        name = take(STRING)
        ne = [take(10) for _ in range(take(4))]
        kind, offset = take(4), take(10)
        tensors[name] = ne, kind, offset
    start = (at + 31) // 32 * 32

    def values(name):
        ne, kind, offset = tensors[name]
        assert kind == F32
        n = ne[0] * (ne[1] if len(ne) > 1 else 1)
        return struct.unpack_from(f"<{n}f", data, start + offset)
    names = [name.removesuffix(".counts") for name in tensors if name.endswith(".counts")]
    return {name: (values(name + ".counts"), values(name + ".in_sum2")) for name in names}, keys


class Sums:
    """The same in double precision: {name: {matrix: [rows, sums]}}."""

    def __init__(self, model, tensors):
        self.model, self.of = model, collections.defaultdict(dict)
        self.n_rows = {t.name: t.ne[1] if len(t.ne) > 1 else 1 for t in tensors}
        self.n_matrices = {t.name: t.ne[2] if len(t.ne) > 2 else 1 for t in tensors}
        self.product, self.heads, self.attend = model.product, model.heads, model.attend
        model.product, model.heads, model.attend = self.see_product, self.see_heads, self.see_attend

    def add(self, name, matrix, row):
        rows, sums = self.of[name].get(matrix, (0, [0.0] * len(row)))
        self.of[name][matrix] = rows + 1, [s + v * v for s, v in zip(sums, row)]

    def see_product(self, name, x, first=0, *more, **named):
        weight = name + ".weight"
        if weight.startswith("blk.") and not weight.endswith("attn_v_b.weight"):
            matrix, row = divmod(first, self.n_rows[weight])
            for r in x if row == 0 else []:
                self.add(weight, matrix, r)
        if name.endswith("attn_v_b"):  # where queries meet compressed rows it reads what they give
            self.compressed = x
        return self.product(name, x, first, *more, **named)

    def latent(self, i):
        return hasattr(self.model, "compressed") and f"blk.{i}.attn_k_b.weight" in self.n_rows

    def see_heads(self, i, h):
        q, k, v = self.heads(i, h)
        if self.latent(i):
            size = self.model.columns[f"blk.{i}.attn_k_b.weight"]
            for p, row in enumerate(q):
                by = self.model.query_factor(i, p)
                for n, head in enumerate(row):
                    self.add(f"blk.{i}.attn_k_b.weight", n, [by * x for x in head[:size]])
        return q, k, v

    def see_attend(self, i, q, k, v):
        if self.latent(i):
            wide = [[row] * len(k[0]) for row in self.compressed]
            for row in self.attend(i, q, k, wide):
                n = len(wide[0][0])
                for head in range(len(row) // n):
                    self.add(f"blk.{i}.attn_v_b.weight", head, row[head * n:head * n + n])
        return self.attend(i, q, k, v)


def words_of(assay, file, text, n, out, *more):
    return [assay, "imatrix", "-m", file, "-f", text, "-c", str(n), "-o", out, "--precision", "exact", *more]


def run(*words):
    """What a command says beside its output."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"exit code {done.returncode}: {done.stderr}")
    return done.stderr


def collect(assay, file, text, n, *more):
    out = file.parent / "imatrix.gguf"
    run(*words_of(assay, file, text, n, out, "-q", *more))
    return out


def factor(model, part):
    """Of constants that are part of an input there and of the product here (docs/imatrix.md)."""
    if model.arch == "mimo2" and part == "attn_output":
        return (model.k.get("attention.value_scale") or 1.0) ** -2
    return {"proj": 2.0, "altup_router": model.width ** 2.0}.get(part, 1.0)


def expected(name, counts, n, sums):
    """What double precision has: rows and sums of each matrix."""
    if name.endswith("ffn_gate_inp_shexp.weight"):  # no product there; it reads what the expert reads
        name = name.replace("gate_inp_shexp", "up_shexp")
    right = [sums.of[name].get(m, (0, [0.0] * n)) for m in range(len(counts))]
    times = max(1, max(rows for rows, _ in right) // int(max(counts)))  # it computes some products twice
    by = factor(sums.model, name.removesuffix(".weight").split(".", 2)[-1]) / times
    return [(rows // times, [by * s for s in row]) for rows, row in right]


def compare(found, sums, n_tokens):
    """The largest difference, as a share of the tensor's largest sum."""
    worst = 0.0
    for name in set(found) | set(sums.of):
        if name not in found:
            raise ValueError(f"{name} is missing")
        counts, values = found[name]
        if sums.model.arch == "gemma4" and name.endswith("ffn_gate_inp.weight"):
            if counts != (n_tokens,):  # double precision has no product there
                raise ValueError(f"{name}: rows {counts}, expected {n_tokens}")
            continue
        right = expected(name, counts, len(values) // len(counts), sums)
        if list(counts) != [rows for rows, _ in right]:
            raise ValueError(f"{name}: rows {counts}, expected {[rows for rows, _ in right]}")
        most = max(max(s) for _, s in right) or 1.0
        off = max(abs(a - b) for a, b in zip(values, sum((s for _, s in right), [])))
        if not off <= TOLERANCE * most:
            raise ValueError(f"{name}: off by {off:.3g} of {most:.3g}")
        worst = max(worst, off / most)
    return worst


def check_masks(assay, file, windows, n, rng):
    """Rows that a mask names and those that it leaves are those of documents one token shorter."""
    folder, masks = file.parent, [[rng.randint(0, 1) for _ in w] for w in windows]
    other = {"prompt": "x", "completion": ""}  # --mask wants a conversation; nothing of this one counts

    def matrices(name, documents, *more):
        text = folder / f"{name}.jsonl"
        text.write_text("".join(json.dumps(d) + "\n" for d in documents))
        return collect(assay, file, text, n, "--no-ppl", *more).rename(folder / name)

    def run(*words):
        return subprocess.run([assay, *words], capture_output=True, text=True, check=True).stdout
    parts = [matrices(f"part{k}", [other] + [{"ids": w, "mask": [b ^ k for b in m]} for w, m in zip(windows, masks)],
                      "--mask", "assistant", "-b", str(rng.randint(1, 40)))
             for k in (0, 1) if any(b ^ k for m in masks for b in m[1:])]
    shorter = matrices("shorter", [{"ids": w[:-1]} for w in windows])
    if len(parts) == 2:
        run("merge", *parts, "-o", folder / "both")
    said = run("compare", folder / "both" if len(parts) == 2 else parts[0], shorter)
    if "the same bits of sums and the same counts" not in said.splitlines()[0]:
        raise ValueError(f"masks: {said}")


def check_categories(assay, file, windows, n, rng):
    """Rows of experts by category are those of the category's documents alone."""
    def use(name, documents):
        text = file.parent / f"{name}.jsonl"
        text.write_text("".join(json.dumps(d) + "\n" for d in documents))
        words = "--no-ppl", "-b", str(rng.randint(1, 40)), "--state", file.parent / f"{name}.state"
        data = collect(assay, file, text, n, *words).read_bytes()
        path = collect(assay, file, text, n, *words)  # all of it from the state
        if path.read_bytes() != data:
            raise ValueError("categories: a state gives other bytes")
        said = subprocess.run([assay, "info", "--json", path], capture_output=True, text=True, check=True)
        return json.loads(said.stdout)["experts"]
    documents = [{"ids": w, "category": rng.choice("ab")} for w in windows]
    alone = {c: use(c, [{"ids": d["ids"]} for d in documents if d["category"] == c])
             for c in {d["category"] for d in documents}}
    for e in use("all", documents):
        for part in e["categories"]:
            rows = [x["rows"] for x in alone[part["category"]] if x["name"] == e["name"]]
            if rows not in ([part["rows"]], [] if not any(part["rows"]) else None):
                raise ValueError(f"categories: {e['name']} has {part}, expected {rows}")
        if len(e["categories"]) != len(alone):
            raise ValueError(f"categories: {e['categories']}, expected {sorted(alone)}")


def has_block(generated):
    """Whether there is a block after the layers whose form is known."""
    return generated.arch in drafts.KNOWN and generated.n_next > 0


# Names that llama-quantize (October 2026) leaves as they are.
KEPT = re.compile(r"(?<!weight)$|_norm\.weight|ffn_gate_inp\.weight|ffn_gate_tid2eid\.weight|altup|laurel|"
                  r"per_layer_model_proj|ssm_conv1d|shortconv\.conv\.weight|indexer\.[kq]_proj\.weight")
KEPT_OF = {"glm5-next": re.compile(
    r"hc_|indexer\.(attn_q_b|attn_k|proj)|indexer_compressor_(gate|ape)|ssm_[fg]_[ab]\.weight|ssm_beta\.weight|"
    r"attn_(kv_a_mqa|k_b|v_b)\.weight")}
ENDS = "token_embd.weight", "output.weight", "per_layer_token_embd.weight"


def treatment(arch, name):
    if KEPT.search(name) or (arch in KEPT_OF and KEPT_OF[arch].search(name)):
        return "kept"
    return "alike" if name in ENDS else "stops"


def check_listed(assay, file, text, n, found, generated, *more):
    """The matrices without an entry, and what becomes of them. Returns the document."""
    document = file.parent / "result.json"
    said = run(*words_of(assay, file, text, n, file.parent / "imatrix.gguf", "--json", document, *more))
    result = json.loads(document.read_text())
    listed = {e["name"]: e["llama_quantize"] for e in result["without_entry"]}
    names = {t.name for t in generated.tensors if math.prod(t.ne[1:]) > 1} - set(found)
    right = {name: treatment(generated.arch, name) for name in names}
    if listed != right:
        raise ValueError(f"without entries or listed, not both: {sorted(set(listed.items()) ^ set(right.items()))}")
    unforeseen = any(re.search(r"ffn_[a-z]+\.\d", name) for name in listed)  # an expert without rows
    if unforeseen != ("no row counted, so no entry, for blk." in said):
        raise ValueError(f"of {sorted(listed)} is said: {said}")
    return result


def check_block(assay, file, text, n, found, generated):
    """Without the block the other entries are the same; matrices without one are listed."""
    block = f"blk.{generated.n_layers}."
    collected = any(name.startswith(block) for name in found)
    if collected != has_block(generated):
        raise ValueError(f"{block}: entries {sorted(found)}")
    left = read(collect(assay, file, text, n, "--no-nextn"))[0]
    if left != {name: of for name, of in found.items() if not name.startswith(block)}:
        raise ValueError("--no-nextn: other entries")
    for have, more in (found, ()), (left, ("--no-nextn",)):
        result = check_listed(assay, file, text, n, have, generated, *more)
        if result["settings"]["nextn"] != (collected and have is found):
            raise ValueError(f"settings.nextn is {result['settings']['nextn']}")
    return left


def check_half(assay, file, text, n, left, generated, rng):
    """A block with a tensor missing, or of another shape, is left out, and a remark names it."""
    broken = f"blk.{generated.n_layers}.nextn.{rng.choice(('enorm', 'hnorm', 'eh_proj'))}.weight"
    generated.tensors = [t for t in generated.tensors if t.name != broken or "eh_proj" in broken]
    for t in generated.tensors:
        if t.name == broken:
            n_rows, t.ne[1] = t.ne[1], t.ne[1] - 1
            t.data = t.data[:len(t.data) // n_rows * t.ne[1]]
    half = rewrite.write(file.parent, generated.pairs, generated.tensors, name="half.gguf")
    if read(collect(assay, half, text, n))[0] != left:
        raise ValueError(f"{broken}: other entries than with --no-nextn")
    remarks = check_listed(assay, half, text, n, left, generated)["model"]["remarks"]
    if not any(f"is left out: {half}: tensor '{broken}'" in r for r in remarks):
        raise ValueError(f"{broken}: remarks {remarks}")


def check_going_on(assay, file, windows, n):
    """Ranges that are merged, and a run that goes on after Ctrl-C, have the bytes of a whole one."""
    folder, text = file.parent, file.parent / "many.jsonl"
    text.write_text("".join(json.dumps({"ids": w}) + "\n" for w in windows * 150))
    state, sums, more = folder / "block", folder / "block.sums", ("--no-ppl", "-b", "1", "-t", "1")
    whole = collect(assay, file, text, n, *more).read_bytes()
    parts = [collect(assay, file, text, n, *more, *cut).rename(folder / cut[0]) for cut in
             (("--chunks", "7"), ("--chunk-from", "7"))]
    run(assay, "merge", *parts, "-o", folder / "both")
    if (folder / "both").read_bytes() != whole:
        raise ValueError("merged ranges have other bytes")
    words = *words_of(assay, file, text, n, folder / "cut", *more), "--state", state
    for _ in range(20):  # on a busy machine it may just have ended
        state.unlink(missing_ok=True)
        sums.unlink(missing_ok=True)
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not sums.exists():
            pass
        process.send_signal(signal.SIGINT)
        if process.wait() == 130:
            break
    else:
        raise ValueError("no run was interrupted")
    if " finished before" not in run(*words) or (folder / "cut").read_bytes() != whole:
        raise ValueError("a run that went on has other bytes, or went on from nothing")


def generate(rng, arch, seed):
    """Of the architectures whose drafts are known, mostly with the block."""
    if arch not in drafts.KNOWN:
        return architectures.generate(rng, arch)
    generated = drafts.generate(rng, arch, 1 + seed % 2)
    while not generated.n_next and seed % 4:
        generated = drafts.generate(rng, arch, 1 + seed % 2)
    if generated.n_next:
        drafts.with_options(generated, rng)
    return generated


def check(assay, arch, seed, folder):
    """The largest difference, or None where nothing can be said of this seed."""
    rng = random.Random(f"imatrix {arch} {seed}")
    generated = generate(rng, arch, seed)
    evaluation = Evaluation(generated, rng)
    while evaluation.fixed:
        evaluation = Evaluation(generated, rng)
    file, text = rewrite.write(folder, generated.pairs, generated.tensors), folder / "text"
    text.write_text(evaluation.text)
    model = architectures.model({key: value for key, _, value, _ in generated.pairs},
                                {t.name: t for t in generated.tensors})
    sums = Sums(model, generated.tensors)
    block = has_block(generated)
    if block:
        drafts.read_block(model)
    for window in evaluation.windows:
        if block:
            sure = drafts.predictions(model, window)[2]
        else:
            list(model.logits(window))
            sure = model.sure
        if sure < len(window):
            return None
    path = collect(assay, file, text, evaluation.n)
    found, keys = read(path)
    data = path.read_bytes()
    if (keys["imatrix.chunk_size"], keys["imatrix.datasets"]) != (evaluation.n, [text.name]):
        raise ValueError(f"keys {keys}")
    for more in (["-t", "1", "--isa", "scalar", "-b", "1"], ["-t", "2", "--isa", "avx2", "--no-ppl"]):
        if collect(assay, file, text, evaluation.n, *more).read_bytes() != data:
            raise ValueError(f"other bytes with {more}")
    boundaries = [value for key, _, value, _ in generated.pairs if key.endswith("original_context_length")]
    if min(boundaries, default=evaluation.n) >= evaluation.n:  # else a shorter window may have other angles
        check_masks(assay, file, evaluation.windows, evaluation.n, rng)
    left = check_block(assay, file, text, evaluation.n, found, generated)
    if block:
        check_going_on(assay, file, evaluation.windows, evaluation.n)
    if any("_exps." in t.name for t in generated.tensors):
        check_categories(assay, file, evaluation.windows, evaluation.n, rng)
    worst = compare(found, sums, evaluation.n * len(evaluation.windows))
    if block:
        check_half(assay, file, text, evaluation.n, left, generated, rng)
    return worst


def main():
    assay = sys.argv[1]
    count, first = (int(w) for w in (sys.argv[3:5] + ["1", "1"][len(sys.argv[3:5]):]))
    failed = 0
    chosen = architectures.FAMILIES if sys.argv[5:] == ["all"] else sys.argv[5:] or USUAL
    for arch in chosen:
        worst, done, seed = 0.0, 0, first - 1
        while done < count and seed < first + 20 * count:
            seed += 1
            with tempfile.TemporaryDirectory() as folder:
                try:
                    difference = check(assay, arch, seed, pathlib.Path(folder))
                except ValueError as why:
                    print(f"{arch}, seed {seed}: {why}", flush=True)
                    failed, done = failed + 1, done + 1
                    continue
            if difference is not None:
                worst, done = max(worst, difference), done + 1
        failed += done < count
        print(f"{arch}: {done} models within {worst:.2g} of double precision", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
