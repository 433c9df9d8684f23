"""assay for Python: its results as dicts, log-probabilities of texts, and the exact model as numpy arrays."""
import typing

from assay_gguf.client import AssayError, Program, Score, Server
from assay_gguf.results import check, kld, perplexity, report, run

if typing.TYPE_CHECKING:
    from assay_gguf.model import Model, decode, multiply

__all__ = ["AssayError", "Model", "Program", "Score", "Server", "check", "decode", "kld", "multiply",
           "perplexity", "report", "run"]


def __getattr__(name):
    """What needs numpy and the library is imported by those who use it."""
    if name in ("Model", "decode", "multiply"):
        from assay_gguf import model
        return getattr(model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
