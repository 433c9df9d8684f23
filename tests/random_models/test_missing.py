#!/usr/bin/env python3
"""Random models of every architecture, with all the tensors that it may have, of which one is taken
away, a matrix with what stands beside it: in all layers, in those that see all keys, in one. The program refuses each and says
what is missing, but for those in the tables of docs/missing.md, which it must accept. A matrix has one
type in all layers, not NVFP4.

usage: test_missing.py ASSAY SOURCE_DIR [ARCHITECTURE...]
"""
import pathlib
import random
import re
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tests" / "cli"), str(SOURCE / "tests" / "random_models")]
import architectures  # noqa: E402
from program import run  # noqa: E402
import rewrite  # noqa: E402


def rows(heading):
    """[patterns of tensors, architectures, whether all but these] of a table of docs/missing.md"""
    text = (SOURCE / "docs" / "missing.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    for line in text.splitlines():
        cells = line.split("|")
        if "`" in cells[0] or len(cells) < 5 or "`" not in cells[1]:
            continue
        patterns = [re.escape(word).replace(r"\*", ".+") for word in re.findall("`([^`]+)`", cells[1])]
        yield "|".join(patterns), tuple(re.findall("`([^`]+)`", cells[2])), cells[2].strip().startswith("all")


TABLES = {"all": list(rows("In all layers")), "full": list(rows("In layers that see all keys")),
          "anywhere": list(rows("Anywhere"))}
BESIDE = "bias", "scale", "input_scale"
GROUPS = [group for row in TABLES["all"] for group in row[0].replace("\\", "").split("|") if ", " in group]

# (architecture, traits, ends of the names that are taken away, exit code, what is said): the norms of
# deep models, and what models mostly have.
FURTHER = [(arch, {"n_layers_of": (64, 64)}, ("attn_q_norm.weight", "attn_k_norm.weight"), 2, "is missing")
           for arch in ("command-r", "glm4moe")]
FURTHER += [(arch, {}, "rope_freqs.weight", 0, "mostly have") for arch in ("exaone4", "apertus", "step35")]
FURTHER += [("qwen2", {"fused": 0}, ("attn_q.bias", "attn_k.bias", "attn_v.bias"), 0, "mostly have")]
FURTHER += [("kimi-k3", {"narrow_of": (8,)}, tuple(f"{name}.{end}" for end in ("weight", *BESIDE)), 0,
             f"no layer has a tensor '{name}.weight', which models of architecture kimi-k3 mostly have")
            for name in ("attn_gate", "ffn_routed_norm")]


def row_of(table, arch, within):
    for row in TABLES[table]:
        if re.fullmatch(row[0], within) and (arch in row[1]) != row[2]:
            return row
    return None


def everything(arch, **more):
    """A random model with each tensor that it may have, some of whose layers slide if any can."""
    def kind_of(self, name, kinds):
        return [kind for kind in kinds if kind != "NVFP4"][len(name) % 3]
    methods = {"alike": lambda self, name, share: share > 0, "kind_of": kind_of, "spare": 0, **more}
    family = type(arch, (architectures.FAMILIES[arch],), {"arch": arch, **methods})
    for seed in range(10):
        generated = family(random.Random(f"missing {arch} {seed}"))
        if len(set(getattr(generated, "slid", "no window"))) > 1:
            break
    return generated


def layer(name):
    return int(name.split(".")[1])


def cases(generated):
    """(which layers, tensor without its layer, names that are taken away)"""
    names, slides = {}, getattr(generated, "slid", ())
    for t in generated.tensors:
        names.setdefault(re.sub(r"^blk\.\d+\.", "", t.name), []).append(t.name)
    for within, all_of in names.items():
        yield "all", within, set(all_of)
        evaluated = [n for n in all_of if n[:4] == "blk." and layer(n) < generated.n_layers]
        full = {n for n in evaluated if slides and not slides[layer(n)]}
        if 0 < len(full) < len(evaluated):
            yield "full", within, full
        if len(evaluated) > 1:
            one = {generated.rng.choice(evaluated)}
            yield "one of full" if one <= full else "one", within, one
    groups = [group for group in GROUPS if names.keys() >= set(group.split(", "))]
    for group in groups:
        if not any(group != other and group in other for other in groups):
            yield "all", group, {name for within in group.split(", ") for name in names[within]}


def start(generated, folder, tensors):
    """The program, on one window of a model with these tensors."""
    file = rewrite.write(folder, generated.pairs, tensors)
    (folder / "text").write_text(generated.text(8)[0])
    return run("perplexity", "-m", file, "-f", folder / "text", "-c", "4", "--chunks", "1", "-t", "1")


def check(arch, folder, used):
    """(cases, what was wrong)"""
    generated = everything(arch)
    n, wrong = 0, []
    blocks = range(generated.n_layers, generated.n_layers + getattr(generated, "n_next", 0))
    for what, within, gone in cases(generated):
        gone |= {name[:-6] + end for name in gone for end in BESIDE if name.endswith("weight")}
        done = start(generated, folder, [t for t in generated.tensors if t.name not in gone])
        table = what.removeprefix("one of ")
        row = row_of("anywhere", arch, within) or table in TABLES and row_of(table, arch, within)
        used.add(row)
        left_aside = all("blk" in name and layer(name) in blocks for name in gone)
        refused = done.returncode == 2 and bool(re.search("tensor ['\"]", done.stderr))
        n += 1
        if done.returncode not in (0, 2) or refused == bool(row or left_aside):
            wrong.append(f"{arch}: without {within} ({what}): exit code {done.returncode}, expected it "
                         f"{'accepted' if row else 'refused'}\n{done.stderr[-400:]}")
    return n, wrong


def check_further(arch, folder):
    """What is wrong with the models of FURTHER."""
    for _, traits, ends, code, words in [row for row in FURTHER if row[0] == arch]:
        generated = everything(arch, **traits)
        done = start(generated, folder, [t for t in generated.tensors if not t.name.endswith(ends)])
        if done.returncode != code or words not in done.stderr:
            yield f"{arch} without {ends}: exit code {done.returncode}, expected {code}\n{done.stderr[-400:]}"


def main():
    total, wrong, used = 0, [], set()
    for arch in sys.argv[3:] or architectures.FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            n, problems = check(arch, pathlib.Path(folder), used)
            problems += check_further(arch, pathlib.Path(folder))
        total, wrong = total + n, wrong + problems
    print(*wrong, sep="\n")
    unused = [row for table in TABLES.values() for row in table if row not in used]
    if not sys.argv[3:] and unused:
        wrong.append(f"rows of docs/missing.md that nothing needs: {unused}")
        print(wrong[-1])
    print(f"{total - len(wrong)} of {total} absences are right")
    return bool(wrong)


sys.exit(main())
