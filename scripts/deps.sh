#!/usr/bin/env bash
# Install what building and testing assay needs and this machine lacks.
# usage: bash scripts/deps.sh [build|package|test|all|aarch64]     (default: build)
#   build    compilers, libraries, mpirun  package  what the target `package` needs on top
#   test     what scripts/test.sh needs    all      what scripts/check-all.sh needs
#   aarch64  a cross compiler and qemu on top, for the preset aarch64 and scripts/check-aarch64.sh;
#            libraries for arm64 are unpacked in build/sysroot-aarch64, apart from the system's
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
    aarch64) packages+=(gcc-aarch64-linux-gnu qemu-user) ;;
    *) echo "usage: bash scripts/deps.sh [build|package|test|all|aarch64]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "deps.sh: this is not a Debian-like system; make sure that these are installed: ${packages[*]}" >&2
    exit 0
fi

# Have apt fetch packages for arm64 and what they depend on, with lists and a state of its own, and
# unpack them all.
unpack_aarch64() {
    local root=build/sysroot-aarch64 apt archive link
    [ ! -e "$root" ] || return 0
    apt=$PWD/build/sysroot-aarch64.apt
    mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$root.part"
    : >"$apt/status"
    local settings=(-q -o APT::Architecture=arm64 -o APT::Architectures::=arm64
        -o APT::Sandbox::User= -o Acquire::Languages=none -o "Dir::State=$apt"
        -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt")
    echo "deps.sh: unpacking libraries for arm64 in $root" >&2
    apt-get "${settings[@]}" update >"$apt/log" 2>&1 &&
        apt-get "${settings[@]}" install -y --no-install-recommends --download-only \
            libc6-dev libpcre2-dev libcjson-dev libssl-dev libmicrohttpd-dev libcurl4-openssl-dev \
            libcmocka-dev >>"$apt/log" 2>&1 ||
        { tail -n 5 "$apt/log" >&2; echo "deps.sh: apt-get has no packages for arm64" >&2; return 1; }
    for archive in "$apt"/archives/*.deb; do
        dpkg -x "$archive" "$root.part"
    done
    # What a link names with its whole path is in the folder, too.
    find "$root.part" -type l -lname '/*' | while IFS= read -r link; do
        ln -sfrn "$root.part$(readlink "$link")" "$link"
    done
    mv "$root.part" "$root"
    rm -r "$apt"
}

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ "$what" != aarch64 ] || { cd "$(dirname "$0")/.." && unpack_aarch64; }
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
if ! { "${as_root[@]}" apt-get update -q &&
       "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
           apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "deps.sh: apt-get failed; the packages wanted were: ${missing[*]}" >&2
    exit 1
fi
