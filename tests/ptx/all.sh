#!/usr/bin/env bash
# The tests on compiled kernels with threads in other orders, then every mutant: hours.
# usage: bash tests/ptx/all.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/../.."
for order in backwards random; do
    ASSAY_PTX_ORDER=$order ctest --test-dir "$1" --output-on-failure -R '^test_ptx'
done
python3 tests/ptx/mutate.py "$1/tests/ptx"
