#!/usr/bin/env bash
# The tests on compiled kernels with every scene and threads in other orders, then mutants: hours,
# or with N so many of each kind and kernel. What became of those is kept in mutants.tsv of the
# build: a run that was stopped goes on. Comparisons in attention on tensor cores are left out:
# which of those can be found was not judged yet.
# usage: bash tests/ptx/all.sh BUILD [N]
set -euo pipefail
cd "$(dirname "$0")/../.."
sample=(${2:+--sample "$2"})
for order in backwards random; do
    ASSAY_PTX_ALL=1 ASSAY_PTX_ORDER=$order ctest --test-dir "$1" --output-on-failure -j "$(nproc)" \
        -R '^test_ptx'
done
ptx=$1/tests/ptx
mutate=(python3 tests/ptx/mutate.py "$ptx" --results "$ptx/mutants.tsv" "${sample[@]}")
"${mutate[@]}" --kind barrier --kind mma
others=()
for kernel in NORM ROPE GATE SCALE COPY_ROWS ROUND GATHER SPLIT FINISH EXACT FILL DIGEST ATTENTION FOLD \
    PAIR JS TARGET TAKE CODES LOWEST; do
    others+=(--kernel "$kernel")
done
"${mutate[@]}" --kind bound "${others[@]}"
