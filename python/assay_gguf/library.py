"""libassay.so by ctypes: its structures, and its errors as exceptions. include/assay.h documents it."""
import ctypes
import functools
import os
import pathlib
from ctypes import POINTER, c_char_p, c_int, c_int32, c_size_t, c_uint, c_uint32, c_uint64, c_void_p

from assay_gguf.client import AssayError

ABI = 0
# Where a wheel has the library.
BROUGHT = pathlib.Path(__file__).parent / "program" / "lib" / f"libassay.so.{ABI}"

PRECISIONS = ("high", "exact", "fast")  # by their numbers
BOS, SPECIAL = 1, 2                     # flags of assay_tokenize
PROGRESS = ctypes.CFUNCTYPE(c_int, c_void_p, ctypes.c_double)


class Why(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 1024)]


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("precision", c_int), ("n_threads", c_uint), ("device", c_char_p),
                ("isa", c_char_p), ("tokens", c_char_p), ("progress", PROGRESS), ("user", c_void_p)]


class Description(ctypes.Structure):
    _fields_ = [("size", c_size_t),
                *((name, c_char_p) for name in ("path", "architecture", "tokenizer", "remarks", "device", "isa",
                                                "products")),
                ("n_weights", c_uint64),
                *((name, c_size_t) for name in ("n_tensors", "n_vocab", "n_layers", "width", "streams", "n_ctx")),
                ("n_threads", c_uint), ("bos", c_int32), ("eos", c_int32), ("adds_bos", c_int)]


class Tensor(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("type", c_char_p), ("ne", c_uint64 * 4), ("n_dims", c_uint32),
                ("type_id", c_uint32), ("n_rows", c_uint64), ("n_bytes", c_uint64), ("data", c_void_p)]


class Windows(ctypes.Structure):
    _fields_ = [("tokens", c_void_p), ("n_windows", c_size_t), ("n_tokens", c_size_t), ("first", c_size_t),
                ("n_positions", c_size_t)]


class Type(ctypes.Structure):
    _fields_ = [("name", c_char_p), *((name, c_uint32) for name in (
        "id", "block_elems", "block_bytes", "row_prefix", "bundle_rows", "tail_bytes"))]


class Matrix(ctypes.Structure):
    _fields_ = [("bytes", c_void_p), ("n_bytes", c_size_t), ("n_rows", c_size_t), ("n_cols", c_size_t),
                ("type", c_uint32), ("unused", c_uint32)]


# What functions that can fail take in front of the sentence; the model is a void *.
FUNCTIONS = {
    "open": [POINTER(c_void_p), c_char_p, POINTER(Options)],
    "describe": [c_void_p, POINTER(Description)],
    "tensor_at": [c_void_p, c_size_t, POINTER(Tensor)],
    "tensor_find": [c_void_p, c_char_p, POINTER(c_size_t)],
    "tensor_rows": [c_void_p, c_size_t, c_uint64, c_uint64, c_void_p],
    "tokenize": [c_void_p, c_char_p, c_size_t, c_uint, c_void_p, c_size_t, POINTER(c_size_t)],
    "token_bytes": [c_void_p, c_int32, c_void_p, c_size_t, POINTER(c_size_t)],
    "log_probs": [c_void_p, POINTER(Windows), c_void_p, c_void_p],
    "top": [c_void_p, POINTER(Windows), c_size_t, c_void_p],
    "rows": [c_void_p, POINTER(Windows), c_size_t, c_size_t, c_void_p],
    "hidden": [c_void_p, POINTER(Windows), c_int, c_void_p],
    "diverge": [c_void_p, c_void_p, POINTER(Windows), c_void_p, c_void_p],
    "type_find": [c_char_p, POINTER(Type)],
    "decode": [POINTER(Matrix), c_void_p],
    "multiply": [POINTER(Options), POINTER(Matrix), c_void_p, c_size_t, c_void_p],
}

# The error of a status is an AssayError, and one of Python's own.
BUILTIN = {"usage": ValueError, "format": ValueError, "io": OSError, "memory": MemoryError,
           "unsupported": NotImplementedError, "nonfinite": ArithmeticError}


@functools.cache
def error_class(status):
    return type("AssayError", (AssayError, BUILTIN[status]), {}) if status in BUILTIN else AssayError


def error(status, sentence):
    """The exception of a failed call. status: a short name, as assay_status_name() gives it."""
    made = error_class(status)(sentence)
    made.status, made.sentence = status, sentence
    return made


@functools.cache
def library():
    """The library that ASSAY_LIBRARY names, the wheel's, or else the one that is installed."""
    path = os.environ.get("ASSAY_LIBRARY") or str(BROUGHT if BROUGHT.exists() else BROUGHT.name)
    try:
        loaded = ctypes.CDLL(path)
    except OSError as failure:
        raise AssayError(f"the library cannot be loaded ({failure}): install the wheel that scripts/wheel.sh of "
                         "assay makes, or the package libassay0; or set ASSAY_LIBRARY to its file") from failure
    loaded.assay_version.restype = loaded.assay_status_name.restype = c_char_p
    abi = loaded.assay_abi()
    if abi != ABI:
        raise AssayError(f"{path} is version {loaded.assay_version().decode()}, with ABI {abi}; this package "
                         f"needs ABI {ABI}")
    for name, parameters in FUNCTIONS.items():
        getattr(loaded, f"assay_{name}").argtypes = [*parameters, POINTER(Why)]
    loaded.assay_close.argtypes, loaded.assay_close.restype = [c_void_p], None
    loaded.assay_cancel.argtypes, loaded.assay_cancel.restype = [c_void_p, c_int], None
    return loaded


def call(name, *arguments):
    """A function of FUNCTIONS. Raises what it fails with."""
    why = Why()
    status = getattr(library(), f"assay_{name}")(*arguments, why)
    if status:
        raise error(library().assay_status_name(status).decode(), why.text.decode("utf-8", "replace"))


def options(precision, threads, device=None, isa=None):
    if precision not in PRECISIONS:
        raise error("usage", f"precision {precision!r}, expected one of {', '.join(PRECISIONS)}")
    if threads is not None and threads < 1:
        raise error("usage", f"{threads} threads, expected 1 or more, or None for as many as there are processors")
    return Options(size=ctypes.sizeof(Options), precision=PRECISIONS.index(precision), n_threads=threads or 0,
                   device=encoded(device), isa=encoded(isa))


def encoded(text):
    return None if text is None else text.encode()
