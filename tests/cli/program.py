"""What most tests of the command line share: the program and what they give it. A script that
imports this is started as `test_NAME.py ASSAY SOURCE_DIR`."""
import pathlib
import signal
import subprocess
import sys

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
DATA, TEXT = SOURCE / "data", SOURCE / "docs" / "handbook.md"
F16, Q4 = DATA / "tiny.F16.gguf", DATA / "tiny.Q4_K_M.gguf"

# In the background it comes ignored, and the program would leave it so.
signal.signal(signal.SIGINT, signal.default_int_handler)


def run(*words, **more):
    return subprocess.run([ASSAY, *words], capture_output=True, text=True, **more)
