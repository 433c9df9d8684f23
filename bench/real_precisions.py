#!/usr/bin/env python3
"""What --precision exact, high and fast do to published models: the table of docs/precision.md.

usage: real_precisions.py ASSAY MODEL... --text NAME=FILE [--text NAME=FILE ...]
                          [-c 512] [-c 4096] [--chunks 1] [--vectors FOLDER]

Compares each model (GGUF, llama or gemma3) with transformers' code in float64, on the first windows
of each text, of which the second half is scored. The weights are those of the file, as transformers
decodes them; its hidden states become a base file (docs/base-file.md) with the head in float32. So
`assay kld` gives each token's KL(float64 || assay); log-probabilities of targets are compared with
those that torch takes from the same states in float64.

Prints a line for each model, window, text and precision: the largest and the mean difference of a
token's log-probability, and the difference of their means; the largest and the mean divergence of a
token, in nats.
--vectors: compares nothing; writes FOLDER/MODEL.tsv, the tokens of each first window of 512 and the
log-probabilities in float64, which tests/real_models/test_precisions.py reads.

Needs the packages torch, transformers 5, gguf and accelerate. Nothing is downloaded.
"""
import argparse
import csv
import hashlib
import pathlib
import struct
import subprocess
import tempfile
from statistics import fmean as mean

from second_opinion import torch_in_double

PRECISIONS = ("exact", "high", "fast")
SLICE = 64  # positions of which all log-probabilities are there at once
N_HEADER = 512


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assay", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, nargs="+")
    parser.add_argument("--text", dest="texts", action="append", required=True)
    parser.add_argument("-c", dest="sizes", type=int, action="append")
    parser.add_argument("--chunks", default="1")
    parser.add_argument("--vectors", type=pathlib.Path)
    o = parser.parse_args()
    o.assay = o.assay.resolve()
    return o


# ---- float64 ----

def load(path):
    """(torch, the model without its head, its head), all in float64; angles and scales too."""
    import torch
    import transformers
    torch.set_num_threads(1)
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float64, attn_implementation="sdpa")
    torch_in_double()
    body, head = model.model.eval(), model.lm_head.weight.detach()
    body.rotary_emb = type(body.rotary_emb)(model.config)
    if hasattr(body.embed_tokens, "embed_scale"):
        body.embed_tokens.embed_scale = torch.tensor(model.config.hidden_size ** 0.5)
    return torch, body, head


def evaluated(torch, body, head, ids):
    """(hidden states, log-probabilities of the targets) of the window's second half."""
    first = len(ids) // 2
    with torch.no_grad():
        hidden = body(torch.tensor([ids]), use_cache=False).last_hidden_state[0, first:-1]
        assert hidden.dtype == torch.float64
        scores = []
        for at in range(0, len(hidden), SLICE):
            rows = torch.log_softmax(hidden[at:at + SLICE] @ head.T, -1)
            targets = torch.tensor(ids[first + 1 + at:first + 1 + at + len(rows)])
            scores += rows.gather(1, targets[:, None])[:, 0].tolist()
    return hidden, scores


# ---- its base file ----

def words(header, at, n):
    return struct.unpack_from(f"<{n}Q", header, at)


class Recording:
    """What assay recorded: the tokens of each window, and the file's parts before the head."""

    def __init__(self, path):
        data = path.read_bytes()
        self.header = bytearray(data[:N_HEADER])
        self.n_ctx, self.first, self.n_scored, self.n_windows, n_tokens, n_described = \
            words(data, 56, 6)
        sizes, at = (4 * n_tokens, 4 * n_tokens, n_described), N_HEADER
        assert words(data, 104, 1) == (0,) and struct.unpack_from("<I", data, 336) == (0,)
        self.parts = []
        for size in sizes:
            self.parts.append(data[at:at + size])
            at += -(-size // 64) * 64
        bos, self.ids = struct.unpack_from("<i", data, 44)[0], []
        tokens = struct.unpack(f"<{n_tokens}i", self.parts[0])
        for w in range(self.n_windows):
            ids = list(tokens[w * self.n_ctx:(w + 1) * self.n_ctx])
            self.ids.append([bos] + ids[1:] if bos >= 0 else ids)

    def write(self, path, head, hidden):
        """The same file with these rows and this head, both in float32."""
        head, rows = head.numpy().astype("<f4").tobytes(), [h.numpy().astype("<f4") for h in hidden]
        struct.pack_into("<I", self.header, 12, 0)
        struct.pack_into("<I", self.header, 36, 0)
        self.header[240:272] = hashlib.sha256(head).digest()
        self.header[480:512] = hashlib.sha256(self.header[:480]).digest()
        with path.open("wb") as f:
            for part in (self.header, *self.parts, head, b"".join(map(check, *zip(*enumerate(rows)))),
                         b"".join(r.tobytes() for r in rows)):
                f.write(bytes(-f.tell() % 64))
                f.write(part)


def check(index, rows):
    start = struct.pack("<3dQ", 0, 0, 0, index)
    return start + hashlib.sha256(rows.tobytes() + start).digest()


# ---- the comparison ----

def run(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def table(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


def errors(o, model, base, precision, truth, folder):
    run(o.assay, "kld", "-q", "-t", 1, "-m", model, "--base", base, "--precision", precision,
        "--per-token", folder / "t.tsv")
    rows = table(folder / "t.tsv")
    assert len(rows) == len(truth)
    differences = [float(r["logprob"]) - t for r, t in zip(rows, truth)]
    sizes, divergences = [abs(d) for d in differences], [float(r["kld"]) for r in rows]
    return [max(sizes), mean(sizes), abs(mean(differences)), max(divergences), mean(divergences)]


def record(o, model, text, n_ctx, folder):
    """Only its tokens are used."""
    run(o.assay, "record", "-q", "-t", 1, "-m", model, "-f", text, "-c", n_ctx, "--chunks", o.chunks,
        "--precision", "fast", "-o", folder / "recorded")
    return Recording(folder / "recorded")


def compare(o, model, opened, name, text, n_ctx, folder):
    """Prints the lines of a text."""
    recording = record(o, model, text, n_ctx, folder)
    results = [evaluated(*opened, ids) for ids in recording.ids]
    recording.write(folder / "float64", opened[2], [hidden for hidden, _ in results])
    truth = [x for _, scores in results for x in scores]
    for precision in PRECISIONS:
        cells = errors(o, model, folder / "float64", precision, truth, folder)
        print("\t".join([model.name, str(n_ctx), name, precision, str(len(truth)),
                         *(f"{x:.3g}" for x in cells)]), flush=True)


def write_vectors(o, model, opened, texts, folder):
    """A line for each token: text, id, and the log-probability where it is scored."""
    lines = [f"# {model.name}, SHA-256 {hashlib.sha256(model.read_bytes()).hexdigest()}: windows of "
             "512 tokens, and log-probabilities in float64", "# made by bench/real_precisions.py"]
    for name, text in texts:
        ids = record(o, model, text, 512, folder).ids[0]
        (folder / "recorded").unlink()
        scores = [format(s, ".9f") for s in evaluated(*opened, ids)[1]]
        lines += [f"{name}\t{i}\t{s}" for i, s in zip(ids, [""] * (len(ids) - len(scores)) + scores)]
    (o.vectors / f"{model.stem}.tsv").write_text("\n".join(lines) + "\n")


def main():
    o = arguments()
    texts = [t.split("=", 1) for t in o.texts]
    print("model\tn_ctx\ttext\tprecision\ttokens\tln p, largest\tmean\tof the mean\tnats, largest\t"
          "mean")
    for model in o.models:
        opened = load(model)
        for n_ctx in o.sizes or [512, 4096]:
            for name, text in texts if not o.vectors else ():
                with tempfile.TemporaryDirectory() as folder:
                    compare(o, model, opened, name, text, n_ctx, pathlib.Path(folder))
        if o.vectors:
            with tempfile.TemporaryDirectory() as folder:
                write_vectors(o, model, opened, texts, pathlib.Path(folder))


main()
