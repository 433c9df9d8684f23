#!/usr/bin/env bash
# The long check, before a release: every test under gcc and clang; those without reference
# models under AddressSanitizer with UndefinedBehaviorSanitizer and under ThreadSanitizer; unit
# tests under valgrind; each fuzzer for 60 seconds; packages; clang-format and clang-tidy. Takes
# an hour or more. A step that fails does not stop the next: the end lists what passed, failed
# and was skipped. What each step said is in build/check-all/.
# usage: bash scripts/check-all.sh [STEP...]     (default: all; `list` names them)
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
jobs=$(nproc)
logs=build/check-all

presets=(dev dev-clang asan-ubsan tsan)
steps=(dependencies)
for preset in "${presets[@]}"; do
    steps+=("build-$preset" "test-$preset")
done
steps+=(valgrind-tests valgrind-program ptx fuzzers package clang-format clang-tidy)

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
        # The bundled model stands for the reference models: those take too long here.
        asan-ubsan | tsan) choice=(-LE 'slow|lint' -E reference) ;;
    esac
    # Where addresses are too random for ThreadSanitizer, its programs do not start.
    if [ "$1" = tsan ] && setarch -R true 2>/dev/null; then
        launch=(setarch -R)
    fi
    "${launch[@]}" ctest --test-dir "build/$1" --output-on-failure -j "$jobs" "${choice[@]}"
}

# Valgrind has no AVX-512: it hides it from CPUID, so that the AVX2 kernels are what it checks.
memcheck=(valgrind -q --error-exitcode=9 --leak-check=full)

# The long sweeps would take days; what they sweep over is in the other tests too.
valgrind_tests() {
    need valgrind || return
    local test code failed=0 n=0
    for test in build/dev/tests/{base,gguf,kernels,model,eval,cli}/test_*; do
        case $test in
            *.py | *_reference* | *hostile | *mutations | *test_decode | *test_fmath | *cuda*) continue ;;
        esac
        if [ ! -x "$test" ] || [ ! -f "$test" ]; then
            continue
        fi
        n=$((n + 1))
        printf '%s\n' "$test"
        code=0
        timeout 3600 "${memcheck[@]}" "$test" || code=$?
        [ "$code" -eq 0 ] || [ "$code" -eq 77 ] || { printf 'FAILED (%d): %s\n' "$code" "$test"; failed=1; }
    done
    [ "$n" -gt 0 ] || { skip "build/dev has no tests"; return; }
    return "$failed"
}

valgrind_program() {
    need valgrind || return
    local model failed=0
    for model in data/tiny.F16.gguf data/tiny.Q4_K_M.gguf; do
        "${memcheck[@]}" build/dev/assay perplexity -m "$model" -f docs/handbook.md -c 64 \
            --chunks 2 || failed=1
    done
    return "$failed"
}

package() {
    cmake --preset release && cmake --build --preset release --target package -- -j "$jobs"
}

clang_format() {
    need clang-format || return
    git ls-files -z '*.c' '*.h' '*.cu' | xargs -0 clang-format --dry-run -Werror
}

clang_tidy() {
    need clang-tidy || return
    [ -f build/dev-clang/compile_commands.json ] || { skip "build/dev-clang was not configured"; return; }
    git ls-files -z {base,gguf,kernels,model,eval,cli}/'*.c' |
        xargs -0 -P "$jobs" -n 4 clang-tidy -p build/dev-clang --quiet
}

run_step() {
    case $1 in
        dependencies) bash scripts/deps.sh all ;;
        build-*) build "${1#build-}" ;;
        test-*) run_tests "${1#test-}" ;;
        valgrind-tests) valgrind_tests ;;
        valgrind-program) valgrind_program ;;
        ptx) need nvcc && bash tests/ptx/all.sh build/dev ;;
        fuzzers) need clang && bash scripts/fuzz.sh 60 ;;
        package) package ;;
        clang-format) clang_format ;;
        clang-tidy) clang_tidy ;;
    esac
}

if [ "${1:-}" = list ]; then
    printf '%s\n' "${steps[@]}"
    exit
fi
for step in "$@"; do
    [[ " ${steps[*]} " == *" $step "* ]] || { echo "check-all.sh: no step $step (there are: ${steps[*]})" >&2; exit 2; }
done
[ $# -eq 0 ] || steps=("$@")

mkdir -p "$logs"
trap 'echo; echo "check-all.sh: interrupted" >&2; exit 130' INT
passed=() failed=() skipped=()
for step in "${steps[@]}"; do
    printf '%-18s ' "$step"
    began=$SECONDS code=0
    run_step "$step" >"$logs/$step.log" 2>&1 </dev/null || code=$?
    case $code in
        0) passed+=("$step") verdict="passed $(grep -E '^[0-9]+% tests passed' "$logs/$step.log" || true)" ;;
        77) skipped+=("$step") verdict="skipped ($(tail -n 1 "$logs/$step.log"))" ;;
        *) failed+=("$step") verdict="FAILED (exit code $code, see $logs/$step.log)" ;;
    esac
    printf '%6d s  %s\n' $((SECONDS - began)) "$verdict"
done

printf '\n%d s; passed %d: %s\n' "$SECONDS" "${#passed[@]}" "${passed[*]}"
printf 'skipped %d: %s\n' "${#skipped[@]}" "${skipped[*]}"
printf 'failed %d: %s\n' "${#failed[@]}" "${failed[*]}"
[ ${#failed[@]} -eq 0 ]
