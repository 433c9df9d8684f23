"""assay for Python: its results as dicts, and log-probabilities of texts."""
from assay_gguf.client import AssayError, Program, Score, Server
from assay_gguf.results import check, kld, perplexity, report, run

__all__ = ["AssayError", "Program", "Score", "Server", "check", "kld", "perplexity", "report",
           "run"]
