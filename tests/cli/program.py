"""What most tests of the command line share: the program and what they give it. A script that
imports this is started as `test_NAME.py ASSAY SOURCE_DIR`."""
import fcntl
import functools
import os
import pathlib
import re
import signal
import subprocess
import sys

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
DATA = SOURCE / "data"
TEXT = DATA / "text.txt"
F16, Q4 = DATA / "tiny.F16.gguf", DATA / "tiny.Q4_K_M.gguf"
HANG_S = 300  # whatever takes that long has stopped, on a slow and busy machine, too

# In the background it comes ignored, and the program would leave it so.
signal.signal(signal.SIGINT, signal.default_int_handler)


@functools.cache
def is_sanitized():
    program = pathlib.Path(ASSAY).read_bytes()
    return any(name in program for name in (b"__asan_init", b"__tsan_init"))


def last_of_each(words):
    """The words of a command, of an option that is given twice the last one alone."""
    kept, at = [], {}
    several = {"-m"} if "kld" in words else {"--from"} if "sweep" in words else set()
    i = 0
    while i < len(words):
        has_value = (str(words[i]).startswith("-") and i + 1 < len(words)
                     and not re.match("-[^0-9]", str(words[i + 1])))
        if has_value and words[i] in at and words[i] not in several:
            kept[at[words[i]]] = words[i + 1]
        else:
            kept += words[i:i + 1 + has_value]
            if has_value:
                at[words[i]] = len(kept) - 1
        i += 1 + has_value
    return kept


def reference_models(folder):
    """The models of a folder of ../shared that tests/golden/bits.tsv names; [] where it is not there."""
    where = SOURCE.resolve().parent / "shared"
    rows = (SOURCE / "tests" / "golden" / "bits.tsv").read_text().splitlines()[1:]
    named = [where / row.split("\t")[0] for row in rows if row.startswith(f"{folder}/")]
    absent = [path for path in named if not path.exists()]
    if (where / folder).is_dir() and absent:
        raise FileNotFoundError(f"{absent[0]} is named in bits.tsv, and is not there")
    return named if (where / folder).is_dir() else []


def small_pipe(room):
    """(reading end, writing end) of a pipe that takes so many bytes, behind 4096 - room of x: what
    prints more than that does not end before it is read."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writing, b"x" * (4096 - room))
    return reading, writing


def run(*words, **more):
    return subprocess.run([ASSAY, *words], capture_output=True, text=True, **more)
