#!/usr/bin/env bash
# The tests on compiled kernels with every scene and threads in other orders, then all mutants, or
# with N so many of each kind and kernel: minutes, all about an hour of a processor. What became of
# those is kept in mutants.tsv of the build: a run that was stopped goes on, unless tests changed.
# usage: bash tests/ptx/all.sh BUILD [N]
set -euo pipefail
cd "$(dirname "$0")/../.."
sample=(${2:+--sample "$2"})
for order in backwards random; do
    ASSAY_PTX_ALL=1 ASSAY_PTX_ORDER=$order ctest --test-dir "$1" --output-on-failure -j "$(nproc)" \
        -R '^test_ptx'
done
ptx=$1/tests/ptx
if [ -e "$ptx/mutants.tsv" ] && [ -n "$(find "$ptx" -name 'test_ptx_*' -newer "$ptx/mutants.tsv")" ]; then
    rm "$ptx/mutants.tsv"
fi
python3 tests/ptx/mutate.py "$ptx" --results "$ptx/mutants.tsv" "${sample[@]}"
