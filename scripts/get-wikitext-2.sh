#!/usr/bin/env bash
# Fetch the test split of WikiText-2 (raw), the text that published perplexities refer to,
# check its SHA-256, and put it beside you as wiki.test.raw.
# usage: bash scripts/get-wikitext-2.sh [DIRECTORY]     (default: the current one)
set -euo pipefail

readonly sha256=173c87a53759e0201f33e0ccf978e510c2042d7f2cb78229d9a50d79b9e7dd08
readonly url=https://huggingface.co/datasets/ggml-org/ci/resolve/main/wikitext-2-raw-v1.zip
directory=${1:-.}
target=$directory/wiki.test.raw

matches() {
    printf '%s  %s\n' "$sha256" "$1" | sha256sum --check --status
}

if [ -e "$target" ]; then
    matches "$target" && { echo "$target is already there, and whole."; exit 0; }
    echo "get-wikitext-2.sh: $target exists, but its SHA-256 is not $sha256: move it away first" >&2
    exit 1
fi
for tool in curl unzip sha256sum; do
    command -v "$tool" >/dev/null || { echo "get-wikitext-2.sh: needs $tool" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! curl --fail --location --silent --show-error --max-time 120 -o "$work/wikitext.zip" "$url"; then
    cat >&2 <<END
get-wikitext-2.sh: the download failed. Without a network, take the file from a machine that has one:
fetch $url there, unpack wikitext-2-raw/wiki.test.raw from it,
copy it to $target, and run this script again: it will check the SHA-256.
END
    exit 1
fi
unzip -q -j "$work/wikitext.zip" 'wikitext-2-raw/wiki.test.raw' -d "$work"
if ! matches "$work/wiki.test.raw"; then
    echo "get-wikitext-2.sh: what was downloaded has SHA-256 $(sha256sum <"$work/wiki.test.raw" | cut -c1-64); expected $sha256" >&2
    exit 1
fi
mv "$work/wiki.test.raw" "$target"
echo "$target: 1290590 bytes, SHA-256 as expected. Next: assay perplexity -m MODEL.gguf -f $target"
