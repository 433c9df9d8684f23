#!/usr/bin/env bash
# All tests, as a fresh machine can run them: install what is missing, build with warnings as
# errors, run everything through ctest, run the unit tests and the tiny model again under
# AddressSanitizer and UndefinedBehaviorSanitizer, and each fuzzer for 10 seconds.
# usage: bash scripts/test.sh
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)

step() {
    printf '\n== %s (%d s)\n' "$1" "$SECONDS"
}

build() {
    cmake --preset "$1" >/dev/null
    cmake --build --preset "$1" -- -j "$jobs" | grep -v '^\[' || true
    test "${PIPESTATUS[0]}" -eq 0
}

step "dependencies"
bash scripts/deps.sh test

step "gcc, warnings are errors"
build dev
step "all tests"
ctest --preset dev -j "$jobs"

step "AddressSanitizer and UndefinedBehaviorSanitizer"
build asan-ubsan
ctest --preset asan-ubsan -j "$jobs" -LE 'slow|lint'

step "fuzzers, clang, warnings are errors"
bash scripts/fuzz.sh 10

step "done"
