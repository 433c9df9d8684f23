"""A model in files of its own making: what it is made of, and the same as files of one tensor each."""
import json
import struct

from gguf_make import U16, gguf, pair, string
from program import run


def contents(path):
    """(bytes of the pairs, how many, [(name, type id, ne, bytes)]) of a model in one file."""
    listed = json.loads(run("info", "--json", "--tensors", path).stdout)["tensors"]
    data = path.read_bytes()
    tensors, first = [], len(data)
    for t in listed:
        at = data.index(string(t["name"]))
        first = min(first, at)
        kind = struct.unpack_from("<I", data, at + 8 + len(t["name"].encode()) + 4 + 8 * len(t["ne"]))[0]
        tensors.append((t["name"], kind, t["ne"], data[t["offset"]:t["offset"] + t["n_bytes"]]))
    return data[24:first], struct.unpack_from("<Q", data, 16)[0], tensors


def part(i, n, tensors, pairs=b"", n_pairs=0):
    """File i of n, the first of which has the model's pairs."""
    split = [pair("split.count", U16, n), pair("split.no", U16, i), pairs]
    return gguf(split + [b""] * (n_pairs - 1) if n_pairs else split[:2], tensors)


def split(path, groups=None, order=None):
    """The files of a split model, as bytes. groups: how many tensors each has; one each, behind a
    first file that has none, where it is not given. order: names, in another one."""
    pairs, n_pairs, tensors = contents(path)
    if order:
        tensors.sort(key=lambda t: order.index(t[0]))
    groups = groups or [0] + [1] * len(tensors)
    files, at = [], 0
    for i, n in enumerate(groups):
        files.append(part(i, len(groups), tensors[at:at + n], *((pairs, n_pairs) if i == 0 else ())))
        at += n
    return files


def part_name(stem, i, n):
    return f"{stem}-{i + 1:05}-of-{n:05}.gguf"
