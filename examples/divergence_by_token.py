"""Plots how far a file is from the one that it was made of, token by token.

usage: divergence_by_token.py BASE.gguf CANDIDATE.gguf TEXT OUTPUT.svg
"""
import html
import sys

import assay_gguf

N_TOKENS = 200


def with_matplotlib(path, kld, tokens):
    from matplotlib.figure import Figure  # no display is asked for
    figure = Figure(figsize=(12, 3), layout="tight")
    axes = figure.add_subplot(xlabel="token", ylabel="KL divergence, nats")
    axes.bar(range(len(kld)), kld)
    for i in kld.argsort()[-5:]:
        axes.annotate(repr(tokens[i]), (i, kld[i]))
    figure.savefig(path)


def by_hand(path, kld, tokens):
    """A bar for each token, which says when it is pointed at what token it is."""
    bars = "".join(f'<rect x="{5 * i}" y="{200 - height:.1f}" width="4" height="{height:.1f}"><title>'
                   f"{html.escape(repr(token))}: {nats:.4f} nats</title></rect>\n"
                   for i, (height, nats, token) in enumerate(zip(200 * kld / max(kld.max(), 1e-9), kld, tokens)))
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{5 * len(kld)}" height="200">\n{bars}</svg>\n')


def main(base_file, candidate_file, text, output):
    with assay_gguf.Model(base_file) as base, assay_gguf.Model(candidate_file) as candidate:
        with open(text, encoding="utf-8") as file:
            ids = base.tokenize(file.read())[:N_TOKENS]
        kld = assay_gguf.kld(candidate, base, ids)["kld"]
        tokens = [base.detokenize([i]) for i in ids[1:]]
    print(f"{len(kld)} tokens, {kld.mean():.6f} nats in the mean; the farthest:")
    for i in kld.argsort()[:-6:-1]:
        print(f"{kld[i]:9.6f}  {''.join(tokens[max(i - 4, 0):i])!r} -> {tokens[i]!r}")
    try:
        with_matplotlib(output, kld, tokens)
    except ImportError:
        by_hand(output, kld, tokens)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
