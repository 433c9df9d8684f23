"""A GGUF v3 writer for tests, independent of the program's own: any value, any bytes."""
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_PACK = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B",
         U64: "<Q", I64: "<q", F64: "<d"}


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, what):
    return string(what) if kind == STRING else struct.pack(_PACK[kind], what)


def pair(key, kind, what, element=None):
    if kind != ARRAY:
        return string(key) + struct.pack("<I", kind) + value(kind, what)
    values = b"".join(map(string, what)) if element == STRING else struct.pack(
        f"<{len(what)}{_PACK[element][1]}", *what)
    return string(key) + struct.pack("<IIQ", ARRAY, element, len(what)) + values


def gguf(pairs, tensors, alignment=32):
    """pairs: results of pair(); tensors: (name, type id, ne, bytes)."""
    head = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs))
    data = bytearray()
    for name, kind, ne, payload in tensors:
        head += string(name) + struct.pack("<I", len(ne)) + struct.pack(f"<{len(ne)}Q", *ne)
        head += struct.pack("<IQ", kind, len(data))
        data += payload + bytes(-len(payload) % alignment)
    return bytes(head + bytes(-len(head) % alignment) + data)


def with_float32(data, first, name, values):
    """A file of alignment 32 and a vector more. first: the name of its first tensor."""
    at = data.index(string(first))
    data = bytes(data[:8]) + struct.pack("<Q", struct.unpack_from("<Q", data, 8)[0] + 1) + bytes(data[16:])
    end, n_tensors = at, struct.unpack_from("<Q", data, 8)[0] - 1
    for _ in range(n_tensors):
        end += 8 + struct.unpack_from("<Q", data, end)[0]
        end += 4 + 8 * struct.unpack_from("<I", data, end)[0] + 12
    old = data[end + -end % 32:]
    old += bytes(-len(old) % 32)
    head = data[:end] + string(name) + struct.pack("<IQIQ", 1, len(values), 0, len(old))
    return head + bytes(-len(head) % 32) + old + struct.pack(f"<{len(values)}f", *values)
