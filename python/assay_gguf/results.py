"""Results of the program as dicts: the documents that docs/json.md of assay describes.

Each function is one run of a command; `run` takes any. Keywords are the command's options: ctx_size=256 is
--ctx-size 256, c=256 is -c 256, strict=True is --strict, ctk=["f16", "q8_0"] gives --ctk twice, and
None and False leave an option out. Besides, each takes

binary    the program; absent: the wheel's, or else the one in PATH
progress  None: a line on sys.stderr, where somebody sees it (a terminal, a notebook); False: nothing;
          or a function, which is called with the share of the work that is done, 0 to 1

An AssayError has the program's sentence and exit code. Notes go to the log `assay_gguf.client`.
Ctrl-C ends the program. With state=FILE the same call then goes on where it was stopped.
"""
import functools
import json
import os
import pathlib
import re
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
    """assay kld of a model or a list of models from a base: a model, or a file recorded of one.

    kld(candidate, base, ids, targets=None, positions=slice(None)) of two open Models is an array: see
    model.divergences.
    """
    if not isinstance(models, (str, os.PathLike, list, tuple)):
        from assay_gguf.model import divergences
        return divergences(models, base, text, **options)
    return document("kld", [("-m", listed(models)), ("--base", listed(base)), ("-f", listed(text))],
                    binary, progress, options)


def check(model, recording=None, *, binary=None, progress=None, **options):
    """assay check of what another program recorded of a model; url="http://...": of a server."""
    return document("check", [("-m", [model]), ("--kl-divergence-base", listed(recording))], binary,
                    progress, options)


def report(results, output, *, binary=None, **options):
    """assay report: a page for a browser, of results (dicts or files). Returns its path."""
    run("report", *listed(results), "-o", output, binary=binary, progress=False, **options)
    return pathlib.Path(output)


def run(command, *arguments, binary=None, progress=None, **options):
    """assay COMMAND with words of its command line. A dict among them is a result, given as a file.

    Returns the command's document, or where it writes none what it prints.
    """
    if progress is None:
        progress = Line(command) if somebody_sees() else False
    program = str(binary or find_program())
    written = writes(program, command)
    with tempfile.TemporaryDirectory(prefix="assay-") as name:
        folder = pathlib.Path(name)
        document, printed = folder / "result.json", folder / "printed"
        asked = {None: [], "": ["--json"], " FILE": ["--json", document]}[written]
        given = [*asked, *files_of(arguments, folder), *words(options, ("json",), "the document is")]
        try:
            execute([program, command, *given], progress or (lambda _: None), printed, document)
        finally:
            if isinstance(progress, Line):
                progress.clear()
        text = (document if written else printed).read_text()
    return json.loads(text) if asked else text


@functools.cache
def writes(program, command):
    """What the option --json of a command takes, by its help: " FILE", "" (it prints the document), or None."""
    with tempfile.TemporaryFile("w+") as printed:
        with running([program, "help", command], subprocess.DEVNULL, printed) as child:
            child.communicate()
        printed.seek(0)
        found = re.search(r"^  --json( FILE)?", printed.read(), re.M)
    return found and (found[1] or "")


def listed(values):
    return [] if values is None else list(values) if isinstance(values, (list, tuple)) else [values]


def files_of(arguments, folder):
    """The arguments, with files in the place of results."""
    for i, argument in enumerate(arguments, 1):
        if isinstance(argument, dict):
            file = folder / f"{i}.json"
            file.write_text(json.dumps(argument))
            argument = file
        yield argument


def document(command, inputs, binary, progress, options):
    """Run a command with options that have a name here."""
    given = [word for option, values in inputs for value in values for word in (option, value)]
    return run(command, *given, binary=binary, progress=progress, **options)


def execute(command, fraction, printed, document):
    """printed: where its standard output goes. document: an error has it where it is there."""
    command, said = [str(word) for word in command], []
    with printed.open("w") as stdout, running(command, subprocess.DEVNULL, stdout) as child:
        listen(child.stderr, said, fraction)
        code = child.wait()
    if code:
        raise failure(command, code, said,
                      json.loads(document.read_text()) if document.exists() else None)


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
