#!/usr/bin/env bash
# Everything about the CUDA backend that needs a GPU, in one command: build for the card at hand,
# test, benchmark. One table, one JSON file. Needs no network; under ten minutes on one GPU and 16
# processors. Leaves the card's settings alone.
#
# usage: [PEER=path/to/llama-perplexity] bash bench/gpu.sh [OUTPUT.json]
#   SHAPES="1b 8b"  TYPES="F16 Q4_K_M IQ4_XS"  CHUNKS=64  ROUNDS=3  CTX=512  BUDGET=520 (seconds)
#
# A step that fails does not stop the others; the exit code says whether one did. What does not fit
# into BUDGET is left out and listed. PEER runs beside assay on the same models, in turn.
set -uo pipefail
cd "$(dirname "$0")/.."
output=$(realpath -m "${1:-build/gpu.json}")
budget=${BUDGET:-520}
folder=build/gpu
n_failed=0
mkdir -p "$folder" "$(dirname "$output")"
steps=$folder/steps.jsonl
: >"$steps"

left() { echo $((budget - SECONDS)); }

# note NAME RESULT [DETAIL]: a row of the JSON's steps
note() {
    python3 -c 'import json, sys; print(json.dumps(dict(zip(("name", "result", "detail", "second"), sys.argv[1:]))))' \
        "$1" "$2" "${3:-}" "$SECONDS" >>"$steps"
    printf '%4d s  %-34s %s  %s\n' "$SECONDS" "$1" "$2" "${3:-}"
    [ "$2" != FAILED ] || n_failed=$((n_failed + 1))
}

# step NAME SECONDS COMMAND...: run it if there is time; its output goes to a log
step() {
    local name=$1 seconds=$2 log=$folder/${1// /-}.log
    shift 2
    if [ "$(left)" -lt 10 ]; then note "$name" "left out"; return 1; fi
    [ "$seconds" -le "$(left)" ] || seconds=$(left)
    if timeout "$seconds" "$@" >"$log" 2>&1; then note "$name" ok; return 0; fi
    note "$name" FAILED "exit $?; $(tail -n 1 "$log" | cut -c 1-160)"
    tail -n 20 "$log"
    return 1
}

gpu() { nvidia-smi --query-gpu="$1" --format=csv,noheader | head -n 1; }
card=$(gpu name) || { echo "gpu.sh: nvidia-smi finds no GPU" >&2; exit 3; }
architecture=$(gpu compute_cap | tr -d .)
[ "$architecture" != 90 ] || architecture=90a
echo "$card, sm_$architecture, driver $(gpu driver_version), commit $(git describe --always --dirty 2>/dev/null)"

step "configure" 60 cmake -S . -B "$folder" -G "$(command -v ninja >/dev/null && echo Ninja || echo 'Unix Makefiles')" \
    -DCMAKE_BUILD_TYPE=Release -DASSAY_CUDA=ON -DASSAY_TESTS="${TESTS:-ON}" \
    -DCMAKE_CUDA_ARCHITECTURES="$architecture-real" || exit 1
step "build" 240 cmake --build "$folder" -j "$(nproc)" --target assay make_model bench_cuda || exit 1
assay=$folder/assay

# Tests: kernels and models on the device against the CPU; then short runs of the program.
if [ "${TESTS:-ON}" = ON ] && step "build tests" 120 cmake --build "$folder" -j "$(nproc)" --target test_cuda_model test_cuda_decode; then
    step "formats on the device" 60 "$folder/tests/kernels/test_cuda_decode"
    step "models on the device" 120 "$folder/tests/model/test_cuda_model"
fi

# same NAME ARGS...: exact on the device must be the CPU's document but for `run`
same() {
    local name=$1
    shift
    step "$name cpu" 60 "$assay" "$@" --precision exact --device cpu -q --json "$folder/cpu.json" || return
    step "$name cuda" 60 "$assay" "$@" --precision exact --device cuda -q --json "$folder/cuda.json" || return
    step "$name same" 10 python3 - "$folder/cpu.json" "$folder/cuda.json" <<'PYTHON'
import json, sys
a, b = (json.load(open(path)) for path in sys.argv[1:])
for document in (a, b):
    document.pop("run")
sys.exit(0 if a == b else "the documents differ")
PYTHON
}
text=docs/handbook.md
same "perplexity" perplexity -m data/tiny.F16.gguf -f $text -c 64 --chunks 20
same "perplexity Q4_K_M" perplexity -m data/tiny.Q4_K_M.gguf -f $text -c 128 --chunks 10
same "kld" kld -m data/tiny.F16.gguf data/tiny.Q4_K_M.gguf -f $text -c 64 --chunks 10
if command -v compute-sanitizer >/dev/null; then
    if timeout 60 compute-sanitizer --error-exitcode 9 "$assay" perplexity -m data/tiny.Q4_K_M.gguf -f $text \
        -c 32 --chunks 1 --device cuda -q >"$folder/sanitizer.log" 2>&1; then
        note "compute-sanitizer" ok
    elif grep -q 'ERROR SUMMARY: [1-9]' "$folder/sanitizer.log"; then
        note "compute-sanitizer" FAILED "$(grep 'ERROR SUMMARY' "$folder/sanitizer.log")"
    else
        note "compute-sanitizer" refused "$(tail -n 1 "$folder/sanitizer.log" | cut -c 1-160)"
    fi
else
    note "compute-sanitizer" "not here"
fi

step "kernels" 120 "$folder/bench/bench_cuda" --json "$folder/kernels.json"
cat "$folder/kernels.log" 2>/dev/null

# Whole runs, in turn, on models made on the spot.
runs=$folder/runs.jsonl
: >"$runs"
ctx=${CTX:-512}
for shape in ${SHAPES:-1b 8b}; do
    for type in ${TYPES:-F16 Q4_K_M IQ4_XS}; do
        model=$folder/$shape.$type.gguf
        step "make $shape $type" 60 "$folder/bench/make_model" --shape "$shape" --vocab 128256 --type "$type" -o "$model" || continue
        for ((round = 0; round < ${ROUNDS:-3}; round++)); do
            for precision in fast high; do
                if step "$shape $type $precision" 60 "$assay" perplexity -m "$model" -f $text -c "$ctx" --chunks "${CHUNKS:-64}" \
                    --device cuda --precision $precision -q --json "$folder/run.json"; then
                    python3 - "$folder/run.json" "$shape $type $precision" >>"$runs" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))["run"]
keep = ("seconds_to_load", "seconds", "seconds_forward", "seconds_head", "n_inputs", "tokens_per_second", "phases")
print(json.dumps({"name": sys.argv[2], **{key: run[key] for key in keep}}))
PYTHON
                fi
            done
            if [ -n "${PEER:-}" ]; then
                begun=$(date +%s.%N)
                if step "$shape $type peer" 120 "$PEER" -m "$model" -f $text -c "$ctx" --chunks "${CHUNKS:-64}" -ngl 99 -b 2048 -ub 2048; then
                    python3 - "$shape $type peer" "$begun" "$(date +%s.%N)" $((ctx * ${CHUNKS:-64})) \
                        "$folder/${shape}-${type}-peer.log" >>"$runs" <<'PYTHON'
import json, re, sys
name, begun, ended, n_inputs, log = sys.argv[1:]
seconds = float(ended) - float(begun)
# What the peer says about loading is taken off, as it is for assay.
load = re.search(r"load time = +([0-9.]+) ms", open(log, errors="replace").read())
evaluation = seconds - (float(load.group(1)) / 1000 if load else 0)
print(json.dumps({"name": name, "seconds": evaluation, "n_inputs": int(n_inputs),
                  "tokens_per_second": int(n_inputs) / evaluation, "seconds_with_load": seconds}))
PYTHON
                fi
            fi
        done
        rm -f "$model"
    done
done

CARD=$card ARCHITECTURE=$architecture DRIVER=$(gpu driver_version) CLOCKS=$(gpu clocks.sm,clocks.mem) \
    COMMIT=$(git describe --always --dirty 2>/dev/null) python3 - "$folder" "$output" <<'PYTHON'
import collections, json, os, pathlib, statistics, sys
folder = pathlib.Path(sys.argv[1])
lines = lambda name: [json.loads(line) for line in (folder / name).read_text().splitlines()]
kernels = folder / "kernels.json"
try:
    kernels = json.loads(kernels.read_text())
except (OSError, ValueError):
    kernels = None
document = {key: os.environ[key.upper()] for key in ("card", "architecture", "driver", "clocks", "commit")}
document.update(steps=lines("steps.jsonl"), kernels=kernels, runs=lines("runs.jsonl"))
pathlib.Path(sys.argv[2]).write_text(json.dumps(document, indent=1) + "\n")
rates = collections.defaultdict(list)
for run in document["runs"]:
    rates[run["name"]].append(run["tokens_per_second"])
print(f"\n{'run':28} {'median tokens/s':>16}  all")
for name, values in rates.items():
    print(f"{name:28} {statistics.median(values):16.1f}  " + " ".join(f"{v:.1f}" for v in values))
PYTHON
echo "$n_failed steps failed; everything is in $output; $SECONDS s"
[ "$n_failed" -eq 0 ]
