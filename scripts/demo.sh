#!/usr/bin/env bash
# From a clean checkout to a first result: install what is missing, build, evaluate the bundled
# model, as it was trained and quantised to 4 bits, on the bundled text, and compare the two.
# usage: bash scripts/demo.sh
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/deps.sh build
cmake --preset release >/dev/null
cmake --build --preset release --target assay
assay=build/release/assay

for model in data/tiny.F16.gguf data/tiny.Q4_K_M.gguf; do
    printf '\n$ assay perplexity -m %s -f data/text.txt -c 256\n' "$model"
    "$assay" perplexity -m "$model" -f data/text.txt -c 256
done
printf '\n$ assay kld -m data/tiny.Q4_K_M.gguf --base data/tiny.F16.gguf -f data/text.txt -c 256\n'
"$assay" kld -m data/tiny.Q4_K_M.gguf --base data/tiny.F16.gguf -f data/text.txt -c 256
printf '\nWhat 4 bits did to this model: the lines from "Perplexity statistics" on. The handbook\n'
printf '(docs/handbook.md) says how to read them. Next: %s help kld\n' "$assay"
