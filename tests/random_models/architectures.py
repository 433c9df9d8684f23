"""Every architecture by its name: its formulas, and random models of it."""
import altup
import authors
import authors_hybrid
import families
import gated
import gated_families
import hybrid_families
import recombined
import recombined_families

FORMULAS = (authors.ARCHITECTURES | recombined.ARCHITECTURES | authors_hybrid.ARCHITECTURES |
            gated.ARCHITECTURES | {"gemma3n": altup.Gemma3n})
FAMILIES = (families.FAMILIES | recombined_families.FAMILIES | hybrid_families.FAMILIES |
            gated_families.FAMILIES | {"gemma3n": altup.Gemma3nFamily})


def model(keys, tensors, compat=False):
    return FORMULAS[keys["general.architecture"]](keys, tensors, compat)


def generate(rng, arch):
    return type(arch, (FAMILIES[arch],), {"arch": arch})(rng)


def of_own_parts():
    """Those that have parts of their own; the others combine these."""
    return [*families.FAMILIES, "lfm2moe", "falcon-h1", "gemma3n", *gated_families.FAMILIES]
