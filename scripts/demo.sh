#!/usr/bin/env bash
# From a clean checkout to a first result: install what is missing, build, and evaluate the
# bundled model, as it was trained and quantised to 4 bits, on the bundled text.
# usage: bash scripts/demo.sh
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/deps.sh build
cmake --preset release >/dev/null
cmake --build --preset release --target assay
assay=build/release/assay

for model in data/tiny.F16.gguf data/tiny.Q4_K_M.gguf; do
    printf '\n$ assay perplexity -m %s -f docs/handbook.md -c 256\n' "$model"
    "$assay" perplexity -m "$model" -f docs/handbook.md -c 256
done
printf '\nThe difference between the two "Final estimate" lines is what 4 bits cost this model.\n'
printf 'Next: %s info data/tiny.Q4_K_M.gguf; %s perplexity --help\n' "$assay" "$assay"
