#!/usr/bin/env bash
# Build the program for aarch64 Linux, run it under qemu, and compare its log-probabilities of each
# token with those of the program for this machine, byte for byte, in `exact`, `high` and `fast`: of
# the bundled models, and of all models in each FOLDER.
# usage: bash scripts/check-aarch64.sh [FOLDER...]
# It needs what scripts/deps.sh aarch64 installs. AARCH64_SYSROOT may name a folder that has the
# arm64 packages instead; ASSAY, the program for this machine (default: build/dev/assay).
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export ASSAY=${ASSAY:-build/dev/assay} AARCH64_SYSROOT=${AARCH64_SYSROOT:-}
jobs=$(nproc)

# The code of a step that cannot run here, as ctest has it.
skip() {
    echo "check-aarch64.sh: skipped: $1"
    exit 77
}

for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$tool" >/dev/null || skip "$tool is not installed (scripts/deps.sh aarch64)"
done
[ -f "$AARCH64_SYSROOT/usr/lib/aarch64-linux-gnu/pkgconfig/libpcre2-8.pc" ] ||
    skip "libpcre2-dev:arm64 is not installed (scripts/deps.sh aarch64)"
[ -x "$ASSAY" ] || skip "$ASSAY was not built"

cmake --preset aarch64 "-DCMAKE_SYSROOT=$AARCH64_SYSROOT" >/dev/null &&
    cmake --build --preset aarch64 --target assay -- -j "$jobs" || exit 1

# One line: what became of a model in one precision. A model that both refuse is no difference.
compare() {
    local at said code arm_code=0
    at=$(mktemp -d)
    local arguments=(perplexity -m "$1" -f docs/handbook.md -c 64 --chunks 2 -t 1 --precision "$2")
    "$ASSAY" "${arguments[@]}" --per-token "$at/x86" >/dev/null 2>"$at/x86.says"
    code=$?
    qemu-aarch64 -L "$AARCH64_SYSROOT/" build/aarch64/assay "${arguments[@]}" \
        --per-token "$at/arm" >/dev/null 2>"$at/arm.says" || arm_code=$?
    if [ "$code" -ne "$arm_code" ]; then
        said="DIFFERENT: exit code $code here, $arm_code on aarch64: $(tail -n 1 "$at/arm.says")"
    elif [ "$code" -ne 0 ]; then
        said="refused by both: $(tail -n 1 "$at/x86.says")"
    elif [ -s "$at/x86" ] && cmp -s "$at/x86" "$at/arm"; then
        said=same
    else
        said="DIFFERENT: $(cmp "$at/x86" "$at/arm" 2>&1)"
    fi
    rm -r "$at"
    printf '%s: %s %s\n' "$said" "$2" "$1"
}
export -f compare

models=(data/*.gguf)
for folder in "$@"; do
    [ -d "$folder" ] || { echo "check-aarch64.sh: $folder is not a folder" >&2; exit 2; }
    mapfile -t -O "${#models[@]}" models < <(find "$folder" -name '*.gguf' | sort)
done
log=build/aarch64/compared.log
for model in "${models[@]}"; do
    printf '%s\0exact\0%s\0high\0%s\0fast\0' "$model" "$model" "$model"
done | xargs -0 -n 2 -P "$jobs" bash -c 'compare "$@"' compare >"$log"
grep -v '^same' "$log"
different=$(grep -c '^DIFFERENT' "$log")
same=$(grep -c '^same' "$log")
printf '%d models in exact, high and fast: %d the same bytes, %d refused by both, %d different\n' \
    "${#models[@]}" "$same" "$(grep -c '^refused' "$log")" "$different"
# The bundled models are evaluated in any case.
[ "$different" -eq 0 ] && [ "$same" -ge 6 ]
