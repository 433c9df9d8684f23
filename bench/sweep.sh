#!/usr/bin/env bash
# What a sweep takes, beside one evaluation for each choice. Processor seconds, so that other work
# on the machine disturbs little; weights are random, so figures mean nothing, but speed does.
#
# usage: [PEER=path/to/llama-perplexity] [VARIABLE=VALUE...] bash bench/sweep.sh
#
# - a swap in layer i of L, against a whole run: assay kld of one model with a recorded base. The
#   layer's seven matrices less one of them alone, divided by six.
# - a sweep over all tensors, against as many whole runs without loading; and against as many runs
#   of llama-perplexity --kl-divergence with loading, if there is a PEER. Measured is one matrix of
#   each layer; the sweep is reckoned from it: its first batch of the base, then seven for each
#   layer, then embedding and head.
#
#   SHAPE=1b LAYERS=22   CTX=512   CHUNKS=1   TEXT=data/text.txt   TYPES="F16 Q4_K" base, candidate
#   SWAPS="0 11 21"      layers of the first part; "" leaves it out
#   ASSAY=build/release/assay   built if it is not given, with bench/make_model beside it
#   FOLDER=build/release        where the models are kept: 3 GB
set -euo pipefail
cd "$(dirname "$0")/.."

layers=${LAYERS:-22}
folder=${FOLDER:-build/release}
read -ra types <<<"${TYPES:-F16 Q4_K}"
windows=(-c "${CTX:-512}" --chunks "${CHUNKS:-1}")
text=${TEXT:-data/text.txt}

if [ -z "${ASSAY:-}" ]; then
    cmake --preset release >/dev/null
    cmake --build --preset release --target assay make_model >/dev/null
fi
assay=${ASSAY:-build/release/assay}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"
for type in "${types[@]}"; do
    model=$folder/sweep-${SHAPE:-1b}-$layers.$type.gguf
    [ -s "$model" ] || build/release/bench/make_model --shape "${SHAPE:-1b}" --layers "$layers" \
        --type "$type" -o "$model"
    models+=("$model")
done
base=${models[0]} candidate=${models[1]}

# Processor seconds of a command.
cpu() {
    local TIMEFORMAT='%U %S' taken
    taken=$({ time "$@" >"$work/out" 2>"$work/err"; } 2>&1) || { cat "$work/err" >&2; exit 1; }
    awk '{ print $1 + $2 }' <<<"$taken"
}
reckon() { awk "BEGIN { printf \"%.${2:-2}f\", $1 }"; }
sweep() {
    cpu "$assay" sweep --base "$base" --from "$candidate" -f "$text" "${windows[@]}" --group "$1"
}

"$assay" record -q -m "$base" -f "$text" "${windows[@]}" -o "$work/base" >/dev/null
alone=("$assay" kld -m "$base" --base "$work/base" --state "$work/state")
whole=$(cpu "${alone[@]}")
load=$(cpu "${alone[@]}") # everything is in the journal: what is left is loading
whole=$(reckon "$whole - $load")
echo "a whole run: $whole s, loading $load s"

for i in ${SWAPS-0 11 21}; do
    one=$(sweep "^blk\\.$i\\.attn_q\\.")
    seven=$(sweep "^blk\\.$i\\.((attn|ffn)_(q|k|v|output|gate|up|down))\\.")
    share=$(reckon "($seven - $one) / 6 / $whole" 3)
    echo "a swap in layer $i of $layers: $share of a whole run, $(reckon "($layers - $i) / $layers" 3) of its layers"
done

first=$(sweep '^output\.')
part=$(sweep '^blk\.(\d+)\.attn_q\.')
n=$((7 * layers + 2))
all=$(reckon "$first + 7 * ($part - $first) + $whole")
echo "one matrix of each layer: $part s; all $n tensors, reckoned: $all s"
echo "against $n whole runs without loading: $(reckon "$all / ($n * $whole)") of their time"
if [ -n "${PEER:-}" ]; then
    "$PEER" -m "$base" -f "$text" "${windows[@]}" --kl-divergence-base "$work/logits" >"$work/out" 2>&1
    peer=$(cpu "$PEER" -m "$base" "${windows[@]}" --kl-divergence --kl-divergence-base "$work/logits")
    echo "llama-perplexity with loading: $peer s; $n of them: $(reckon "$n * $peer / $all") times as long"
fi
