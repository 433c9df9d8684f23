"""Results of the program as dicts: the documents that docs/json.md of assay describes.

Each function is one run of a command. Keywords are the command's options: ctx_size=256 is
--ctx-size 256, c=256 is -c 256, strict=True is --strict, ctk=["f16", "q8_0"] gives --ctk twice, and
None and False leave an option out. Besides, each takes

binary    the program; absent: the wheel's, or else the one in PATH
progress  None: a line on sys.stderr, where somebody sees it (a terminal, a notebook); False: nothing;
          or a function, which is called with the share of the work that is done, 0 to 1

An AssayError has the program's sentence and exit code. Notes go to the log `assay_gguf.client`.
Ctrl-C ends the program. With state=FILE the same call then goes on where it was stopped.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from assay_gguf.client import failure, find_program, listen, running, words


def perplexity(model, text=None, *, binary=None, progress=None, **options):
    """assay perplexity of a model on a text, or on documents: a file, a folder or a list of them.

    hellaswag=True, winogrande=True and multiple_choice=True make it a file of tasks.
    """
    return document("perplexity", [("-m", [model]), ("-f", listed(text))], binary, progress, options)


def kld(models, base=None, text=None, *, binary=None, progress=None, **options):
    """assay kld of a model or a list of models from a base: a model, or a file recorded of one."""
    return document("kld", [("-m", listed(models)), ("--base", listed(base)), ("-f", listed(text))],
                    binary, progress, options)


def check(model, recording=None, *, binary=None, progress=None, **options):
    """assay check of what another program recorded of a model; url="http://...": of a server."""
    return document("check", [("-m", [model]), ("--kl-divergence-base", listed(recording))], binary,
                    progress, options)


def report(results, output, *, binary=None, **options):
    """assay report: a page for a browser, of results (dicts or files). Returns its path."""
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        files = [pathlib.Path(folder, f"{i}.json") if isinstance(result, dict) else result
                 for i, result in enumerate(listed(results), 1)]
        for file, result in zip(files, listed(results)):
            if isinstance(result, dict):
                file.write_text(json.dumps(result))
        run([binary or find_program(), "report", *files, "-o", output,
             *words(options, ("o",), "the page is")], lambda _: None)
    return pathlib.Path(output)


def listed(values):
    return [] if values is None else list(values) if isinstance(values, (list, tuple)) else [values]


def document(command, inputs, binary, progress, options):
    """Run a command; what it wrote with --json."""
    given = [word for option, values in inputs for value in values for word in (option, value)]
    given += words(options, ("json",), "the document is")
    if progress is None:
        progress = Line(command) if somebody_sees() else False
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        file = pathlib.Path(folder, "result.json")
        try:
            run([binary or find_program(), command, *given, "--json", file],
                progress or (lambda _: None), file)
        finally:
            if isinstance(progress, Line):
                progress.clear()
        return json.loads(file.read_text())


def run(command, fraction, file=None):
    """file: of the result; where it is there although the run failed, the error has it."""
    command, said = [str(word) for word in command], []
    with running(command, subprocess.DEVNULL, subprocess.DEVNULL) as child:
        listen(child.stderr, said, fraction)
        code = child.wait()
    if code:
        raise failure(command, code, said,
                      json.loads(file.read_text()) if file and file.exists() else None)


def somebody_sees():
    return "ipykernel" in sys.modules or sys.stderr.isatty()


class Line:
    """Progress on one line, which goes away again."""

    def __init__(self, command):
        self.command, self.width = command, 0

    def __call__(self, fraction):
        text = f"assay {self.command}: {fraction:4.0%}"
        self.width = len(text)
        print("\r" + text, end="", file=sys.stderr, flush=True)

    def clear(self):
        if self.width:
            print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)
