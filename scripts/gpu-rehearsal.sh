#!/usr/bin/env bash
# The half hour on a card, without a card: the programs of bench/gpu.sh with a device of host memory in
# the card's place (tests/rehearsal/) are packed by scripts/gpu-bundle.sh, unpacked by Python on a bare
# Debian trixie that has no network and none of assay's libraries, and tested and timed there by
# bench/gpu.sh; nvidia-smi, compute-sanitizer, ncu, bench_cuda and the peer are stand-ins.
# usage: bash scripts/gpu-rehearsal.sh BUILD [ROOT]
#   BUILD: a build folder with tests (build/dev); ROOT: such a Debian, else debootstrap makes it
# Needs root, and debootstrap with its server; skipped (77) without. OUTPUT.json and the logs are left
# in build/rehearsal/.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
[ "$(id -u)" -eq 0 ] || { echo "it needs root"; exit 77; }
[ -n "${2:-}" ] || command -v debootstrap >/dev/null || { echo "it needs debootstrap"; exit 77; }
output=build/rehearsal
rm -rf "$output" && mkdir -p "$output"
machine=$(mktemp -d --tmpdir assay-rehearsal.XXXXXX)
trap 'rm -rf "$machine"' EXIT # no mount outlives its command, see within()

step() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }

# within COMMAND: as root in the machine's /src, with no network, and mounts and processes of its own
within() {
    unshare --net --mount --pid --fork bash -euo pipefail -c '
        mount --make-rprivate /
        mount -t proc proc "$1/proc"
        mkdir -p "$1/dev/shm" && mount -t tmpfs tmpfs "$1/dev/shm"
        exec env -i HOME=/root PATH=/opt/card:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
            chroot "$1" bash -c "cd /src; $2"' within "$machine" "$1"
}

# ends CODE COMMAND: within() ends with that code
ends() {
    local code=0
    within "$2" || code=$?
    [ "$code" -eq "$1" ] || { echo "FAILED: exit code $code, expected $1: $2"; exit 1; }
}

# stand_in NAME: a script of the machine's /opt/card, from standard input
stand_in() {
    mkdir -p "$machine/opt/card"
    { echo '#!/bin/bash'; cat; } >"$machine/opt/card/$1"
    chmod +x "$machine/opt/card/$1"
}

step "programs"
cmake --build "$build" --target rehearsal
commit=$(git describe --always --dirty)
models=()
if [ -d ../shared/models-arch ]; then # two are enough to see that they are found
    mkdir "$output/models" && cp ../shared/models-arch/arch-{qwen35,gemma2}.F32.gguf "$output/models"
    models=(--models "$output/models")
fi
bash scripts/gpu-bundle.sh -o "$output/bundle" --built "$build/rehearsal" "${models[@]}"

step "a machine"
if [ -n "${2:-}" ]; then
    cp -a "$2/." "$machine"
else
    debootstrap --variant=minbase --include=python3 trixie "$machine" http://deb.debian.org/debian \
        >"$output/debootstrap.log" || { tail "$output/debootstrap.log"; exit 1; }
fi
mkdir "$machine/src"
git ls-files -z bench scripts data tests/data/tasks | xargs -0 tar -c | tar -x -C "$machine/src"
cp "$output"/bundle/*.tar.xz "$machine/src"
stand_in nvidia-smi <<'F'
case $* in
    *compute_cap*) echo 9.0 ;;
    *driver_version*) echo 580.0 ;;
    *clocks*) echo "1980 MHz, 2619 MHz" ;;
    *) echo "NVIDIA H100 80GB HBM3 (rehearsed)" ;;
esac
F
for tool in compute-sanitizer ncu; do # run what comes after their options
    stand_in "$tool" <<'F'
while [ $# -gt 0 ] && [[ $1 != */assay ]]; do shift; done
"$@"
F
done
stand_in peer <<'F'
echo "0.00.100.000 I perplexity: calculating perplexity over 2 chunks"
echo "0.00.900.000 I Final estimate: PPL = 1.0"
for argument; do [ "${previous:-}" != --kl-divergence-base ] || : >>"$argument"; previous=$argument; done
F

step "unpacked"
within "python3 -c 'import sys, tarfile; [tarfile.open(f).extractall() for f in sys.argv[1:]]' *.tar.xz"
within '! ldconfig -p | grep -E "cjson|cmocka|microhttpd|cublas" && ! command -v gcc cmake nvcc git curl'
within '! exec 3<>/dev/tcp/deb.debian.org/80' 2>/dev/null
ends 3 'build/gpu-ready/bench/bench_cuda --device 9' # it starts; what it times is too much for this device
cat >"$machine/src/build/gpu-ready/bench/bench_cuda" <<'F'
#!/bin/bash
echo '[{"name": "ceiling", "flops": 1e12, "seconds": 1e-3}]' >"$2"
F

# What the device of host memory can do in minutes; MODELS as small as they get.
small='SHAPES=tiny SMALL=tiny VOCAB=512 TYPES=Q4_K_M ROUNDS=1 CTX=64 CHUNKS=2 LONG_CTX=128 PEER=/opt/card/peer'
step "a card"
ends 0 "env $small BUDGET=7200 PATIENCE=1000 bash bench/gpu.sh result.json"
cp "$machine"/src/result* "$output"
python3 - "$output/result.json" <<'F'
import json, sys
result = json.load(open(sys.argv[1]))
steps = {s["name"]: s["result"] for s in result["steps"]}
missing = [name for name in ("prepared programs", "test_cuda_model", "kld, same", "hellaswag, same",
           "record, same", "kernels", "sanitizer racecheck", "counters of fast") if steps.get(name) != "ok"]
runs = {row["name"] for row in result["runs"]}
for name in ("perplexity fast", "perplexity high", "perplexity exact", "perplexity of 128 fast",
             "record-logits fast", "kld-logits fast", "record-compact fast", "kld-compact fast",
             "kld-live fast", "perplexity peer -b 2048"):
    missing += [] if "tiny Q4_K_M " + name in runs else [name]
missing += [] if "qwen3moe Q4_K_M perplexity fast" in runs else ["the mixture"]
sys.exit("FAILED: not there: " + ", ".join(missing) if missing else 0)
F
step "another card: nothing fits it, and nothing can be built"
sed -i 's/echo 9.0/echo 8.9/' "$machine/opt/card/nvidia-smi"
ends 1 'bash bench/gpu.sh another.json'
step "no card"
rm "$machine/opt/card/nvidia-smi"
ends 3 'bash bench/gpu.sh none.json'
step "done: commit $commit"
