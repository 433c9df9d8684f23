#!/usr/bin/env python3
"""assay draft of random models that have a block for the token after the next, against the same in
double precision: every architecture of which the program knows the block's form.

usage: test_drafts.py ASSAY SOURCE_DIR [COUNT [FIRST_SEED [ARCHITECTURE...]]]
"""
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
from evaluate import TOLERANCE, Evaluation  # noqa: E402
import rewrite  # noqa: E402

STREAM = "step35", "mimo2"  # their blocks take rows before the output norm
SLIDING = STREAM  # and slide where no array says it of each block; others' then see all keys
KNOWN = ("deepseek2", "glm4moe", "hy_v3", "qwen35", "qwen35moe", "qwen3next", "step35", "bailingmoe2",
         "mimo2", "deepseek32", "glm-dsa", "exaone-moe", "cohere2moe")
UNKNOWN = "exaone4", "glm4"
PATTERN = "attention.sliding_window_pattern"


def logits(model, x, head, norm):
    by = model.head_scale()
    return [[by * v for v in row] for row in model.product(head, model.norm(norm, x))]


def of_block(model, name, value):
    """What a method says of the block, which the others of its architecture do not tell."""
    method = getattr(model, name, None)
    if method:
        setattr(model, name, lambda i, *more: value if i == model.n_layers else method(i, *more))


def read_block(model):
    of_block(model, "recurrent", False)  # it has attention, whatever its number
    of_block(model, "own_choice", True)  # it has an indexer, whatever others share
    listed = model.k.get(PATTERN)
    ignored = model.compat and model.arch == "exaone-moe"  # llama.cpp takes its own period
    if not isinstance(listed, list) or len(listed) == model.n_layers or ignored:
        of_block(model, "slides", model.arch in SLIDING)
    if model.compat:  # llama.cpp does not evaluate that indexer: all keys are seen
        of_block(model, "chosen_keys", None)
    if model.arch == "cohere2moe":  # it has positions, though it sees all keys
        of_block(model, "rope", model.make_rope())


def predictions(model, tokens):
    """Logits of the model and of its block, row i of which belongs to row i + 1 of the model."""
    model.sure, model.length, model.ropes = len(tokens), len(tokens), {}
    block = f"blk.{model.n_layers}.nextn."
    table = block + "embed_tokens.weight"
    x = model.embed(tokens)
    for i in range(model.n_layers):
        x = model.layer(i, x)
    sure = model.sure
    model.sure, model.length, model.ropes = len(tokens), len(tokens) - 1, {}
    own_head, own_norm = block + "shared_head_head", block + "shared_head_norm"
    if own_norm + ".weight" not in model.values:
        own_norm = f"blk.{model.n_layers}.layer_output_norm"
    head = "output" if "output.weight" in model.values else "token_embd"
    hidden = model.norm("output_norm", x)
    follow = tokens[1:]
    follow = [model.matrix(table)[t] for t in follow] if table in model.values else model.embed(follow)
    before = x if model.arch in STREAM else hidden
    pairs = zip(model.norm(block + "enorm", follow), model.norm(block + "hnorm", before))
    y = model.layer(model.n_layers, model.product(block + "eh_proj", [e + h for e, h in pairs]))
    return (logits(model, x, head, "output_norm"),
            logits(model, y, own_head if own_head + ".weight" in model.values else head,
                   own_norm if own_norm + ".weight" in model.values else "output_norm"),
            min(sure, model.sure))


def shares(row):
    top = max(row)
    e = [math.exp(v - top) for v in row]
    return [v / sum(e) for v in e]


def nearly_tied(row):
    first, second = sorted(row, reverse=True)[:2]
    return first - second < 1e-3


def expected(model, evaluation):
    """Sums over the scored positions; None where float32 may choose other experts or guesses."""
    sums = dict.fromkeys(("hits", "agrees", "guess_probability", "accepted", "p", "q"), 0.0)
    n = 0
    for window in evaluation.windows:
        main, block, sure = predictions(model, window[:-1])
        if sure < len(window) - 1:
            return None
        for at in range(evaluation.first, len(window) - 1):
            if nearly_tied(main[at]) or nearly_tied(block[at - 1]):
                return None
            p, q = shares(main[at]), shares(block[at - 1])
            guess, target = q.index(max(q)), window[at + 1]
            found = (guess == target, guess == p.index(max(p)), p[guess], sum(map(min, p, q)),
                     -math.log(p[target]), -math.log(q[target]))
            sums = {key: value + by for (key, value), by in zip(sums.items(), found)}
            n += 1
    return {key: value / n for key, value in sums.items()}, n


def with_options(generated, rng):
    """Optional tensors of the block, there or not; an array of windows that leaves it out."""
    block = f"blk.{generated.n_layers}.nextn."
    for name in ("embed_tokens", "shared_head_head"):
        if rng.random() < 0.3:
            generated.tensor(block + name, generated.width, generated.n_vocab, 0.5)
    which = rng.random()
    if which < 0.2:
        generated.tensors = [t for t in generated.tensors if "shared_head_norm" not in t.name]
    for t in generated.tensors:
        if 0.6 < which < 0.8:
            t.name = t.name.replace("nextn.shared_head_norm", "layer_output_norm")
    if which > 0.8:
        generated.norm(f"blk.{generated.n_layers}.layer_output_norm")  # the other counts
    names = {t.name for t in generated.tensors}
    blocks = range(generated.n_layers, generated.n_layers + generated.n_next)
    sinks = all(f"blk.{i}.attn_sinks.weight" in names for i in blocks)  # as what slides has in mimo2
    if rng.random() < 0.5 and (sinks or generated.arch != "mimo2"):
        generated.pairs = [(key, kind, value[:generated.n_layers] if key.endswith(PATTERN) and
                            isinstance(value, list) else value, of) for key, kind, value, of in
                           generated.pairs]


def draft(assay, file, text, n, more=()):
    out = file.parent / "draft.json"
    words = [assay, "draft", "-q", "-m", file, "-f", text, "-c", str(n), "--json", out,
             "--precision", "exact", *more]
    done = subprocess.run(words, capture_output=True, text=True)
    return done, json.loads(out.read_text())["result"] if done.returncode == 0 else None


def check(assay, arch, seed, folder):
    """The largest difference, or None where nothing can be said of this seed."""
    rng = random.Random(f"draft {arch} {seed}")
    generated = type(arch, (architectures.FAMILIES[arch],), {"arch": arch, "nextn": 1 + seed % 2})(rng)
    if not generated.n_next:
        return None
    with_options(generated, rng)
    evaluation = Evaluation(generated, rng)
    while evaluation.fixed:
        evaluation = Evaluation(generated, rng)
    file, text = rewrite.write(folder, generated.pairs, generated.tensors), folder / "text"
    text.write_text(evaluation.text)
    compat = seed % 3 == 2
    more = ["--llama-compat"] if compat else []
    done, result = draft(assay, file, text, evaluation.n, more)
    if arch in UNKNOWN:
        if done.returncode != 2 or "further tokens" not in done.stderr:
            raise ValueError(f"exit code {done.returncode}: {done.stderr}")
        return 0.0
    printed = re.search(r"^Accepted by speculative sampling: +([\d.e+-]+)", done.stdout, re.MULTILINE)
    if result and not abs(float(printed[1]) - 100 * result["accepted"]) <= 0.1 + result["accepted_error"] * 5:
        raise ValueError(f"{result}: printed {done.stdout}")
    if not result:
        raise ValueError(f"exit code {done.returncode}: {done.stderr}")
    model = architectures.model({key: value for key, _, value, _ in generated.pairs},
                                {t.name: t for t in generated.tensors}, compat)
    read_block(model)
    right = expected(model, evaluation)
    if not right:
        return None
    means, n = right
    means["p"], means["q"] = math.log(result["ppl"]) - means["p"], math.log(result["draft_ppl"]) - means["q"]
    worst = max([abs(means.pop("p")), abs(means.pop("q"))]
                + [abs(result[key] - value) for key, value in means.items()]
                + [abs(result["tokens_per_pass_greedy"] - 1 - means["agrees"]),
                   abs(result["tokens_per_pass_sampled"] - 1 - means["accepted"])])
    if draft(assay, file, text, evaluation.n, [*more, "-t", "3", "--isa", "scalar"])[1] != result:
        raise ValueError("another result with other threads and another instruction set")
    rest = [t for t in generated.tensors if not t.name.endswith("eh_proj.weight")]
    done = draft(assay, rewrite.write(folder, generated.pairs, rest), text, evaluation.n)[0]
    if done.returncode != 2 or "was left out of this file" not in done.stderr:
        raise ValueError(f"without the block: exit code {done.returncode}: {done.stderr}")
    if n != result["n_positions"] or not worst <= TOLERANCE:
        raise ValueError(f"off by {worst:.3g}, {n} positions: {result}, expected {means}")
    return worst


def main():
    assay = sys.argv[1]
    count, first = (int(w) for w in (sys.argv[3:5] + ["1", "1"][len(sys.argv[3:5]):]))
    failed = 0
    for arch in sys.argv[5:] or KNOWN + UNKNOWN:
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


sys.exit(main())
