#!/usr/bin/env bash
# Speed with its error beside it: assay's precisions, llama.cpp and ik_llama.cpp.
#
# usage: [PEER=path/to/llama-perplexity] [IK=path/to/ik's] [TINY=folder] [VARIABLE=VALUE...]
#        bash bench/compare.sh [assay's options but --precision...]
#
# A peer that is not there is left out. For each type, and for each program:
# - tokens/s: whole perplexity runs in turn, on the same synthetic model, text, n_ctx and threads;
#   the median. "high is" and "fast is": how many times they are faster than the program of the
#   line, the median of the runs of a round divided by each other; "cpu" is the same in processor
#   seconds, which other work on the machine disturbs less.
# - its error: the mean of KL(float64 || program) over a trained model of that type, in nats, and
#   the largest error of a token's log-probability. The program records its predictions with
#   --kl-divergence-base; `assay check` compares them with an exact evaluation, which is itself
#   within 1e-11 of float64. Such a file has 16 bits for a logit, and lacks what is 16 nats below
#   the top (ik_llama.cpp: 24). What that makes is in the column "file"; it is measured, and has
#   been subtracted. What its rounding leaves in the mean is part of "+-", the standard error; in
#   the log-probability of one token it leaves up to 2.4e-4 (ik_llama.cpp: 3.7e-4).
#
#   TYPES="Q4_K_M Q8_0 Q6_K IQ3_S IQ4_XS F16"   PRECISIONS="exact high fast"
#   TINY=data            the trained models: TINY/tiny.TYPE.gguf
#   TINY_TEXT=data/text.txt   TINY_CHUNKS=16   windows of 256 tokens
#   CTX=512   CHUNKS=2   ROUNDS=5   THREADS=2   TEXT=data/text.txt   LAYERS=8   VOCAB=32000
#   ROUNDS=0             errors only
#   SLOW=8               what takes longer than so many seconds runs in the first two rounds only
#   BATCHES="1024/512 1024/1024 512/512"   -b/-ub to try with a peer, twice each or until one is
#                        SLOW, once for each type: the fastest is kept in FOLDER/batches.tsv. A
#                        single one is not tried
#   PEER_OPTIONS=""   IK_OPTIONS=""   more options for the peers, in speed and error
#   MEAN="Q4_K_M Q8_0 Q6_K IQ3_S"   types of the geometric means at the end
#   ASSAY=build/release/assay       built if it is not given, with bench/make_model beside it
#   FOLDER=build/release            where the synthetic models are kept: 0.2 to 1 GB each
set -euo pipefail
cd "$(dirname "$0")/.."

types=${TYPES:-Q4_K_M Q8_0 Q6_K IQ3_S IQ4_XS F16}
mean=${MEAN:-Q4_K_M Q8_0 Q6_K IQ3_S}
tiny=${TINY:-data}
rounds=${ROUNDS:-5}
threads=${THREADS:-2}
ctx=${CTX:-512}
chunks=${CHUNKS:-2}
layers=${LAYERS:-8}
vocab=${VOCAB:-32000}
slow=${SLOW:-8}
folder=${FOLDER:-build/release}
text=${TEXT:-data/text.txt}
own_options=("$@")
read -ra peer_options <<<"${PEER_OPTIONS:-}"
read -ra ik_options <<<"${IK_OPTIONS:-}"
read -ra batches <<<"${BATCHES:-1024/512 1024/1024 512/512}"

if [ -z "${ASSAY:-}" ]; then
    cmake --preset release >/dev/null
    cmake --build --preset release --target assay make_model >/dev/null
fi
assay=${ASSAY:-build/release/assay}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"

# command_of PROGRAM BATCH: the words that a run of it begins with, in `command`
command_of() {
    case $1 in
    llama.cpp) command=("$PEER" "${peer_options[@]}" -b "${2%/*}" -ub "${2#*/}") ;;
    ik_llama.cpp) command=("$IK" "${ik_options[@]}" -b "${2%/*}" -ub "${2#*/}") ;;
    *) command=("$assay" perplexity --precision "$1" "${own_options[@]}") ;;
    esac
}

# products PRECISION: what products are made of
products() {
    command_of "$1" -
    "${command[@]}" -q -m data/tiny.Q4_K_M.gguf -f data/text.txt -c 16 --chunks 1 \
        --json "$work/json.$1" >/dev/null 2>"$work/log" || { cat "$work/log" >&2; exit 2; }
    sed -n 's/.*"products":[[:space:]]*"\([^"]*\)".*/\1/p' "$work/json.$1"
}

# timed PROGRAM BATCH MODEL: seconds, processor seconds, perplexity
timed() {
    command_of "$1" "$2"
    python3 bench/time_run.py "${command[@]}" -m "$3" -f "$text" -c "$ctx" --chunks "$chunks" \
        -t "$threads" 2>"$work/log"
}

# less A B: whether A < B, as numbers
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 < b + 0) }'; }

# best_batch PROGRAM MODEL: the fastest of the batches, tried where that has not been done
best_batch() {
    local key best='' least=0 batch seconds
    command_of "$1" N/N
    key=$(printf '%s\t%s\t%s' "${command[*]}" "${2##*/}" "$ctx $chunks $threads ${batches[*]}")
    [ ${#batches[@]} -gt 1 ] || { echo "${batches[0]}"; return; }
    best=$(grep -sF "$key"$'\t' "$folder/batches.tsv" | tail -n 1 | cut -f 4) || true
    [ -z "$best" ] || { echo "$best"; return; }
    for batch in "${batches[@]}" "${batches[@]}"; do
        seconds=$(timed "$1" "$batch" "$2" | cut -d ' ' -f 1) || return 1
        if [ -z "$best" ] || less "$seconds" "$least"; then
            best=$batch least=$seconds
        fi
        less "$seconds" "$slow" || break
    done
    printf '%s\t%s\t%s\n' "$key" "$best" "$least" >>"$folder/batches.tsv"
    echo "$best"
}

# divergence PROGRAM BATCH MODEL: mean beyond the file, its standard error, the file's share, the
# largest error of a log-probability. llama.cpp now and then ends early, so there are three tries.
divergence() {
    [ -e "$3" ] || { echo - - - -; return; }
    local ended
    command_of "$1" "$2"
    for _ in 1 2 3; do
        rm -f "$work"/rows* "$work/tokens"
        "${command[@]}" -m "$3" -f "${TINY_TEXT:-data/text.txt}" -c 256 -t "$threads" \
            --chunks "${TINY_CHUNKS:-16}" --kl-divergence-base "$work/rows" >"$work/log" 2>&1 ||
            { ended="exit code $?"; continue; }
        "$assay" check -q -m "$3" --kl-divergence-base "$work/rows" --per-token "$work/tokens" \
            >"$work/log" 2>&1 || { ended="exit code $? of assay check"; continue; }
        awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            { d = $at["kld"] - $at["file_kld"]; n++; sum += d; squares += d * d
              file += $at["file_kld"]
              e = $at["recorded_logprob"] - $at["logprob"] + $at["file_nll"]
              if (e < 0) e = -e
              if (e > worst) worst = e }
            END { spread = squares / n - sum * sum / n / n
                  if (spread < 0) spread = 0
                  if (squares) printf "%.2e %.0e %.1e %.1e\n", sum / n, sqrt(spread / n),
                      file / n, worst
                  else printf "<1e-11 - %.1e <1e-5\n", file / n }' "$work/tokens"
        return
    done
    failed "$1" "$3" "$ended" >&2
    echo - - - -
}

# failed PROGRAM MODEL [END]: a line, with what its log says
failed() {
    local why
    why=$(grep -i 'error\|fail\|invalid' "$work/log" | head -n 1) || why=$(tail -n 1 "$work/log")
    echo "# $1: no result with ${2##*/}: ${3:+$3, }${why:0:160}"
}

median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) printf "%.4g\n",
    (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2; else print "-" }'; }

# ratio A B COLUMN: median of A's runs over B's of the same rounds; - where one of them has none
ratio() {
    if ! [ -s "$1" ] || ! [ -s "$2" ]; then
        echo -
        return
    fi
    paste -d ' ' "$1" "$2" | awk -v c="$3" 'NF == 6 { print $c / $(c + 3) }' | median
}

# version PATH: what a program says of its version, commit and compiler
version() { "$1" --version 2>&1 | head -n 4 | tr -s ' ' | paste -sd ' ' || true; }

echo "# $(version "$assay")"
programs=()
declare -A made_of=()
for precision in ${PRECISIONS:-exact high fast}; do
    made_of[$precision]=$(products "$precision")
    same=
    for other in "${programs[@]}"; do
        [ "${made_of[$other]}" != "${made_of[$precision]}" ] || same=$other
    done
    [ -z "$same" ] || { echo "# $precision multiplies as $same does: left out"; continue; }
    programs+=("$precision")
done
for peer in "llama.cpp PEER" "ik_llama.cpp IK"; do
    path=${peer#* }
    if [ -f "${!path:-}" ] && [ -x "${!path}" ]; then
        programs+=("${peer% *}")
        echo "# ${peer% *}: $(version "${!path}")"
    else
        echo "# ${peer% *} is left out: no program at $path=${!path:-}"
    fi
done

echo "# $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1); load average" \
    "$(cut -d ' ' -f 1 /proc/loadavg) at the start; 1.1B shape with $layers layers, vocabulary" \
    "$vocab, n_ctx $ctx, $chunks chunks, $threads threads, $rounds rounds; assay: $*"
echo "# KL: from float64, nats, beyond the file's own 16 bits (file); worst: of a log-probability"
form='%-7s %-13s %8s %7s %7s %7s %7s %10s %7s %8s %8s  %s\n'
# shellcheck disable=SC2059
printf "$form" type program tokens/s 'high is' cpu 'fast is' cpu KL +- file worst with

for type in $types; do
    model=$folder/synthetic-1b.$layers.$vocab.$type.gguf
    if [ "$rounds" -gt 0 ] && ! [ -e "$model" ]; then
        "${assay%/*}/bench/make_model" --shape 1b --layers "$layers" --vocab "$vocab" \
            --type "$type" -o "$model" || continue
    fi
    [ -e "$tiny/tiny.$type.gguf" ] || echo "# $tiny/tiny.$type.gguf is missing: no error of $type"
    declare -A batch=() left=()
    for program in "${programs[@]}"; do
        batch[$program]=${batches[0]} left[$program]=$rounds
        case $program in
        *llama.cpp) [ "$rounds" = 0 ] || batch[$program]=$(best_batch "$program" "$model") ||
            { failed "$program" "$model"; left[$program]=0 batch[$program]=${batches[0]}; } ;;
        esac
    done
    for ((round = 1; round <= rounds; round++)); do
        for program in "${programs[@]}"; do
            [ "${left[$program]}" -ge "$round" ] || continue
            row=$(timed "$program" "${batch[$program]}" "$model") ||
                { failed "$program" "$model"; left[$program]=0; continue; }
            echo "$row" >>"$work/$type.$program"
            less "${row%% *}" "$slow" || left[$program]=2
        done
    done
    for program in "${programs[@]}"; do
        own=$work/$type.$program
        ratios=()
        for ours in high fast; do
            for column in 1 2; do
                ratios+=("$(ratio "$own" "$work/$type.$ours" $column)")
            done
            [ "$program" = "$ours" ] || echo "$type $ours $program ${ratios[-2]}" >>"$work/ratios"
        done
        read -ra error < <(divergence "$program" "${batch[$program]}" "$tiny/tiny.$type.gguf")
        # shellcheck disable=SC2059
        printf "$form" "$type" "$program" "$(awk -v n=$((ctx * chunks)) '{ print n / $1 }' \
            "$([ -s "$own" ] && echo "$own" || echo /dev/null)" | median)" "${ratios[@]}" \
            "${error[@]}" "${made_of[$program]:--b ${batch[$program]%/*} -ub ${batch[$program]#*/}}"
    done
done

echo "# geometric means over ${mean// /, }:"
awk -v wanted=" $mean " 'index(wanted, " " $1 " ") && $4 != "-" {
        pair = $2 " is " $3; sum[pair] += log($4); n[pair]++ }
    END { for (pair in sum) { split(pair, w, " is ")
          printf "# %s: %.2f times as fast as %s (%d of %d)\n",
              w[1], exp(sum[pair] / n[pair]), w[2], n[pair], split(wanted, types, " ") } }' \
    "$work/ratios" | sort
