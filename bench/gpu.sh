#!/usr/bin/env bash
# Everything about the CUDA backend that needs a GPU, in one command: build for the card at hand,
# test, benchmark. One table, one JSON file; phases of perplexity beside what gpu_model.py reckons.
# Needs no network; under ten minutes on one GPU and 16 processors. Leaves the card's settings alone.
#
# usage: [PEER=path/to/llama-perplexity] bash bench/gpu.sh [OUTPUT.json]
#   PARTS="correctness speed why": tests against the CPU; what is timed; sanitizers and counters
#   SHAPES="8b 1b"  TYPES="Q4_K_M F16 IQ4_XS"  CHUNKS=112  ROUNDS=3  CTX=512  BUDGET=520 (seconds)
#   COMPARED=Q4_K_M, of TYPES: the model that is recorded and compared, too; none leaves that out
#   PEER_SIZES="2048 4096": PEER's -b and -ub, of which the better one counts
#   LONG_CTX=4096 and MIXTURE=qwen3moe: of COMPARED, in the first shape, windows of so many tokens and
#   a model of that architecture, too; none leaves either out
#   SMALL=1b: the shape of the mixture, and of the layer whose counters are read; VOCAB=128256, of all
#   PATIENCE=100: per cent of the time that each step has
#   MODELS=folder for synthetic models (up to 17 GB, and 8 for recordings; default: memory if there
#   is enough)
#
#        bash bench/gpu.sh --prepare [ARCHITECTURE [BUILT]]     (default: 90a)
# On a machine with nvcc and assay's libraries, but without a GPU: build everything, or take what the
# folder BUILT has of it, and put it, with the libraries, into build/gpu-ready. Programs of that folder
# are taken before any is built, if they are of the card's architecture and of this commit.
# scripts/gpu-bundle.sh packs them.
#
# A step that fails, or does not end in its time, does not stop the others; the exit code says whether
# one did: 0 none, 1 one did or the script was stopped, 3 there is no GPU. What does not fit into BUDGET
# is left out and listed. OUTPUT.json is written after each part, so it outlives a kill.
# PEER runs beside assay on the same models, in turn; bench/build_peer.sh builds it. Everything
# together takes longer than one budget: PARTS, SHAPES and TYPES divide it into calls. All logs are
# packed beside OUTPUT.json.
set -uo pipefail
cd "$(dirname "$0")/.."
folder=build/gpu
ready=build/gpu-ready
programs="assay bench/make_model bench/bench_cuda"
tests="tests/kernels/test_cuda_decode tests/kernels/test_cuda tests/kernels/test_cuda_choose tests/kernels/test_mixing tests/kernels/test_cuda_experts tests/kernels/test_shares tests/kernels/test_cuda_attention tests/kernels/test_cuda_halves tests/kernels/test_cuda_integers tests/kernels/test_cuda_gated tests/kernels/test_cuda_waiting tests/kernels/test_cuda_linear tests/kernels/test_cuda_recurrent tests/kernels/test_cuda_score tests/kernels/test_cuda_alone tests/model/test_cuda_model"

# Nothing where there is no git, or no repository.
commit() { git describe --always --dirty 2>/dev/null || true; }
built= # that of prepared programs

# configure ARCHITECTURE TESTS
configure() {
    local architecture=$1 with_tests=$2
    command -v nvcc >/dev/null || export CUDACXX=${CUDACXX:-/usr/local/cuda/bin/nvcc}
    cmake -S . -B build/gpu -G "$(command -v ninja >/dev/null && echo Ninja || echo 'Unix Makefiles')" \
        -DCMAKE_BUILD_TYPE=Release -DASSAY_CUDA=ON -DASSAY_MPI=OFF -DASSAY_TESTS="$with_tests" \
        -DCMAKE_CUDA_ARCHITECTURES="$architecture-real" \
        -DCMAKE_EXE_LINKER_FLAGS="-Wl,--disable-new-dtags,-rpath,'\$ORIGIN/lib:\$ORIGIN/../lib:\$ORIGIN/../../lib'"
}
export -f configure # for timeout, which runs programs only

prepare() {
    local architecture=${1:-90a} built=${2:-$folder} program library
    if [ -z "${2:-}" ]; then
        configure "$architecture" ON || return
        # shellcheck disable=SC2086
        cmake --build "$folder" -j "$(nproc)" --target $(basename -a $programs $tests) || return
    fi
    rm -rf "$ready"
    for program in $programs $tests; do
        [ -z "${2:-}" ] || [ -e "$built/$program" ] || continue
        mkdir -p "$ready/$(dirname "$program")" "$ready/lib"
        strip -o "$ready/$program" "$built/$program" || return
        # The C library is everyone's; what else is shared goes along.
        ldd "$built/$program" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
            grep -Ev '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so' | while read -r library; do
            cp -L "$library" "$ready/lib/"
        done
    done
    echo "$architecture" >"$ready/architecture"
    commit >"$ready/commit"
    du -sh "$ready"
}

if [ "${1:-}" = --prepare ]; then
    prepare "${2:-}" "${3:-}"
    exit
fi

output=$(realpath -m "${1:-build/gpu.json}")
budget=${BUDGET:-520}
n_failed=0
mkdir -p "$folder" "$(dirname "$output")"
logs=$folder/logs
rm -rf "$logs" && mkdir -p "$logs"

skipping= # not empty: there is no time for what comes
left() { [ -n "$skipping" ] && echo 0 || echo $((budget - SECONDS)); }

# note NAME RESULT [DETAIL]: a row of the JSON's steps. DETAIL: without what JSON would escape
note() {
    local detail=${3:-}
    detail=$(printf '%s' "$detail" | LC_ALL=C tr -cd '\040-\176' | tr '"\\' "'/")
    printf '{"name": "%s", "result": "%s", "detail": "%s", "second": %d}\n' "$1" "$2" "$detail" "$SECONDS" \
        >>"$logs/steps.jsonl"
    printf '%4d s  %-34s %s  %s\n' "$SECONDS" "$1" "$2" "${3:-}"
    [ "$2" != FAILED ] || n_failed=$((n_failed + 1))
}

log_of() { echo "$logs/${1// /-}.log"; }

# within SECONDS LOG COMMAND...: 124 if it does not end in time; less than SECONDS where less are left.
# In the background, since a signal meets a script when it waits.
child=
within() {
    local seconds=$(($1 * ${PATIENCE:-100} / 100 + 1)) log=$2 code=0
    shift 2
    [ "$seconds" -le "$(left)" ] || seconds=$(left)
    timeout -k 10 "$seconds" "$@" >"$log" 2>&1 &
    child=$!
    wait "$child" || code=$?
    [ "$code" -ne 124 ] || echo "no end after $seconds s" >>"$log"
    return "$code"
}

# step NAME SECONDS COMMAND...: run it if there is time; its output goes to a log
step() {
    local name=$1 seconds=$2 log code=0
    log=$(log_of "$name")
    shift 2
    if [ "$(left)" -lt 10 ]; then
        note "$name" "left out"
        return 1
    fi
    within "$seconds" "$log" "$@" || code=$?
    if [ "$code" -eq 0 ]; then
        note "$name" ok
        return 0
    fi
    note "$name" FAILED "exit $code; $(tail -n 1 "$log" | cut -c 1-200)"
    tail -n 15 "$log" | sed 's/^/    | /'
    return 1
}

gpu() { nvidia-smi --query-gpu="$1" --format=csv,noheader | head -n 1; }

# keep: the document so far, and its tables
keep() {
    CARD=$card ARCHITECTURE=$architecture DRIVER=$(gpu driver_version) CLOCKS=$(gpu clocks.sm,clocks.mem) \
        COMMIT=${built:-$(commit)} \
        python3 bench/gpu_report.py document "$logs" "$output"
}

finish() {
    trap - INT TERM
    keep 2>"$logs/tables.log" || { note "tables" FAILED "$(tail -n 1 "$logs/tables.log")"; keep >/dev/null 2>&1; }
    tar -C "$folder" -czf "${output%.json}-logs.tar.gz" logs
    echo "$n_failed steps failed; everything is in $output and ${output%.json}-logs.tar.gz; $SECONDS s"
    [ "$n_failed" -eq 0 ] || exit 1
    exit 0
}

card=$(gpu name) && [ -n "$card" ] || { echo "gpu.sh: nvidia-smi finds no GPU" >&2; exit 3; }
architecture=$(gpu compute_cap | tr -d .)
[ "$architecture" != 90 ] || architecture=90a
echo "$card, sm_$architecture, driver $(gpu driver_version), commit $(commit)"

trap '[ -z "$child" ] || kill "$child"; note "the script" FAILED "it was stopped"; finish' INT TERM

# cuBLASLt and its header may be a Python package's.
blas=$(python3 bench/gpu_report.py find 'libcublasLt.so.1[23]')
header=$(python3 bench/gpu_report.py find cublasLt.h)
# add VARIABLE FOLDER: to a list of folders
add() { export "$1=${!1:+${!1}:}$2"; }
[ -z "$blas" ] || add LD_LIBRARY_PATH "$(dirname "$blas")"
[ -z "$header" ] || add C_INCLUDE_PATH "$(dirname "$header")"
echo "cuBLASLt: ${blas:-not found beside the loader path}"

# prepared: whether the folder has programs of this card and of this commit. The commit is not asked
# for where there is no repository.
prepared() {
    [ "$(cat "$ready/architecture" 2>/dev/null)" = "$architecture" ] || return 1
    [ -z "$(commit)" ] || [ "$(cat "$ready/commit")" = "$(commit)" ]
}

# Take what was prepared; else build with the tests, or without them.
bin=$folder
if prepared; then
    note "prepared programs" ok "$ready"
    bin=$ready built=$(cat "$ready/commit")
    [ ! -d "$ready/models" ] || export ASSAY_REFERENCE_MODELS=$PWD/$ready/models
    [ ! -e "$ready/peer/llama-perplexity" ] || PEER=${PEER:-$ready/peer/llama-perplexity}
else
    # shellcheck disable=SC2086
    { step "configure" 60 bash -c "configure $architecture ON" &&
        step "build" 240 cmake --build "$folder" -j "$(nproc)" --target $(basename -a $programs $tests); } ||
        { step "configure without tests" 60 bash -c "configure $architecture OFF" &&
            step "build without tests" 240 cmake --build "$folder" -j "$(nproc)" --target $(basename -a $programs); } ||
        { note "programs" FAILED "none for $architecture and this commit in $ready: bash bench/gpu.sh --prepare $architecture" && finish; }
fi
assay=$bin/assay

# part NAME: what comes belongs to it, and is skipped if it is not asked for.
part() {
    keep >/dev/null 2>&1
    case " ${PARTS:-correctness speed why} " in *" $1 "*) skipping= ;; *) skipping=1 ;; esac
}

# Tests: kernels and models on the device against the CPU; then the program.
part correctness
for test in $tests; do
    name=$(basename "$test")
    [ -e "$bin/$test" ] || { note "$name" "not here"; continue; }
    step "$name" 240 "$bin/$test" || continue
    ! grep -q 'no CUDA device here' "$(log_of "$name")" || note "$name" FAILED "it found no device"
done

# same NAME ARGS...: exact on the device must be the CPU's document but for `run`
same() {
    local name=$1
    shift
    step "$name, cpu" 60 "$assay" "$@" --precision exact --device cpu -q --force --json "$folder/cpu.json" || return
    step "$name, cuda" 60 "$assay" "$@" --precision exact --device cuda -q --force --json "$folder/cuda.json" || return
    step "$name, same" 10 python3 bench/gpu_report.py same "$folder/cpu.json" "$folder/cuda.json"
}

# record NAME DEVICE: a base-logits file
record() {
    step "record, $1" 60 "$assay" perplexity -m data/tiny.F16.gguf -f "$text" -c 64 --chunks 10 --precision exact \
        --device "$1" -q --save-all-logits "$folder/$1.base" --force
}

# near NAME ARGS...: high on the device, and the CPU's exact, agree on the estimate
near() {
    local name=$1
    shift
    step "$name, high" 60 "$assay" "$@" --precision high --device cuda -q --force --json "$folder/cuda.json" || return
    step "$name, high is near" 10 python3 bench/gpu_report.py near "$folder/cpu.json" "$folder/cuda.json"
}

text=data/text.txt
for type in F16 Q4_K_M; do
    same "perplexity $type" perplexity -m data/tiny.$type.gguf -f $text -c 64 --chunks 20 &&
        near "perplexity $type" perplexity -m data/tiny.$type.gguf -f $text -c 64 --chunks 20
done
same "kld" kld -m data/tiny.Q4_K_M.gguf --base data/tiny.F16.gguf -f $text -c 64 --chunks 10 --js
tasks=tests/data/tasks
same "hellaswag" perplexity -m data/tiny.F16.gguf -f $tasks/hellaswag.txt --hellaswag
same "winogrande" perplexity -m data/tiny.F16.gguf -f $tasks/winogrande.csv --winogrande
record cpu && record cuda && step "record, same" 10 cmp "$folder/cpu.base" "$folder/cuda.base"
[ ! -e "$folder/cpu.base" ] || same "kld of a recording" kld -m data/tiny.Q4_K_M.gguf --base "$folder/cpu.base"

part speed
step "kernels" 120 "$bin/bench/bench_cuda" --json "$logs/kernels.json"
cat "$(log_of kernels)" 2>/dev/null

# Whole runs, in turn, on models made on the spot.
if [ -z "${MODELS:-}" ]; then
    MODELS=$folder
    [ "$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1)" -lt 40000000 ] 2>/dev/null || MODELS=/dev/shm
fi
ctx=${CTX:-512} chunks=${CHUNKS:-112}
windows="-f $text -c $ctx --chunks $chunks"

# own_run NAME ARGS...: a row about an evaluation of assay
own_run() {
    local name=$1
    shift
    step "$name" 60 "$assay" "$@" --device cuda -q --force --json "$folder/run.json" || return
    python3 bench/gpu_report.py run "$folder/run.json" "$name" >>"$logs/runs.jsonl" ||
        note "$name, its row" FAILED "$folder/run.json cannot be read"
}

# peer_run NAME ARGS...: a row about one of PEER, with each of its batch sizes; nothing without PEER
peer_run() {
    local name=$1 size begun
    shift
    [ -n "${PEER:-}" ] || return 0
    for size in ${PEER_SIZES:-2048 4096}; do
        begun=$(date +%s.%N)
        # shellcheck disable=SC2086
        step "$name -b $size" 120 "$PEER" "$@" -ngl 99 -b "$size" -ub "$size" &&
            python3 bench/gpu_report.py peer "$(log_of "$name -b $size")" "$name -b $size" "$begun" "$(date +%s.%N)" \
                $((ctx * chunks)) >>"$logs/runs.jsonl"
    done
}

# plain MODEL NAME: perplexity
plain() {
    local model=$1 name=$2
    # shellcheck disable=SC2086
    {
        own_run "$name perplexity fast" perplexity -m "$model" $windows --precision fast
        own_run "$name perplexity high" perplexity -m "$model" $windows --precision high
        peer_run "$name perplexity peer" -m "$model" $windows
    }
}

# once MODEL NAME: what is slow, and long windows
once() {
    local model=$1 name=$2 long=${LONG_CTX:-4096}
    own_run "$name perplexity exact" perplexity -m "$model" -f $text -c "$ctx" --chunks $((chunks < 16 ? chunks : 16)) --precision exact
    [ "$long" = none ] || for precision in fast high; do
        own_run "$name perplexity of $long $precision" perplexity -m "$model" -f $text -c "$long" \
            --chunks $((ctx * chunks / long)) --precision $precision
    done
}

# compared MODEL NAME: recording, and the divergence from the recordings and from the model itself
compared() {
    local model=$1 name=$2 base=$MODELS/assay.$$.base peer_base=$MODELS/assay.$$.peer-base
    # shellcheck disable=SC2086
    {
        own_run "$name record-logits fast" record -m "$model" $windows --format logits -o "$base" --force --precision fast
        own_run "$name kld-logits fast" kld -m "$model" --base "$base" --precision fast
        peer_run "$name record-logits peer" -m "$model" $windows --kl-divergence-base "$peer_base"
        [ ! -e "$peer_base" ] || peer_run "$name kld-logits peer" -m "$model" $windows --kl-divergence-base "$peer_base" --kl-divergence
        rm -f "$base" "$peer_base"
        own_run "$name record-compact fast" record -m "$model" $windows -o "$base" --head-by-path --force --precision fast
        own_run "$name kld-compact fast" kld -m "$model" --base "$base" --precision fast
        rm -f "$base"
        own_run "$name kld-live fast" kld -m "$model" --base "$model" $windows --precision fast
    }
}

# made MODEL SHAPE TYPE ARGS...: a model; whether there is one
made() {
    local model=$1 shape=$2 type=$3
    shift 3
    step "make $shape $type${1:+ ${*: -1}}" 100 "$bin/bench/make_model" --shape "$shape" --vocab "${VOCAB:-128256}" --type "$type" -o "$model" "$@"
}

shapes=${SHAPES:-8b 1b} compared=${COMPARED:-Q4_K_M} mixture=${MIXTURE:-qwen3moe}
for shape in $shapes; do
    for type in ${TYPES:-Q4_K_M F16 IQ4_XS}; do
        model=$MODELS/assay.$$.$shape.$type.gguf
        if made "$model" "$shape" "$type"; then
            for ((round = 0; round < ${ROUNDS:-3}; round++)); do
                plain "$model" "$shape $type"
                [ "$type" != "$compared" ] || compared "$model" "$shape $type"
            done
            [ "$type" != "$compared" ] || once "$model" "$shape $type"
        fi
        rm -f "$model"
    done
done
if [ "$mixture" != none ] && [ "$compared" != none ]; then
    model=$MODELS/assay.$$.$mixture.gguf
    if made "$model" "${SMALL:-1b}" "$compared" --experts 128 --arch "$mixture"; then
        for ((round = 0; round < ${ROUNDS:-3}; round++)); do
            plain "$model" "$mixture $compared"
        done
    fi
    rm -f "$model"
fi

# Why: what the sanitizers see, and the kernels' counters.
part why
tool() { command -v "$1" || python3 bench/gpu_report.py find "$1"; }
sanitizer=$(tool compute-sanitizer) ncu=$(tool ncu)

# watch NAME FAULT COMMAND...: a tool that the machine may refuse, which is no failure. FAULT: what its
# output has where it found something
watch() {
    local name=$1 fault=$2 log code=0
    log=$(log_of "$name")
    shift 2
    if [ "$(left)" -lt 60 ]; then
        note "$name" "left out"
        return
    fi
    within 120 "$log" "$@" || code=$?
    if [ "$code" -eq 0 ]; then
        note "$name" ok
    elif grep -Eq "$fault" "$log"; then
        note "$name" FAILED "$(grep -E "$fault" "$log" | tail -n 1)"
        grep -m 12 '=========' "$log" | sed 's/^/    | /'
    elif [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then
        note "$name" FAILED "$(tail -n 1 "$log" | cut -c 1-160)"
    else
        note "$name" refused "exit $code; $(tail -n 1 "$log" | cut -c 1-160)"
    fi
}

# sanitize NAME TOOL KERNELS ARGS... KERNELS: what the names of those that are watched contain, or ""
# for all
sanitize() {
    local name="$1 $2" watched=$2 filter=()
    [ -z "$3" ] || filter=(--kernel-name "kns=$3")
    shift 3
    watch "$name" 'SUMMARY: [1-9]' "$sanitizer" --tool "$watched" "${filter[@]}" --error-exitcode 9 "$assay" "$@" --device cuda -q
}
one="perplexity -m data/tiny.Q4_K_M.gguf -f $text -c 32 --chunks 1"
if [ -n "$sanitizer" ]; then
    # Without cuBLAS first: its library is hundreds of megabytes, which a sanitizer reads, too.
    # shellcheck disable=SC2086
    {
        sanitize "sanitizer of exact" memcheck "" $one --precision exact
        sanitize "sanitizer of exact" initcheck "" $one --precision exact
        sanitize "sanitizer of exact" synccheck "" $one --precision exact
        sanitize "sanitizer" memcheck "" $one
    }
    sanitize "sanitizer" racecheck "" kld -m data/tiny.Q4_K_M.gguf --base data/tiny.F16.gguf -f $text -c 32 --chunks 1 --js --precision exact
    sanitize "sanitizer of attention" racecheck run_flash perplexity -m data/tiny.Q4_K_M.gguf -f $text -c 150 --chunks 1 --precision fast
else
    note "compute-sanitizer" "not here"
fi
if [ -n "$ncu" ]; then
    model=$MODELS/assay.$$.counters.gguf
    if made "$model" "${SMALL:-1b}" Q4_K_M --layers 1; then
        for precision in exact fast; do
            watch "counters of $precision" '==ERROR==.*Failed' "$ncu" --set basic --print-summary per-kernel "$assay" \
                perplexity -m "$model" -f $text -c "$ctx" --chunks $((chunks < 8 ? chunks : 8)) --device cuda -q --precision $precision
        done
    fi
    rm -f "$model"
else
    note "ncu" "not here"
fi
finish
