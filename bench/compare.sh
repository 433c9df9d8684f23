#!/usr/bin/env bash
# Whole perplexity runs of assay and its peers in turn, on the same synthetic model, text, n_ctx
# and threads; tokens/s of each run, medians, and the ratios of the medians.
#
# usage: PEER=path/to/llama-perplexity [IK=path/to/ik's] [PEER_AVX2=path/to/one/built/for/AVX2]
#        bash bench/compare.sh [--isa avx2] [assay's options...]
#
# With --isa avx2, PEER_AVX2 takes the place of PEER, and IK is left out. More settings:
#   TYPES="F16 Q8_0 Q4_K_M IQ3_S"  VOCABS="32000"  CTX=512  CHUNKS=4  ROUNDS=3  THREADS=2
#   PEER_ARGS="-b 2048 -ub 512"    for both peers; CHUNKS should be a multiple of their -b / CTX
#   ASSAY=build/release/assay      built if it is not given
#   FOLDER=build/release           where the models are kept: about 0.5 to 2.2 GB each
# A ratio above 1 says that assay is faster. "cpu" is the ratio of processor seconds, which other
# work on the machine disturbs less.
set -euo pipefail
cd "$(dirname "$0")/.."

types=${TYPES:-F16 Q8_0 Q4_K_M IQ3_S}
vocabs=${VOCABS:-32000}
ctx=${CTX:-512}
chunks=${CHUNKS:-4}
rounds=${ROUNDS:-3}
threads=${THREADS:-2}
folder=${FOLDER:-build/release}
read -ra peer_args <<<"${PEER_ARGS:--b 2048 -ub 512}"

if [ -z "${ASSAY:-}" ]; then
    cmake --preset release >/dev/null
    cmake --build --preset release --target assay make_model >/dev/null
fi
assay=${ASSAY:-build/release/assay}
make_model=$(dirname "$assay")/bench/make_model

peer=${PEER:-}
ik=${IK:-}
if [[ " $* " == *" --isa avx2 "* ]]; then
    peer=${PEER_AVX2:?is needed for --isa avx2: llama-perplexity built without AVX-512}
    ik=
fi
names=(assay)
[ -z "$peer" ] || names+=(llama.cpp)
[ -z "$ik" ] || names+=(ik)
[ ${#names[@]} -gt 1 ] || { echo "compare.sh: set PEER, PEER_AVX2 or IK" >&2; exit 2; }

# run NAME MODEL [assay's options...]: seconds, processor seconds, perplexity
run() {
    local common=(-m "$2" -f docs/handbook.md -c "$ctx" --chunks "$chunks" -t "$threads")
    case $1 in
    assay) python3 bench/time_run.py "$assay" perplexity "${common[@]}" "${@:3}" ;;
    llama.cpp) python3 bench/time_run.py "$peer" "${common[@]}" "${peer_args[@]}" ;;
    ik) python3 bench/time_run.py "$ik" "${common[@]}" "${peer_args[@]}" ;;
    esac
}
# median COLUMN: of the rows on standard input
median() {
    awk -v c="$1" '{ print $c }' | sort -g |
        awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

echo "# n_ctx $ctx, $chunks chunks, $threads threads, $rounds rounds; peers: ${peer_args[*]}; assay: $*"
for vocab in $vocabs; do
    for type in $types; do
        model=$folder/synthetic-1b.$vocab.$type.gguf
        [ -e "$model" ] || "$make_model" --shape 1b --vocab "$vocab" --type "$type" -o "$model"
        declare -A times=()
        for ((i = 0; i < rounds; i++)); do
            for name in "${names[@]}"; do
                times[$name]+=$(run "$name" "$model" "$@")$'\n'
            done
        done
        for name in "${names[@]}"; do
            read -r seconds cpu ppl < <(echo "$(printf %s "${times[$name]}" | median 1)" \
                "$(printf %s "${times[$name]}" | median 2)" \
                "$(printf %s "${times[$name]}" | median 3)")
            [ "$name" != assay ] || { own_seconds=$seconds own_cpu=$cpu; }
            printf '%s\n' "${times[$name]}" | awk -v n=$((ctx * chunks)) -v who="$name" \
                -v model="$type $vocab" -v s="$seconds" -v c="$cpu" -v ppl="$ppl" \
                -v s0="$own_seconds" -v c0="$own_cpu" '
                NF { all = all sprintf(" %.1f", n / $1) }
                END { printf "%-15s %-9s %7.1f tokens/s  ratio %5.2f  cpu %5.2f  PPL %.2f  runs:%s\n",
                      model, who, n / s, s / s0, c / c0, ppl, all }'
        done
    done
done
