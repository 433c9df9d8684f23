#!/usr/bin/env bash
# A wheel for pip with the program and libassay.so in it, for Linux with a C library as new as this machine's needs
# it to be: the name says which (manylinux_2_NN).
# usage: bash scripts/wheel.sh [BUILD_FOLDER [OUT_FOLDER]]   (default: build/release, its package/)
# Needs hatchling (python3-hatchling), or pip and a package index.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
out=${2:-$build/package}
[ -x "$build/assay" ] || { echo "wheel.sh: $build/assay: build it first" >&2; exit 2; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
for component in portable libraries portable_library; do
    cmake --install "$build" --component "$component" --prefix "$prefix" --strip >/dev/null
done
library=$prefix/lib/libassay.so.0
mv "$(readlink -f "$library")" "$library" # a wheel has no links
export ASSAY_PREFIX=$prefix
cd python
build=(python3 -m pip wheel -q --no-deps -w "$out" .)
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import hatchling' 2>/dev/null; then
        build=("$python" -m hatchling build -t wheel -d "$out")
        break
    fi
done
"${build[@]}"
