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
# AVX-512 is beyond valgrind: the cap makes it check the AVX2 kernels.
ASSAY_ISA=avx2 ctest --test-dir build/dev --output-on-failure -j "$jobs" -LE 'slow|lint|cli' \
    -T memcheck --overwrite MemoryCheckCommandOptions="--error-exitcode=9 --leak-check=full -q"
for model in data/tiny.F16.gguf data/tiny.Q4_K_M.gguf; do
    valgrind -q --error-exitcode=9 --leak-check=full \
        build/dev/assay perplexity -m "$model" -f docs/handbook.md -c 64 --chunks 2 --isa avx2
done

printf '\n== fuzzers\n'
bash scripts/fuzz.sh 60

printf '\n== clang-format and clang-tidy\n'
git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror
git ls-files 'gguf/*.c' 'kernels/*.c' 'model/*.c' 'eval/*.c' 'cli/*.c' | xargs -P "$jobs" -n 4 clang-tidy -p build/dev-clang --quiet
