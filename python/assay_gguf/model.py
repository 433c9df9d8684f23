"""The exact model of a GGUF file or a published folder, in this process: numpy arrays from libassay.so.

Results are the program's to the bit. Shapes: with ids of [n_tokens] results have no axis of windows; with
[n_windows, n_tokens] each row is evaluated on its own, from position 0, and n_windows is their first axis.
Ids are taken as they are: BOS is among them where the caller (or Model.tokenize) puts it. Logarithms are
natural. Errors are AssayErrors with the library's sentence and a status, and Python's own kind besides:
ValueError, OSError, MemoryError, NotImplementedError (what the library does not do), ArithmeticError.
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import typing

try:
    import numpy as np
except ImportError as failure:
    raise ImportError("assay_gguf's Model, decode and multiply need numpy: the extra assay-gguf[model] has it, and "
                      "Debian's python3-numpy") from failure

from assay_gguf import library
from assay_gguf.client import AssayError
from assay_gguf.library import call, error

if typing.TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# As include/assay.h documents their members.
SCORE = np.dtype([("log_prob", "f8"), ("entropy", "f8"), ("rank", "u4"), ("likeliest", "i4")])
LIKELY = np.dtype({"names": ["log_prob", "token"], "formats": ["f8", "i4"], "itemsize": 16})
DIVERGENCE = np.dtype({
    "names": ["base_log_prob", "log_prob", "base_entropy", "entropy", "kld", "reverse_kld", "js", "tv",
              "base_rank", "rank", "base_likeliest", "likeliest", "common_1", "common_5", "common_10"],
    "formats": 8 * ["f8"] + 2 * ["u4"] + 2 * ["i4"] + 3 * ["u1"], "itemsize": 88})
ALL = slice(None)


class Description(typing.NamedTuple):
    """What a model is, and what computes it."""
    path: str
    architecture: str
    tokenizer: str  # "spm" or "bpe"
    remarks: str    # what was remarkable about the file, a line each; ""
    device: str
    isa: str
    products: str   # what products are made of: "float32", "int16", ...
    n_weights: int
    n_tensors: int
    n_vocab: int
    n_layers: int
    width: int      # of a hidden state after the output norm
    streams: int    # hidden states between layers have streams * width
    n_ctx: int
    n_threads: int
    bos: int        # -1: there is none
    eos: int
    adds_bos: int   # 1: texts begin with BOS


class Tensor(typing.NamedTuple):
    """A tensor as the file has it."""
    name: str
    type: str              # "Q4_K"
    shape: tuple[int, ...]  # numpy's order: GGUF's, turned round
    n_bytes: int           # as stored


class Model:
    """An open model, with the threads that compute it; `with Model(path) as m:` closes it at the end.

    path      a GGUF file (any part of a split one) or a published folder (config.json, safetensors)
    precision "high", "exact" (one chain of float32 fused multiply-adds) or "fast" (activations in 8 bits)
    threads   None: as many as the processors that this process may use. No result depends on it
    device    "cpu", "cuda" or "cuda:N"
    isa       use no instruction set above it: "scalar", "avx2", ...
    tokens    a published folder has the tokens of this GGUF file or folder; None: its own
    progress  called with the share of an evaluation that is done, 0 to 1, from another thread; what it
              raises ends the evaluation. It cannot evaluate or close the model

    Any thread may use a model: evaluations wait for each other, what else there is does not wait for them.
    Ctrl-C ends an evaluation that the main thread asked for, and the model stays usable. Another process,
    made by a fork, has to open its own.
    """

    _handle = None

    def __init__(self, path: str | os.PathLike, *, precision: str = "high", threads: int | None = None,
                 device: str | None = None, isa: str | None = None, tokens: str | os.PathLike | None = None,
                 progress: typing.Callable[[float], object] | None = None) -> None:
        self._process = os.getpid()
        # An evaluation holds the first, who reads the file or the vocabulary the second, close() both.
        self._evaluating, self._reading = threading.Lock(), threading.Lock()
        self._evaluator = None  # the thread's number
        self._running, self._about_running = None, threading.Lock()
        self._failures: list[BaseException] = []
        self._tensors: dict[str, Tensor] | None = None
        self._path = os.fspath(path)
        options = library.options(precision, threads, device, isa)
        options.tokens = os.fsencode(tokens) if tokens is not None else None
        options.progress = self._told = told(progress, self._failures)
        self._close, self._cancel = library.library().assay_close, library.library().assay_cancel
        # What is opened is the model's at once, which releases it whenever a signal's handler raises.
        self._handle = handle = ctypes.c_void_p()
        call("open", handle, os.fsencode(path), options)
        about = library.Description(size=ctypes.sizeof(library.Description))
        call("describe", handle, about)
        #: What the model is.
        self.description = Description(*(text_of(getattr(about, name)) for name in Description._fields))

    def close(self) -> None:
        """Release the model, after a call at work in another thread. Every later call is an error."""
        if self._handle and os.getpid() == self._process:
            self._check_outside()
            with self._evaluating, self._reading:
                handle, self._handle = self._handle, None
                if handle:
                    self._close(handle)

    __del__ = close

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        about = self.description
        return f"<assay_gguf.Model {self._path}: {about.architecture}, {about.n_weights} weights" + (
            ">" if self._handle else ", closed>")

    def _check_outside(self):
        """Not within an evaluation, for which this thread would wait for ever."""
        if self._evaluator == threading.get_ident():
            raise error("usage", f"{self._path}: a progress function can neither evaluate nor close the model")

    @contextlib.contextmanager
    def _held(self, lock):
        """The handle, for one thread at a time."""
        if os.getpid() != self._process:
            raise error("usage", f"{self._path}: the model was opened by process {self._process}; a process that is "
                        "made by a fork opens its own")
        with lock:
            if not self._handle:
                raise error("usage", f"{self._path}: the model is closed")
            yield self._handle

    def _read(self):
        return self._held(self._reading)

    @contextlib.contextmanager
    def _evaluated(self):
        self._check_outside()
        with self._held(self._evaluating) as handle:
            self._evaluator = threading.get_ident()
            try:
                yield handle
            finally:
                self._evaluator = None

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name, in the file's order."""
        if self._tensors is None:
            with self._read() as handle:
                self._tensors = {found.name: found for found in (
                    about_tensor(tensor_at(handle, i)) for i in range(self.description.n_tensors))}
        return self._tensors

    def tensor(self, name: str, rows: slice = ALL) -> NDArray[np.float32]:
        """A tensor decoded, of its shape; or some of its rows, [n_rows, shape[-1]]."""
        with self._read() as handle:
            i = find(handle, name)
            found = tensor_at(handle, i)
            first, n = part(rows, found.n_rows)
            out = np.empty((n, found.ne[0]), np.float32)
            call("tensor_rows", handle, i, first, n, out.ctypes.data)
            return out.reshape(about_tensor(found).shape) if rows == ALL else out

    def stored(self, name: str) -> NDArray[np.uint8]:
        """A copy of a tensor's bytes as the file has them, scales included: what decode() and multiply() take."""
        with self._read() as handle:
            found = tensor_at(handle, find(handle, name))
            if not found.data:
                raise error("unsupported", f"{self._path}: {name}: its bytes do not lie in one piece")
            return np.array((ctypes.c_uint8 * found.n_bytes).from_address(found.data), np.uint8)

    def tokenize(self, text: str | bytes, *, bos: bool = True, special: bool = False) -> NDArray[np.int32]:
        """Ids of a text, [n_tokens].

        bos: begin with what texts begin with, BOS, where the model has it so. special: recognise control tokens.
        """
        given = text.encode() if isinstance(text, str) else text
        flags, n = library.BOS * bool(bos) | library.SPECIAL * bool(special), ctypes.c_size_t(len(given) + 2)
        ids = np.empty(0, np.int32)
        while n.value > len(ids):
            ids = np.empty(n.value, np.int32)
            with self._read() as handle:
                call("tokenize", handle, given, len(given), flags, ids.ctypes.data, len(ids), n)
        return ids[:n.value].copy()

    def detokenize(self, ids: ArrayLike) -> str:
        """The text of ids; U+FFFD where they end within a character."""
        return b"".join(map(self.token_bytes, ids_of(ids).ravel())).decode("utf-8", "replace")

    def token_bytes(self, token: int) -> bytes:
        """What a token stands for in a text; a part of a character is possible."""
        n = ctypes.c_size_t(64)
        room = ctypes.create_string_buffer(0)
        while n.value > len(room):
            room = ctypes.create_string_buffer(n.value)
            with self._read() as handle:
                call("token_bytes", handle, int(token), room, len(room), n)
        return room.raw[:n.value]

    def logprobs(self, ids: ArrayLike, targets: ArrayLike | None = None,
                 positions: slice = ALL) -> NDArray[np.float64]:
        """The member log_prob of scores()."""
        return self.scores(ids, targets, positions)["log_prob"]

    def scores(self, ids: ArrayLike, targets: ArrayLike | None = None, positions: slice = ALL) -> NDArray[np.void]:
        """What positions say of tokens, [n_windows, n_positions] of log_prob, entropy, rank (1: the most likely
        token) and likeliest.

        targets: [n_windows, n_positions], the token of which each position is asked. Without, it is the next one:
        the last position of a window has none, so that result i is of ids[i + 1].
        """
        windows, targets, out = asked(ids, positions, SCORE, targets=targets)
        self._evaluate("log_probs", windows, targets, out)
        return out

    def topk(self, ids: ArrayLike, k: int, positions: slice = ALL) -> NDArray[np.void]:
        """The k most likely next tokens (20 at most), [n_windows, n_positions, k] of log_prob and token, the most
        likely first, of equals the lower id."""
        windows, _, out = asked(ids, positions, LIKELY, max(k, 0))
        self._evaluate("top", windows, max(k, 0), out)
        return out

    def rows(self, ids: ArrayLike, positions: slice = ALL, tokens: slice = ALL) -> NDArray[np.float64]:
        """Log-probabilities of the whole vocabulary, or of some of its tokens: [n_windows, n_positions, n_vocab]."""
        first, n = part(tokens, self.description.n_vocab)
        windows, _, out = asked(ids, positions, np.float64, n)
        self._evaluate("rows", windows, first, n, out)
        return out

    def hidden(self, ids: ArrayLike, layer: int, positions: slice = ALL) -> NDArray[np.float32]:
        """Hidden states, [n_windows, n_positions, streams * width].

        layer: the residual stream after this layer, from 0 on. -1: [.., width], after the last and the output norm.
        """
        width = self.description.width * (1 if layer == -1 else self.description.streams)
        windows, _, out = asked(ids, positions, np.float32, width)
        self._evaluate("hidden", windows, layer, out)
        return out

    def _evaluate(self, name, *arguments, candidate=None):
        """A call that may take long; arguments may be arrays. It has a thread of its own where this is the main
        one, which handles signals meanwhile; what a handler raises (KeyboardInterrupt) cancels the call."""
        cancelled = threading.Event()
        models = sorted({self, candidate} - {None}, key=id)

        def work():  # has the arrays until the library is done with them, whatever becomes of the caller
            with contextlib.ExitStack() as held:
                handles = {model: held.enter_context(model._evaluated()) for model in models}
                with self._about_running:
                    if cancelled.is_set():
                        return
                    self._running = cancelled
                try:
                    call(name, handles[self], *([handles[candidate]] if candidate else []), *map(address, arguments))
                except AssayError:
                    if self._failures:
                        raise self._failures[0] from None
                    raise
                finally:
                    with self._about_running:
                        self._running = None
                        self._cancel(handles[self], 0)
                    self._failures.clear()

        if threading.current_thread() is threading.main_thread():
            outlast(work, lambda: self._end(cancelled))
        else:
            work()

    def _end(self, cancelled):
        """Cancel the evaluation that this is of, begun or not. Returns whether it is at work."""
        with self._about_running:
            cancelled.set()
            if self._running is not cancelled:
                return False
            self._cancel(self._handle, 1)
            return True


def divergences(candidate: Model, base: Model, ids: ArrayLike, targets: ArrayLike | None = None,
                positions: slice = ALL) -> NDArray[np.void]:
    """How far a candidate is from a base at each position, and what both say of the next token (or of targets):
    [n_windows, n_positions] of the figures of `assay kld --per-token`, which docs/divergence.md of assay defines.

    ids, targets, positions: as of Model.scores. The base's threads, device and precision serve both.
    """
    if not isinstance(candidate, Model) or not isinstance(base, Model):
        raise TypeError("kld of models or of files: expected two Models, or names of files")
    windows, targets, out = asked(ids, positions, DIVERGENCE, targets=targets)
    base._evaluate("diverge", windows, targets, out, candidate=candidate)
    return out


def decode(type: str, data: bytes | NDArray, n_cols: int) -> NDArray[np.float32]:
    """Decode a matrix as files store it, by the definition of its type: [n_rows, n_cols] float32.

    type: "IQ4_XS". data: bytes, or anything that has them in one piece: whole rows, one after the other.
    """
    matrix, _bytes = matrix_of(type, data, n_cols)
    out = np.empty((matrix.n_rows, n_cols), np.float32)
    call("decode", matrix, address(out))
    return out


def multiply(type: str, data: bytes | NDArray, x: ArrayLike, *, precision: str = "high", threads: int | None = None,
             device: str | None = None, isa: str | None = None) -> NDArray[np.float32]:
    """The product of a matrix W of [n_rows, n_cols], stored as decode() has it, with each row of x, [n, n_cols] or
    [n_cols], as models' products are computed: [n, n_rows] or [n_rows] float32.

    precision "exact": fma(W[r, k], x[k], sum) for k = 0, 1, ... in float32, from 0 on.
    """
    x = np.ascontiguousarray(x, np.float32)
    if x.ndim not in (1, 2):
        raise error("usage", f"x has {x.ndim} axes, expected [n_cols] or [n, n_cols]")
    matrix, _bytes = matrix_of(type, data, x.shape[-1])
    out = np.empty((*x.shape[:-1], matrix.n_rows), np.float32)
    call("multiply", library.options(precision, threads, device, isa), matrix, address(x), x.size // x.shape[-1],
         address(out))
    return out


def outlast(work, end):
    """Do work in another thread, whose failure is this one's. What a signal's handler raises meanwhile has end()
    called, and is raised, the first of it, once work is done; or at once where end() says that it is not at work."""
    failures, done = [], threading.Event()

    def run():
        try:
            work()
        except BaseException as failure:
            failures.append(failure)
        finally:
            done.set()

    interrupt = None
    try:
        while True:
            try:
                if interrupt is None:
                    threading.Thread(target=run, name="assay").start()
                    done.wait()
                elif end():
                    done.wait()
                break
            except BaseException as raised:
                interrupt = interrupt or raised
        if interrupt or failures:
            raise interrupt or failures.pop()
    finally:
        del interrupt  # whose traceback has this frame


def told(progress, failures):
    """A C function that tells a Python one; what that raises goes to failures, and ends the call."""
    def tell(_, fraction):
        try:
            progress(fraction)
        except BaseException as failure:
            failures.append(failure)
        return len(failures)
    return library.PROGRESS(tell) if progress else library.PROGRESS()


def text_of(value):
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def tensor_at(handle, i):
    found = library.Tensor()
    call("tensor_at", handle, i, found)
    return found


def find(handle, name):
    i = ctypes.c_size_t()
    call("tensor_find", handle, name.encode(), i)
    return i.value


def about_tensor(found):
    return Tensor(text_of(found.name), found.type.decode(), tuple(found.ne[:found.n_dims][::-1]), found.n_bytes)


def part(asked_for, n):
    """(first, number) of a slice of n things in a row."""
    first, end, step = asked_for.indices(n)
    if step != 1:
        raise error("usage", f"{asked_for}: expected a slice without a step")
    return first, max(end - first, 0)


def ids_of(ids):
    """Tokens as the library takes them; the same array where it has them so."""
    given = np.asarray(ids)
    if given.dtype.kind not in "iu" and given.size:
        raise error("usage", f"ids of type {given.dtype}, expected whole numbers")
    found = np.ascontiguousarray(given, np.int32)
    if given.dtype != np.int32 and not np.array_equal(found, given):
        raise error("usage", "ids beyond 32 bits")
    return found


def asked(ids, positions, dtype, *more, targets=None):
    """(windows, targets or None, an array for the results) of an evaluation. more: the last axes of results."""
    ids = ids_of(ids)
    if ids.ndim not in (1, 2):
        raise error("usage", f"ids have {ids.ndim} axes, expected [n_tokens] or [n_windows, n_tokens]")
    targets = None if targets is None else ids_of(targets)
    is_next = dtype in (SCORE, DIVERGENCE) and targets is None
    first, n = part(positions, max(ids.shape[-1] - is_next, 0))
    if targets is not None and targets.shape != (*ids.shape[:-1], n):
        raise error("usage", f"targets of {targets.shape}, expected {(*ids.shape[:-1], n)}: one for each position")
    windows = library.Windows(ids.ctypes.data, ids.size // max(ids.shape[-1], 1), ids.shape[-1], first, n)
    windows.ids = ids  # they live as long
    return windows, targets, np.empty((*ids.shape[:-1], n, *more), dtype)


def address(given):
    """Of an array; what else there is stays as it is."""
    return given.ctypes.data if isinstance(given, np.ndarray) else given


def matrix_of(type, data, n_cols):
    """(the structure, the bytes that have to live as long) of a matrix."""
    found = library.Type()
    call("type_find", type.encode(), found)
    data = np.frombuffer(data, np.uint8) if memoryview(data).nbytes else np.empty(0, np.uint8)
    row = found.row_prefix + n_cols // found.block_elems * found.block_bytes
    n_rows = (len(data) - found.tail_bytes) // row if row > 0 else 0
    return library.Matrix(data.ctypes.data, len(data), max(n_rows, 1), max(n_cols, 0), found.id), data
