#!/usr/bin/env bash
# All tests, as a fresh machine can run them: install what is missing, build with warnings as
# errors, run everything through ctest, run the unit tests and the tiny model again under
# AddressSanitizer and UndefinedBehaviorSanitizer, each fuzzer for 1 second, and the program for
# aarch64 under qemu.
# usage: bash scripts/test.sh
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)

step() {
    printf '\n== %s (%d s)\n' "$1" "$SECONDS"
}

# Quiet unless it fails: then what the compiler said.
build() {
    local log=build/$1.log
    cmake --preset "$1" >/dev/null
    if ! cmake --build --preset "$1" -- -j "$jobs" >"$log" 2>&1; then
        grep -v '^\[' "$log" >&2
        return 1
    fi
}

# And, whether it fails or not, what was skipped and why.
run_tests() {
    local code=0 # two more than processors: some of them wait
    ctest --preset "$1" -j $((jobs + 2)) --output-junit junit.xml --test-output-size-passed 65536 \
        "${@:2}" || code=$?
    python3 -B scripts/skipped.py "build/$1/junit.xml"
    return "$code"
}

# Run a command while others go on, in a process group of its own, which ends with the script and
# does not change its exit code.
groups=()
trap 'kill -- "${groups[@]}" 2>/dev/null || :; wait' EXIT
beside() {
    set -m
    "$@" </dev/null &
    set +m
    groups+=("-$!")
}

sanitized() {
    cmake --preset asan-ubsan && nice -n 19 ninja -C build/asan-ubsan -j "$jobs"
}

step "dependencies"
bash scripts/deps.sh test
if [ -n "${CI:-}" ]; then # what the last step needs in any case is fetched while others compute
    mkdir -p build
    beside bash scripts/deps.sh aarch64 >build/deps-aarch64.log 2>&1
fi

step "gcc, warnings are errors"
build dev
step "all tests"
# What they leave of the processors, waiting or at their end, compiles what comes next; if that
# fails, it fails again below, and says why.
beside sanitized >/dev/null 2>&1
run_tests dev
wait
groups=()

step "AddressSanitizer and UndefinedBehaviorSanitizer, clang, warnings are errors"
build asan-ubsan
# The bundled model stands for the reference models here: those take too long under a sanitizer.
# So do `long` ones, which check-all.sh has.
run_tests asan-ubsan -LE 'slow|long|lint|ptx' -E reference

step "fuzzers"
bash scripts/fuzz.sh 1

# It takes a minute and a half. Where all before it took long, check-all.sh is left to do it, but not
# with CI set: nothing is left out there.
most_seconds=750
step "aarch64 under qemu"
code=0
if [ -z "${CI:-}" ] && [ "$SECONDS" -gt "$most_seconds" ]; then
    echo "skipped: more than $most_seconds s are over (bash scripts/check-all.sh aarch64 does it)"
elif bash scripts/deps.sh aarch64; then
    bash scripts/check-aarch64.sh --some || code=$?
else
    echo "skipped: no cross compiler, qemu or libraries for arm64 to be had"
    code=77
fi
if [ "$code" -eq 77 ] && [ -n "${CI:-}" ]; then
    cat build/deps-aarch64.log >&2
    echo "FAILED: with CI set this step is not left out" >&2
    exit 1
fi
[ "$code" -eq 0 ] || [ "$code" -eq 77 ] || exit "$code"

step "done"
