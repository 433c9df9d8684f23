#!/usr/bin/env bash
# Build llama.cpp's llama-perplexity with CUDA for one card, and nothing else of it, from a folder
# with its sources; what it needs is there: no network. Then: PEER=BUILD/bin/llama-perplexity bash
# bench/gpu.sh. Stopped, it goes on where it was when it is started again.
#
# usage: bash bench/build_peer.sh SOURCES [BUILD] [ARCHITECTURE]
#   BUILD: build/peer. ARCHITECTURE: that of the first card here (90a where there is none).
set -euo pipefail
cd "$(dirname "$0")/.."
sources=${1:?usage: bash bench/build_peer.sh SOURCES [BUILD] [ARCHITECTURE]}
build=${2:-build/peer}
architecture=${3:-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)}
[ "${architecture:-90}" != 90 ] || architecture=90a
command -v nvcc >/dev/null || export CUDACXX=${CUDACXX:-/usr/local/cuda/bin/nvcc}

# cuBLAS and its header may be a Python package's.
header=$(python3 bench/gpu_report.py find cublas_v2.h)
export CPATH=${CPATH:-}${header:+:${header%/*}}

# Of the options only what one card and one program need; what computes is as it comes.
cmake -S "$sources" -B "$build" -G "$(command -v ninja >/dev/null && echo Ninja || echo 'Unix Makefiles')" \
    -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_CUDA=ON -DGGML_CUDA_NCCL=OFF \
    -DCMAKE_CUDA_ARCHITECTURES="$architecture-real" -DLLAMA_OPENSSL=OFF -DLLAMA_CURL=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF \
    -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF
cmake --build "$build" -j "$(nproc)" --target llama-perplexity
echo "$build/bin/llama-perplexity: $SECONDS s"
