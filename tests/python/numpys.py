"""A Python that has numpy, for tests that need it."""
import os
import shutil
import subprocess
import sys


def python_with_numpy():
    """Its file: this Python's, that of PATH, or the system's; or None."""
    for python in (sys.executable, shutil.which("python3"), "/usr/bin/python3"):
        with_it = [python, "-c", "import numpy"]
        if python and os.path.exists(python) and not subprocess.run(with_it, capture_output=True).returncode:
            return python
    return None


def with_numpy():
    """Go on in a Python that has it; or end, skipped (77)."""
    python = python_with_numpy()
    if not python:
        print("no Python here has numpy (python3-numpy)")
        sys.exit(77)
    if python != sys.executable:
        os.execv(python, [python, "-B", *sys.argv])
