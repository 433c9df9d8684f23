#!/usr/bin/env bash
# Install what building and testing assay needs and this machine lacks.
# usage: bash scripts/deps.sh [build|package|test|all|aarch64]     (default: build)
#   build    compilers, libraries, mpirun  package  what the target `package` needs on top
#   test     what scripts/test.sh needs    all      what scripts/check-all.sh needs
#   aarch64  what the preset aarch64 and scripts/check-aarch64.sh need on top; it is not among `all`,
#            because it adds the architecture arm64, and may bring libraries of this machine up to date
# Debian and its relatives: through apt, as root or with sudo. Elsewhere it lists what to install.
set -euo pipefail

what=${1:-build}
packages=(gcc cmake ninja-build pkg-config libc6-dev libpcre2-dev libcjson-dev libssl-dev
    libmicrohttpd-dev libcurl4-openssl-dev openmpi-bin libopenmpi-dev)
packaging=(dpkg-dev)
testing=("${packaging[@]}" libcmocka-dev libopenblas0 clang lld libclang-rt-dev python3 python3-venv
         python3-hatchling python3-jinja2 python3-jsonschema python3-numpy)
case $what in
    build) ;;
    package) packages+=("${packaging[@]}") ;;
    test) packages+=("${testing[@]}") ;;
    all) packages+=("${testing[@]}" clang-format clang-tidy valgrind
                      debootstrap) ;;
    aarch64) packages+=(gcc-aarch64-linux-gnu qemu-user libc6-dev:arm64 libpcre2-dev:arm64
                        libcjson-dev:arm64 libssl-dev:arm64 libmicrohttpd-dev:arm64
                        libcurl4-openssl-dev:arm64) ;;
    *) echo "usage: bash scripts/deps.sh [build|package|test|all|aarch64]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "deps.sh: this is not a Debian-like system; make sure that these are installed: ${packages[*]}" >&2
    exit 0
fi

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "deps.sh: neither root nor sudo here; have these installed: ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "deps.sh: installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ "$what" = aarch64 ]; then
    "${as_root[@]}" dpkg --add-architecture arm64
fi
if ! { "${as_root[@]}" apt-get update -q &&
       "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
           apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "deps.sh: apt-get failed; the packages wanted were: ${missing[*]}" >&2
    exit 1
fi
