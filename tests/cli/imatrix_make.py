"""Files of importance matrices, an opinion of the format that shares nothing with the program. Sums are whole numbers of 2^-64."""
import struct

import gguf_make as g

F32, I64 = 0, 27  # types of tensors
ONE = 1 << 64


def rounded(quanta):
    """The nearest float, of two the even one, as a number of quanta."""
    spare = max(quanta.bit_length() - 24, 0)
    low, half = quanta & ((1 << spare) - 1), 1 << spare >> 1
    up = spare and (low > half or (low == half and quanta >> spare & 1))
    return (quanta >> spare) + up << spare


def floats(quanta):
    return [float(rounded(q)) / ONE for q in quanta]


KINDS = {"u32": (g.U32,), "bool": (g.BOOL,), "string": (g.STRING,), "strings": (g.ARRAY, g.STRING),
         "u64s": (g.ARRAY, g.U64)}


def gguf(keys, tensors):
    """keys: (name, kind, value); tensors: (name, ne, type, bytes)."""
    pairs_of = [g.pair(name, KINDS[kind][0], what, *KINDS[kind][1:]) for name, kind, what in keys]
    return g.gguf(pairs_of, [(name, kind, ne, data) for name, ne, kind, data in tensors])


def f32(values):
    return struct.pack(f"<{len(values)}f", *values)


def i64(values):
    return struct.pack(f"<{len(values)}q", *values)


def shape(*ne):
    return ne[:1] if len(ne) == 2 and ne[1] == 1 else ne


def pairs(entries):
    """The tensors that llama-imatrix writes. entries: name -> (counts, quanta of each matrix)."""
    out = []
    for name in sorted(entries):
        counts, sums = entries[name]
        out += [(name + ".in_sum2", shape(len(sums[0]), len(sums)), F32, f32(floats(sum(sums, [])))),
                (name + ".counts", shape(1, len(counts)), F32, f32(counts))]
    return out


def heads(datasets, chunk_size, entries):
    most = max(max(counts) for counts, _sums in entries.values())
    return [("general.type", "string", "imatrix"), ("imatrix.datasets", "strings", datasets),
            ("imatrix.chunk_count", "u32", most // chunk_size),
            ("imatrix.chunk_size", "u32", chunk_size)]


def plain(entries, datasets=("a.txt",), chunk_size=16):
    """As llama-imatrix writes it."""
    return gguf(heads(datasets, chunk_size, entries), pairs(entries))


def exact(entries, windows, datasets=("a.txt",), texts=("id-a",), chunk_size=16, model="m", use=None):
    """As assay writes it. use: category -> {name of experts: rows of each}."""
    keys = [*heads(datasets, chunk_size, entries), ("assay.imatrix.version", "u32", 1),
            ("assay.imatrix.model", "string", model), ("assay.imatrix.texts", "strings", texts),
            ("assay.imatrix.windows", "u64s", windows)]
    if use:
        keys.append(("assay.imatrix.categories", "strings", list(use)))
    tensors = pairs(entries)
    for name in sorted(entries):
        counts, sums = entries[name]
        rest = [q - rounded(q) for q in sum(sums, [])]
        low = [((r + (1 << 63)) % ONE) - (1 << 63) for r in rest]
        high = [(i, r >> 64) for i, r in enumerate(rest) if r != low[i]]
        tensors.append((name + ".low", shape(len(sums[0]), len(sums)), I64, i64(low)))
        if high:
            tensors.append((name + ".high", shape(2, len(high)), I64, i64(sum(map(list, high), []))))
        if any(struct.unpack("<f", struct.pack("<f", n))[0] != n for n in counts):
            tensors.append((name + ".rows", shape(len(counts), 1), I64, i64(counts)))
        if use and "_exps." in name:
            rows = [n for of in use.values() for n in of.get(name, [0] * len(counts))]
            tensors.append((name + ".use", shape(len(counts), len(use)), I64, i64(rows)))
    return gguf(keys, tensors)


def dat(entries, n_chunks=None, dataset=None):
    """The older format. entries: name -> (ncall, values)."""
    out = struct.pack("<i", len(entries))
    for name, (n_calls, values) in entries.items():
        out += struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", n_calls, len(values))
        out += f32(values)
    if n_chunks is not None:
        out += struct.pack("<i", n_chunks)
    if dataset is not None:
        out += struct.pack("<i", len(dataset)) + dataset.encode()
    return out
