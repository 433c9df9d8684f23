#!/usr/bin/env bash
# Whole perplexity runs at the shape of 1.1 billion weights, our products and OpenBLAS's in turn
# on the same synthetic model and text, and the ratio of the medians of their tokens/s.
# usage: bash bench/compare_gemm.sh [TYPE [PAIRS]]     (default: Q4_K 3; some minutes)
set -euo pipefail
cd "$(dirname "$0")/.."
type=${1:-Q4_K}
pairs=${2:-3}
cmake --preset release >/dev/null
cmake --build --preset release --target assay make_model >/dev/null
model=build/release/synthetic-1b.$type.gguf
[ -e "$model" ] || build/release/bench/make_model --shape 1b --type "$type" -o "$model"

rate() { # tokens/s of one run
    build/release/assay perplexity -m "$model" -f data/text.txt -c 512 --chunks 2 -b 1024 \
        --gemm "$1" 2>&1 >/dev/null | sed -n 's/.*s, \([0-9.]*\) tokens\/s$/\1/p'
}
median() {
    sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

own=() openblas=()
for ((i = 0; i < pairs; i++)); do
    own+=("$(rate own)")
    openblas+=("$(rate openblas)")
    echo "own ${own[i]} tokens/s, openblas ${openblas[i]} tokens/s"
done
awk -v own="$(printf '%s\n' "${own[@]}" | median)" -v blas="$(printf '%s\n' "${openblas[@]}" | median)" \
    'BEGIN { printf "medians: own %s, openblas %s, ratio %.2f\n", own, blas, own / blas }'
