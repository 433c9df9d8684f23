#!/usr/bin/env bash
# The long check, before a release: every test under gcc and clang; those without reference
# models under AddressSanitizer with UndefinedBehaviorSanitizer, those with threads under
# ThreadSanitizer; hundreds of random models, two published ones; unit tests under valgrind; changed
# GPU kernels; each fuzzer for 60 seconds; all files of a release; a new user's first steps on new machines; half an
# hour on a card, where there is none; the harness lm_eval with this program; a report in a browser;
# the program for aarch64 under qemu; clang-format and clang-tidy. Takes some two hours of two
# processors; each step says how much of their time it took. A step that fails does not stop the next:
# the end lists what passed, failed and was skipped. What each step said is in build/check-all/.
# usage: bash scripts/check-all.sh [STEP...]     (default: all but ptx-all; `list` names them)
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
jobs=$(nproc)
logs=build/check-all

presets=(dev dev-clang asan-ubsan tsan)
steps=(dependencies)
for preset in "${presets[@]}"; do
    steps+=("build-$preset" "test-$preset")
done
steps+=(random-models random-matrices real-models at-length serve-hours report-layout lm-eval valgrind-tests valgrind-program
        ptx fuzzers release bare-machines gpu-rehearsal aarch64 portable clang-format clang-tidy)
on_request=(ptx-all) # hours

# Code of a step that cannot run here, as ctest has it.
skip() {
    printf '%s\n' "$1"
    return 77
}

need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { skip "$tool is not installed"; return 77; }
    done
}

build() {
    [ "$1" != dev-clang ] || need clang || return
    cmake --preset "$1" && cmake --build --preset "$1" -- -j "$jobs"
}

run_tests() {
    local launch=() choice=()
    if [[ " ${failed[*]} " == *" build-$1 "* || ! -f build/$1/CTestTestfile.cmake ]]; then
        skip "build/$1 was not built"
        return
    fi
    case $1 in
        # The compiled GPU kernels are the same for each: the first build runs them.
        dev-clang) choice=(-LE ptx) ;;
        # The bundled model stands for the reference models: those take too long here.
        asan-ubsan) choice=(-LE 'slow|lint|ptx' -E reference) ;;
        # A few runs of the program show what threads do to each other; hundreds show no more.
        tsan) choice=(-R '^test_|^cli_(perplexity|kld|tasks|score|interrupt)$' -LE 'slow|lint|ptx'
                      -E 'reference|cuda|tokenizer|mutations|decode|fmath|hostile') ;;
    esac
    # Where addresses are too random for ThreadSanitizer, its programs do not start.
    if [ "$1" = tsan ] && setarch -R true 2>/dev/null; then
        launch=(setarch -R)
    fi
    local code=0
    "${launch[@]}" ctest --test-dir "build/$1" --output-on-failure -j "$jobs" "${choice[@]}" \
        --output-junit junit.xml --test-output-size-passed 65536 || code=$?
    python3 -B scripts/skipped.py "build/$1/junit.xml"
    return "$code"
}

# What calls base/system/, with the form for systems other than Linux.
portable() {
    cmake --preset dev -B build/portable -DASSAY_PORTABLE=ON && cmake --build build/portable -- -j "$jobs" &&
        ctest --test-dir build/portable --output-on-failure -j "$jobs" -R '^test_' \
            -L '^(base|gguf|cluster|serve|cli|library)$'
}

# Valgrind has no AVX-512: it hides it from CPUID, so that the AVX2 kernels are what it checks.
memcheck=(valgrind -q --error-exitcode=9 --leak-check=full --child-silent-after-fork=yes)

# Sweeps would take days: each test has half a minute of a processor, and ten on the clock, in which
# nothing may be found. Left out: results of reference models, the GPU's kernels, limits of seconds,
# what is compared with long doubles, which have 64 bits there, and pages that are lost on purpose.
memcheck_test() {
    local log code=0
    log=$(mktemp)
    (ulimit -t 30 && exec timeout -s KILL 600 $MEMCHECK "$1") >"$log" 2>&1 || code=$?
    if grep -q '^==' "$log"; then
        code=9
    fi
    case $code in
        0 | 77) printf 'passed: %s\n' "$1" ;;
        137) printf 'stopped in time: %s\n' "$1" ;;
        *) printf 'FAILED (%d): %s\n' "$code" "$1"; cat "$log" ;;
    esac
    rm "$log"
    [[ $code = @(0|77|137) ]]
}

valgrind_tests() {
    need valgrind || return
    local tests no='_reference|cuda|hostile$|speed$|test_fmath$|test_pair_lanes$|test_faults$'
    mapfile -t tests < <(find build/dev/tests -name 'test_*' -type f -perm -u+x \
        -not -path '*/ptx/*' | grep -Ev "$no" | sort)
    [ ${#tests[@]} -gt 0 ] || { skip "build/dev has no tests"; return; }
    export -f memcheck_test
    export MEMCHECK="${memcheck[*]}"
    printf '%s\0' "${tests[@]}" | xargs -0 -P "$jobs" -I '{}' bash -c 'memcheck_test "$1"' memcheck '{}'
}

# More commands, larger inputs, more kills: the quick forms are among the tests. Another sample each
# day; of the bounds, each test begins what it can within a minute, so they take a quarter of an hour.
at_length() {
    [ -x build/dev/assay ] || { skip "build/dev/assay was not built"; return; }
    local name failed=0
    export ASSAY_TEST_SEED=${ASSAY_TEST_SEED:-$(date +%Y%m%d)}
    echo "seed $ASSAY_TEST_SEED"
    for name in bounds killed mpi hot_swap; do
        ASSAY_TEST_SLOW=1 python3 -B "tests/cli/test_$name.py" "$PWD/build/dev/assay" "$PWD" ||
            failed=1
    done
    return "$failed"
}

# 20,000 requests: some hundred are among the tests.
serve_hours() {
    [ -x build/dev/assay ] || { skip "build/dev/assay was not built"; return; }
    python3 -B bench/serve_hours.py "$PWD/build/dev/assay" "$PWD"
}

# A page of assay report in a browser, on narrow and on wide screens.
report_layout() {
    [ -x build/dev/assay ] || { skip "build/dev/assay was not built"; return; }
    python3 -B scripts/report-layout.py "$PWD/build/dev/assay" "$PWD"
}

# lm-evaluation-harness itself, from a package index, if one can be reached: the model of python/,
# and its own local-completions against assay serve.
lm_eval() {
    [ -x build/dev/assay ] || { skip "build/dev/assay was not built"; return; }
    local venv=build/check-all/venv
    python3 -m venv --system-site-packages "$venv" || { skip "python3 has no venv"; return; }
    "$venv/bin/pip" install -q --retries 1 'lm_eval[api]' || { skip "lm_eval cannot be installed"; return; }
    "$venv/bin/python" -B tests/python/test_lm_eval.py "$PWD/build/dev/assay" "$PWD"
}

valgrind_program() {
    need valgrind || return
    local model failed=0
    for model in data/tiny.F16.gguf data/tiny.Q4_K_M.gguf; do
        "${memcheck[@]}" build/dev/assay perplexity -m "$model" -f data/text.txt -c 64 \
            --chunks 2 || failed=1
    done
    return "$failed"
}

# Other models on another day. Which they were stands in the log.
random_models() {
    [ -x build/dev/assay ] || { skip "build/dev was not built"; return; }
    local first=$(($(date +%s) / 86400 * 1000)) i pids=() failed=0
    if command -v mpirun >/dev/null; then
        python3 -B tests/random_models/test_promises.py build/dev/assay . "$first" || failed=1
    fi
    for ((i = 0; i < jobs; i++)); do
        {
            python3 -B tests/random_models/test_random_models.py build/dev/assay . $((40 / jobs)) \
                $((first + i * 100)) &&
                python3 -B tests/random_models/test_mutations.py build/dev/assay . 0.5 $((first + i))
        } &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" || failed=1
    done
    return "$failed"
}

# Importance matrices of every architecture, against double precision.
random_matrices() {
    [ -x build/dev/assay ] || { skip "build/dev was not built"; return; }
    python3 -B tests/random_models/test_imatrix.py build/dev/assay . 1 $(($(date +%s) / 86400)) all
}

# What docs/precision.md says of two published models, and the output that pages show of them. They are
# fetched (335 MB) where the folder that ASSAY_MODELS names does not have them.
real_models() {
    [ -x build/dev/assay ] || { skip "build/dev/assay was not built"; return; }
    export ASSAY_MODELS=${ASSAY_MODELS:-$PWD/build/check-all/models}
    mkdir -p "$ASSAY_MODELS"
    bash scripts/get-models.sh "$ASSAY_MODELS" # without a network the test says which is absent
    python3 -B tests/real_models/test_precisions.py build/dev/assay . &&
        python3 -B tests/docs/printed.py run real build/dev/assay . build/dev
}

release() {
    [ -d ../shared/format ] || { skip "there is no reference material"; return; }
    [ -z "$(git status --porcelain)" ] || { skip "there are changes that no commit has"; return; }
    rm -rf build/check-all/release && bash scripts/release.sh build/check-all/release
}

# bench/gpu.sh on a bare machine, with a device of host memory in the card's place.
gpu_rehearsal() {
    [ -x build/dev/assay ] || { skip "build/dev/assay was not built"; return; }
    bash scripts/gpu-rehearsal.sh build/dev
}

clang_format() {
    need clang-format || return
    git ls-files -z '*.c' '*.h' '*.cu' | xargs -0 clang-format --dry-run -Werror
}

clang_tidy() {
    need clang-tidy || return
    [ -f build/dev-clang/compile_commands.json ] || { skip "build/dev-clang was not configured"; return; }
    local rooms
    mapfile -t rooms < <(awk '/^[a-z]/ { print $1 "/*.c" }' rooms.txt)
    git ls-files -z "${rooms[@]}" |
        xargs -0 -P "$jobs" -n 4 clang-tidy -p build/dev-clang --quiet
}

run_step() {
    case $1 in
        dependencies) bash scripts/deps.sh all ;;
        build-*) build "${1#build-}" ;;
        test-*) run_tests "${1#test-}" ;;
        valgrind-tests) valgrind_tests ;;
        valgrind-program) valgrind_program ;;
        random-models) random_models ;;
        random-matrices) random_matrices ;;
        real-models) real_models ;;
        at-length) at_length ;;
        serve-hours) serve_hours ;;
        report-layout) report_layout ;;
        lm-eval) lm_eval ;;
        ptx) need nvcc && bash tests/ptx/all.sh build/dev 1 ;;
        ptx-all) need nvcc && bash tests/ptx/all.sh build/dev ;;
        fuzzers) need clang && bash scripts/fuzz.sh 60 ;;
        release) release ;;
        bare-machines) bash scripts/bare-machines.sh ;;
        gpu-rehearsal) gpu_rehearsal ;;
        aarch64) bash scripts/check-aarch64.sh --tests ;;
        portable) portable ;;
        clang-format) clang_format ;;
        clang-tidy) clang_tidy ;;
    esac
}

if [ "${1:-}" = list ]; then
    printf '%s\n' "${steps[@]}" "${on_request[@]}"
    exit
fi
for step in "$@"; do
    [[ " ${steps[*]} ${on_request[*]} " == *" $step "* ]] || {
        echo "check-all.sh: no step $step (there are: ${steps[*]} ${on_request[*]})" >&2
        exit 2
    }
done
[ $# -eq 0 ] || steps=("$@")

# Seconds of processor time of all that has ended.
processor() {
    local fields
    read -ra fields <"/proc/$$/stat"
    echo $(((fields[15] + fields[16]) / $(getconf CLK_TCK)))
}

mkdir -p "$logs"
trap 'echo; echo "check-all.sh: interrupted" >&2; exit 130' INT
passed=() failed=() skipped=()
for step in "${steps[@]}"; do
    printf '%-18s ' "$step"
    began=$SECONDS used=$(processor) code=0
    run_step "$step" >"$logs/$step.log" 2>&1 </dev/null || code=$?
    case $code in
        0) passed+=("$step") verdict="passed $(grep -E '^[0-9]+% tests passed' "$logs/$step.log" || true)" ;;
        77) skipped+=("$step") verdict="skipped ($(tail -n 1 "$logs/$step.log"))" ;;
        *) failed+=("$step") verdict="FAILED (exit code $code, see $logs/$step.log)" ;;
    esac
    printf '%6d s  (processor %5d s)  %s\n' $((SECONDS - began)) $(($(processor) - used)) "$verdict"
done

printf '\n%d s; passed %d: %s\n' "$SECONDS" "${#passed[@]}" "${passed[*]}"
printf 'skipped %d: %s\n' "${#skipped[@]}" "${skipped[*]}"
printf 'failed %d: %s\n' "${#failed[@]}" "${failed[*]}"
[ ${#failed[@]} -eq 0 ]
