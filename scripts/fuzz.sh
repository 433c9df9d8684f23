#!/usr/bin/env bash
# Run fuzz targets, each for some seconds with a fixed seed, under AddressSanitizer and
# UndefinedBehaviorSanitizer (needs clang), as many at a time as there are processors. What makes
# one fail is kept in build/asan-ubsan/fuzz/artifacts/; the others run nevertheless.
# usage: bash scripts/fuzz.sh [SECONDS [TARGET...]]     default: 10, all targets
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
shift || true
case $seconds in
'' | 0 | *[!0-9]*) echo "usage: bash scripts/fuzz.sh [SECONDS [TARGET...]]" >&2; exit 2 ;;
esac

bash scripts/deps.sh test
cmake --preset asan-ubsan >/dev/null
if ! cmake --build --preset asan-ubsan --target fuzzers -- -j "$(nproc)" >build/fuzzers.log 2>&1; then
    grep -v '^\[' build/fuzzers.log >&2
    exit 1
fi
folder=build/asan-ubsan/tests/fuzz
if [ $# -eq 0 ]; then
    mapfile -t targets <"$folder/targets.txt"
    set -- "${targets[@]}"
fi

found=build/asan-ubsan/fuzz/found # inputs with new coverage; kept from run to run would make runs differ
artifacts=build/asan-ubsan/fuzz/artifacts
mkdir -p "$artifacts"
for target in "$@"; do
    [ -x "$folder/fuzz_$target" ] || { echo "no fuzz target $target (there are: $(paste -sd' ' "$folder/targets.txt"))" >&2; exit 2; }
done

fuzz() {
    local target=$1 log=$artifacts/$1.log
    rm -rf "${found:?}/$target"
    mkdir -p "$found/$target"
    if "$folder/fuzz_$target" -seed=1 -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$artifacts/$target-" \
        "$found/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
        printf 'fuzz %s: %s s, inputs: %s\n' "$target" "$seconds" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
    else
        printf 'fuzz %s: FAILED; the end of %s:\n%s\n' "$target" "$log" "$(tail -40 "$log")"
        return 1
    fi
}
export -f fuzz
export folder found artifacts seconds
printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -I '{}' bash -c 'fuzz "$1"' fuzz '{}'
