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
    return (string(key) + struct.pack("<IIQ", ARRAY, element, len(what))
            + b"".join(value(element, w) for w in what))


def gguf(pairs, tensors, alignment=32):
    """pairs: results of pair(); tensors: (name, type id, ne, bytes)."""
    head = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs))
    data = bytearray()
    for name, kind, ne, payload in tensors:
        head += string(name) + struct.pack("<I", len(ne)) + struct.pack(f"<{len(ne)}Q", *ne)
        head += struct.pack("<IQ", kind, len(data))
        data += payload + bytes(-len(payload) % alignment)
    return bytes(head + bytes(-len(head) % alignment) + data)
