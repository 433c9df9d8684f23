#!/usr/bin/env bash
# Pack what bench/gpu.sh prepares for a card, to be carried to a machine that cannot build: Python
# unpacks it there, into the same checkout.
# usage: bash scripts/gpu-bundle.sh [-a ARCHITECTURE] [-o FOLDER] [--built FOLDER] [--models FOLDER]
#            [--peer FILE]
#   -a: the card's, 90a unless told; -o: where the bundles go, build/bundle unless told
#   --built: a folder with programs for it, which are built unless told (build/gpu)
#   --models: reference models (F32) that the device is compared with the processor on; each goes
#     into a bundle of its own
#   --peer: a llama-perplexity built for the card (bench/build_peer.sh)
# The bundle of the programs must not have more than 8 MB.
set -euo pipefail
cd "$(dirname "$0")/.."
architecture=90a output=build/bundle built='' models='' peer='' limit=8000000
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || { echo "gpu-bundle.sh: $1 needs a value" >&2; exit 2; }
    case $1 in
        -a) architecture=$2 ;;
        -o) output=$2 ;;
        --built) built=$2 ;;
        --models) models=$2 ;;
        --peer) peer=$2 ;;
        *) echo "gpu-bundle.sh: unknown option $1; expected -a, -o, --built, --models or --peer" >&2; exit 2 ;;
    esac
    shift 2
done
ready=build/gpu-ready
bash bench/gpu.sh --prepare "$architecture" ${built:+"$built"} >&2
rm -rf "$output" && mkdir -p "$output"

# pack NAME PATH...: paths below the checkout. The dictionary is as long as all programs together,
# which have the same kernels.
pack() {
    local file=$output/$1.tar.xz
    shift
    tar -c "$@" | xz -T1 --lzma2=preset=9e,dict=64MiB >"$file"
    printf '%9d bytes  %s\n' "$(stat -c %s "$file")" "$file"
}

pack programs "$ready"
if [ -n "$models" ]; then
    mkdir -p "$ready/models"
    cp "$models"/*.F32.gguf "$ready/models"
    for model in "$ready"/models/*; do
        pack "model-$(basename "$model" .F32.gguf)" "$model"
    done
fi
if [ -n "$peer" ]; then
    mkdir -p "$ready/peer"
    strip -o "$ready/peer/llama-perplexity" "$peer"
    pack peer "$ready/peer"
fi
echo "there: python3 -c 'import sys, tarfile; [tarfile.open(f).extractall() for f in sys.argv[1:]]' *.tar.xz && bash bench/gpu.sh"
[ "$(stat -c %s "$output/programs.tar.xz")" -le "$limit" ] ||
    { echo "gpu-bundle.sh: $output/programs.tar.xz has more than $limit bytes" >&2; exit 1; }
