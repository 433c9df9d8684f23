"""assay for Python: log-probabilities of texts, from the program or a server of it."""
from assay_gguf.client import AssayError, Program, Score, Server

__all__ = ["AssayError", "Program", "Score", "Server"]
