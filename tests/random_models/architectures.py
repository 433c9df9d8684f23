"""Every architecture by its name: its formulas, and random models of it."""
import altup
import authors
import authors_hybrid
import families
import gated
import gated_families
import hybrid_families
import latent
import latent_families
import ngrams
import recombined
import recombined_families
import sparse
import sparse_families
import streams
import streams_families

FORMULAS, FAMILIES = {}, {}
for module in (authors, recombined, authors_hybrid, gated, sparse, streams, latent):
    FORMULAS |= module.ARCHITECTURES
for module in (families, recombined_families, hybrid_families, gated_families, sparse_families,
               streams_families, latent_families):
    FAMILIES |= module.FAMILIES
FORMULAS["gemma3n"], FAMILIES["gemma3n"] = altup.Gemma3n, altup.Gemma3nFamily
FORMULAS["qwen4exp"], FAMILIES["qwen4exp"] = ngrams.Qwen4exp, ngrams.Qwen4expFamily


def model(keys, tensors, compat=False):
    return FORMULAS[keys["general.architecture"]](keys, tensors, compat)


def generate(rng, arch):
    return type(arch, (FAMILIES[arch],), {"arch": arch})(rng)


def of_own_parts():
    """Those that have parts of their own; the others combine these. Models with an
    indexer are represented by the one whose layers share choices."""
    return [*families.FAMILIES, "lfm2moe", "falcon-h1", "laguna", "glm-dsa", "kimi-linear",
            "deepseek4", "glm5-next", "gemma3n", "deci", "phimoe", "qwen4exp", "hy_v4", "dots3note",
            "kimi-k3"]
