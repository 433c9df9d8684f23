#!/usr/bin/env python3
"""What bench/gpu.sh makes of steps that fail: its exit codes, its document, its logs. Programs,
nvidia-smi and the sanitizer are stand-ins.   usage: test_gpu_script.py SOURCE_DIR"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

SOURCE = pathlib.Path(sys.argv[1])

# Writes what it was told to: the document of a run that the tables can use.
PROGRAM = """#!/bin/bash
while [ $# -gt 0 ]; do
    case $1 in
        --json) echo '{"run": {"seconds": 1, "seconds_to_load": 1, "n_inputs": 64,
                "tokens_per_second": 64, "phases": {}}, "result": {"ppl": 2, "n_tokens": 32},
                "windows": {"n_tokens": 64}}' >"$2" ;;
        -o | --save-all-logits) echo some >"$2" ;;
    esac
    shift
done
"""
KERNELS = """#!/bin/bash
echo '[{"name": "ceiling", "flops": 1e12, "seconds": 1e-3}]' >"$2"
"""
CARD = """#!/bin/bash
case $* in *compute_cap*) echo 9.0 ;; *) echo 'NVIDIA "H100"' ;; esac
"""
SMALL = dict(SHAPES="tiny", TYPES="F16", COMPARED="none", ROUNDS="1", CHUNKS="1")


class Machine:
    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        for file in ("gpu.sh", "gpu_report.py", "gpu_model.py", "gpu_counts.json"):
            self.root.joinpath("bench").mkdir(exist_ok=True)
            shutil.copy(SOURCE / "bench" / file, self.root / "bench" / file)
        self.ready = self.root / "build/gpu-ready"
        self.script("tools/nvidia-smi", CARD)
        for name in ("assay", "bench/make_model", "tests/kernels/test_cuda"):
            self.script(f"build/gpu-ready/{name}", PROGRAM)
        self.script("build/gpu-ready/bench/bench_cuda", KERNELS)
        self.write("build/gpu-ready/architecture", "90a\n")
        self.write("build/gpu-ready/commit", "\n")

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def script(self, path, text):
        self.write(path, text)
        (self.root / path).chmod(0o755)

    def begin(self, **variables):
        environment = {"PATH": f"{self.root}/tools:/usr/bin:/bin", "MODELS": str(self.root),
                       "GIT_CEILING_DIRECTORIES": str(self.root.parent), **variables}
        return subprocess.Popen(["bash", "bench/gpu.sh", "out.json"], cwd=self.root, text=True,
                                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                start_new_session=True)

    def run(self, code, **variables):
        """The results of its steps, and what it printed."""
        process = self.begin(**variables)
        said = process.communicate(timeout=120)[0]
        assert process.returncode == code, f"exit code {process.returncode}, not {code}:\n{said}"
        return self.steps(), said

    def steps(self):
        document = self.root / "out.json"
        if not document.exists():
            return None
        steps = json.loads(document.read_text())["steps"]
        document.unlink()
        return {step["name"]: step for step in steps}


def result(steps, name):
    return steps[name]["result"]


def all_tests(machine):
    """Every test program that would use a card is in the script's list."""
    listed = set(re.search(r'^tests="(.*)"$', (SOURCE / "bench/gpu.sh").read_text(), re.M)[1].split())
    asking = {str(path.relative_to(SOURCE).with_suffix("")) for path in SOURCE.glob("tests/*/test_*.c")
              if re.search(r"cuda_pair_use_real_device\(\)|n_devices\(\)|no CUDA device", path.read_text())}
    assert asking == listed and len(listed) > 10, asking ^ listed


def all_well(machine):
    steps, said = machine.run(0, **SMALL)
    failed = [name for name in steps if result(steps, name) == "FAILED"]
    assert not failed and result(steps, "kld, same") == "ok", said
    assert result(steps, "tiny F16 perplexity high") == "ok" and "tiny F16 perplexity fast" in said
    assert result(steps, "test_cuda_model") == "not here"
    with tarfile.open(machine.root / "out-logs.tar.gz") as logs:
        assert "logs/test_cuda.log" in logs.getnames()


def no_card(machine):
    machine.script("tools/nvidia-smi", "#!/bin/bash\nexit 9\n")
    steps, said = machine.run(3)
    assert steps is None and "finds no GPU" in said
    machine.script("tools/nvidia-smi", "#!/bin/bash\n")
    machine.run(3)
    machine.script("tools/nvidia-smi", CARD)


def no_programs(machine):
    machine.write("build/gpu-ready/architecture", "80\n")
    machine.script("tools/cmake", "#!/bin/bash\necho no libraries\nexit 1\n")
    steps, _ = machine.run(1, CUDACXX="none")
    assert result(steps, "programs") == "FAILED" and "--prepare 90a" in steps["programs"]["detail"]
    machine.write("build/gpu-ready/architecture", "90a\n")


def test_fails(machine):
    program = "build/gpu-ready/tests/kernels/test_cuda"
    machine.script(program, '#!/bin/bash\necho \'a "quoted" \\ line \xe9\'\nexit 5\n')
    steps, said = machine.run(1, PARTS="correctness")
    assert steps["test_cuda"]["detail"].startswith("exit 5; a 'quoted' / line"), steps["test_cuda"]
    assert result(steps, "kld, same") == "ok" and "1 steps failed" in said
    machine.script(program, "#!/bin/bash\necho 'no CUDA device here: it is not tested'\n")
    _, said = machine.run(1, PARTS="correctness")
    assert "it found no device" in said
    machine.script(program, PROGRAM)


def no_time(machine):
    steps, _ = machine.run(0, BUDGET="0")
    assert {result(steps, name) for name in steps} <= {"ok", "left out", "not here"}
    machine.script("build/gpu-ready/bench/bench_cuda", "#!/bin/bash\nexec sleep 60\n")
    steps, _ = machine.run(1, PARTS="speed", PATIENCE="1", **{**SMALL, "MIXTURE": "none"})
    assert steps["kernels"]["detail"].startswith("exit 124; no end after 2 s")
    machine.script("build/gpu-ready/bench/bench_cuda", KERNELS)


def tools(machine):
    """A sanitizer that finds something, and one that may not run."""
    machine.script("tools/compute-sanitizer",
                   "#!/bin/bash\necho '========= ERROR SUMMARY: 3 errors'\nexit 9\n")
    steps, _ = machine.run(1, PARTS="why")
    assert result(steps, "sanitizer racecheck") == "FAILED"
    machine.script("tools/compute-sanitizer", "#!/bin/bash\necho not permitted\nexit 1\n")
    steps, _ = machine.run(0, PARTS="why")
    assert result(steps, "sanitizer racecheck") == "refused"
    (machine.root / "tools/compute-sanitizer").unlink()


def stopped(machine):
    """What was done before is in the document."""
    machine.script("build/gpu-ready/bench/bench_cuda", "#!/bin/bash\nexec sleep 60\n")
    process = machine.begin()
    log = machine.root / "build/gpu/logs/kernels.log"
    for _ in range(600):
        if log.exists():
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGTERM)
    said = process.communicate(timeout=60)[0]
    steps = machine.steps()
    assert process.returncode == 1 and result(steps, "the script") == "FAILED", said
    assert result(steps, "kld, same") == "ok"
    machine.script("build/gpu-ready/bench/bench_cuda", KERNELS)


def bad_row(machine):
    """A run that the tables cannot read costs the tables, not the rest."""
    text = PROGRAM.replace('"phases": {}', '"phases": {"linear": "x"}')
    machine.script("build/gpu-ready/assay", text)
    steps, said = machine.run(1, PARTS="speed", **{**SMALL, "MIXTURE": "none"})
    assert result(steps, "tables") == "FAILED" and result(steps, "tiny F16 perplexity fast") == "ok", said
    machine.script("build/gpu-ready/assay", PROGRAM)


def main():
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder)
        for check in (all_tests, all_well, no_card, no_programs, test_fails, no_time, tools, stopped, bad_row):
            check(machine)
            print(f"{check.__name__}: ok", flush=True)


if __name__ == "__main__":
    main()
