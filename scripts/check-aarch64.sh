#!/usr/bin/env bash
# Build the program for aarch64 Linux and hold it under qemu against what x86-64 gave: the
# log-probabilities of all tokens, byte for byte, in `exact`, `high` and `fast` (tests/golden/bits.py);
# the tests of products, on processors with NEON alone, with dotprod, with i8mm.
# usage: bash scripts/check-aarch64.sh [--some | --tests]
#   --some   one in 25 of the models beside the checkout, and a test of products instead of all
#   --tests  all unit tests that run under qemu on top
# Without --some it makes the packages, too, and tries what is in the .tar.gz and in the wheel; and
# builds with base/system/posix.c, for one in 25 of the models and the tests of what calls it.
# It needs what scripts/deps.sh aarch64 installs. AARCH64_SYSROOT may name another folder with arm64
# packages.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
root=${AARCH64_SYSROOT:-build/sysroot-aarch64}
jobs=$(nproc)
what=${1:-}
case $what in
    '' | --some | --tests) ;;
    *) echo "usage: bash scripts/check-aarch64.sh [--some | --tests]" >&2; exit 2 ;;
esac

# The code of a step that cannot run here, as ctest has it.
skip() {
    echo "check-aarch64.sh: skipped: $1"
    exit 77
}

for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$tool" >/dev/null || skip "$tool is not installed (scripts/deps.sh aarch64)"
done
[ -f "$root/usr/lib/aarch64-linux-gnu/pkgconfig/libpcre2-8.pc" ] ||
    skip "$root has no libpcre2-dev for arm64 (scripts/deps.sh aarch64)"
root=$(cd "$root" && pwd)

tests=(test_panel)
[ "$what" = --some ] || tests+=(test_integer_tile test_rounded test_rounded_lanes test_integer_linear test_linear test_isa)
targets=(assay "${tests[@]}")
[ "$what" != --tests ] || targets=(all)
log=build/aarch64.log
if ! { cmake --preset aarch64 "-DCMAKE_SYSROOT=$root" -DASSAY_TESTS=ON -DASSAY_WERROR=ON &&
       cmake --build --preset aarch64 --target "${targets[@]}" -- -j "$jobs"; } >"$log" 2>&1; then
    grep -v '^\[' "$log" >&2
    exit 1
fi

failed=0
every=1
[ "$what" != --some ] || every=25
# The bundled models again without smmla, and without sdot.
for cpu in max neoverse-n1 cortex-a72; do
    python3 -B tests/golden/bits.py compare "$every" . \
        qemu-aarch64 -L "$root/" -cpu "$cpu" build/aarch64/assay || failed=1
    every=0
done

packages() {
    local made=build/aarch64/package at program package
    at=$(mktemp -d)
    rm -rf "$made"
    { (cd build/aarch64 && cpack) && bash scripts/wheel.sh build/aarch64 &&
      mkdir "$at/tar" "$at/wheel" && tar -xf "$made"/*-linux-aarch64.tar.gz -C "$at/tar" &&
      python3 -m zipfile -e "$made"/*_aarch64.whl "$at/wheel" &&
      chmod +x "$at/wheel/assay_gguf/program/bin/assay"; } >"$log" 2>&1 || { cat "$log"; return 1; }
    for package in "$made"/{assay,libassay0,libassay-dev}_*_arm64.deb; do
        [ "$(dpkg-deb -f "$package" Architecture)" = arm64 ] || return 1
    done
    for program in "$at"/tar/*/bin/assay "$at/wheel/assay_gguf/program/bin/assay"; do
        [ -f "$(dirname "$program")/../lib/assay/libpcre2-8.so.0" ] &&
            python3 -B tests/golden/bits.py compare 0 . qemu-aarch64 -L "$root/" "$program" || return 1
    done
    rm -r "$at"
}
[ "$what" = --some ] || packages || { echo "FAILED: packages"; failed=1; }

# The form of base/system/ for systems other than Linux.
portable() {
    local built=build/aarch64-portable
    { cmake --preset aarch64 -B "$built" "-DCMAKE_SYSROOT=$root" -DASSAY_TESTS=ON -DASSAY_WERROR=ON \
          -DASSAY_PORTABLE=ON &&
      cmake --build "$built" --target assay tests/{base,gguf,cluster,library,serve,cli}/all -- -j "$jobs"; } \
        >"$log" 2>&1 || { grep -v '^\[' "$log" >&2; return 1; }
    python3 -B tests/golden/bits.py compare 25 . qemu-aarch64 -L "$root/" "$built/assay" &&
        ctest --test-dir "$built" --output-on-failure -j "$jobs" -R '^test_' \
            -L '^(base|gguf|cluster|library|serve|cli)$'
}
[ "$what" = --some ] || portable || { echo "FAILED: base/system/posix.c"; failed=1; }

product_test() {
    qemu-aarch64 -L "$3" -cpu "$1" "build/aarch64/tests/kernels/$2" >"build/aarch64/$1-$2.log" 2>&1 ||
        { cat "build/aarch64/$1-$2.log"; echo "FAILED: $2 on $1"; return 1; }
    echo "passed: $2 on $1"
}
export -f product_test
for cpu in cortex-a72 neoverse-n1 max; do
    printf "$cpu\0%s\0$root/\0" "${tests[@]}"
done | xargs -0 -n 3 -P "$jobs" bash -c 'product_test "$@"' product_test || failed=1
[ "$what" != --tests ] || ctest --preset aarch64 -j "$jobs" || failed=1
exit "$failed"
