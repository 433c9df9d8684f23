#!/usr/bin/env bash
# Install what building and testing assay needs and this machine lacks.
# Debian and Ubuntu through apt; elsewhere it says what to install.
# usage: bash scripts/deps.sh [build|test|all]     (default: build)
set -euo pipefail

what=${1:-build}
packages=(gcc cmake ninja-build pkg-config libc6-dev libpcre2-dev libcjson-dev libssl-dev libopenblas-dev)
[ "$what" = build ] || packages+=(libcmocka-dev clang libclang-rt-14-dev clang-format clang-tidy git python3)
[ "$what" != all ] || packages+=(valgrind gcovr man-db)

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "deps.sh: no apt-get here; install the equivalents of: ${missing[*]}" >&2
    exit 1
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "deps.sh: not root and no sudo; install: ${missing[*]}" >&2; exit 1; }
    sudo=sudo
fi
echo "deps.sh: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -q >/dev/null
$sudo apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
