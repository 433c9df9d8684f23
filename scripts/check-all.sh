#!/usr/bin/env bash
# The long check, before a release: every test under gcc and clang, AddressSanitizer with
# UndefinedBehaviorSanitizer, ThreadSanitizer and valgrind; each fuzzer for 60 seconds;
# clang-tidy and clang-format. Takes an hour or more.
# usage: bash scripts/check-all.sh
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)
bash scripts/deps.sh all

for preset in dev dev-clang asan-ubsan tsan; do
    printf '\n== %s\n' "$preset"
    cmake --preset "$preset" >/dev/null
    cmake --build --preset "$preset" -- -j "$jobs"
    ctest --test-dir "build/$preset" --output-on-failure -j "$jobs"
done

printf '\n== valgrind\n'
# Valgrind has no AVX-512: it hides it from CPUID, so that the AVX2 kernels are what it checks.
# The long sweeps would take days; what they sweep over is in the other tests too.
memcheck=(valgrind -q --error-exitcode=9 --leak-check=full)
for test in build/dev/tests/{gguf,kernels,model,eval,cli}/test_*; do
    case $test in
        *.py | *_reference* | *hostile | *mutations | *test_decode | *test_fmath | *cuda*) continue ;;
    esac
    [ -x "$test" ] && [ -f "$test" ] || continue
    printf '%s\n' "$test"
    "${memcheck[@]}" "$test" >/dev/null
done
for model in data/tiny.F16.gguf data/tiny.Q4_K_M.gguf; do
    "${memcheck[@]}" build/dev/assay perplexity -m "$model" -f docs/handbook.md -c 64 --chunks 2
done

printf '\n== fuzzers\n'
bash scripts/fuzz.sh 60

printf '\n== clang-format and clang-tidy\n'
git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror
git ls-files 'gguf/*.c' 'kernels/*.c' 'model/*.c' 'eval/*.c' 'cli/*.c' | xargs -P "$jobs" -n 4 clang-tidy -p build/dev-clang --quiet
