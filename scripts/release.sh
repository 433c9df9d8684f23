#!/usr/bin/env bash
# What a release publishes, in one folder: the source archive, a .tar.gz and .deb of program and library, a
# wheel, the reference pack of the tests, and their checksums. All are made from the source archive
# of the commit that is checked out, and each is tried in a folder that has nothing else.
# usage: bash scripts/release.sh [OUT_FOLDER]     (default: build/release-VERSION)
# Needs what `scripts/deps.sh test` installs, and the reference material in ../shared.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)

fail() {
    echo "release.sh: $1" >&2
    exit "${2:-1}"
}

version=$(sed -n 's/^project(assay VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ -n "$version" ] || fail "CMakeLists.txt names no version"
[ -z "$(git status --porcelain)" ] || fail "there are changes that no commit has: commit them first" 2
[ -d ../shared/format ] || fail "../shared/format is not there: unpack the reference pack beside this folder" 2
commit=$(git rev-parse HEAD)
out=${1:-build/release-$version}
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ -z "$(ls -A "$out")" ] || fail "$out is not empty" 2
bare=$(mktemp -d)
trap 'rm -rf "$bare"' EXIT
log=$bare/log

step() {
    printf '== %s (%d s)\n' "$1" "$SECONDS"
}

# Quiet unless it fails.
quietly() {
    "$@" >"$log" 2>&1 || { tail -n 40 "$log" >&2; fail "failed: $*"; }
}

# In an environment without anything of this build: the version with the commit, and a perplexity,
# which must be the same from every package.
try() {
    local name=$1 program=$2 found
    found=$(cd / && env -i PATH=/usr/bin:/bin LC_ALL=C "$program" version) || fail "$name: version failed"
    grep -qE "^assay +$version\$" <<<"$found" || fail "$name is not version $version: $found"
    if grep -q '^commit' <<<"$found"; then
        grep -qE "^commit +${commit:0:12}\$" <<<"$found" || fail "$name is not of commit ${commit:0:12}: $found"
    fi
    found=$(cd / && env -i PATH=/usr/bin:/bin LC_ALL=C "$program" perplexity -q \
        -m "$source/data/tiny.Q4_K_M.gguf" -f "$source/data/text.txt" -c 64 --chunks 4) ||
        fail "$name: a perplexity failed"
    [[ $found = *"Final estimate: PPL = "* ]] || fail "$name printed no perplexity: $found"
    [ "${figures:=$found}" = "$found" ] || fail "$name prints another perplexity than the others: $found"
    echo "tried: $name: $(grep Final <<<"$found")"
}

step "source archive, and the packages out of it"
source=$bare/assay-$version
git archive --format=tar.gz --prefix="assay-$version/" -o "$out/assay-$version-source.tar.gz" HEAD
tar -xf "$out/assay-$version-source.tar.gz" -C "$bare"
build=$source/build/release
quietly cmake -S "$source" --preset release -B "$build" -DASSAY_BENCH=OFF
quietly cmake --build "$build" --target package -- -j "$jobs"
quietly bash "$source/scripts/wheel.sh" "$build"
cp "$build"/package/*.{tar.gz,deb,whl} "$out"
try "the source archive" "$build/assay"

step ".tar.gz, .deb, wheel"
mkdir "$bare/tar" "$bare/deb"
tar -xf "$out/assay-$version-linux"*.tar.gz -C "$bare/tar"
try "the .tar.gz" "$(echo "$bare"/tar/*/bin/assay)"
dpkg-deb -x "$out"/assay_*.deb "$bare/deb"
try "the .deb" "$bare/deb/usr/bin/assay"
for package in "$out"/libassay*.deb; do
    dpkg-deb -x "$package" "$bare/deb"
done
lib=$(dirname "$(find "$bare/deb" -name libassay.a)")
quietly env PKG_CONFIG_PATH="$lib/pkgconfig" sh -c 'cc -o "$1" "$2" $(pkg-config --cflags --libs assay) -lm' \
    compile "$bare/example" "$source/examples/compare_kernel.c"
quietly env LD_LIBRARY_PATH="$lib" "$bare/example"
echo "tried: the library's .deb: $(head -n 1 "$log")"
quietly python3 -m venv "$bare/venv"
quietly "$bare/venv/bin/pip" install --no-index --no-deps "$out"/assay_gguf-*.whl
try "the wheel" "$(echo "$bare"/venv/lib/python*/site-packages/assay_gguf/program/bin/assay)"
quietly "$bare/venv/bin/python" -c 'import assay_gguf.client'

step "reference pack, and the tests that read it"
pack=$out/assay-$version-reference.tar.gz
mkdir -p "$bare/pack/shared/format"
cp -r ../shared/format/{codebooks,vectors,vectors-ik} "$bare/pack/shared/format"
chmod -R u+w "$bare/pack"
cp tests/reference.md "$bare/pack/shared/README.md"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
    --mode=u+w,a+rX -C "$bare/pack" -c shared | gzip -n >"$pack"
tar -xf "$pack" -C "$bare"
tests=(test_codebooks test_vectors test_gguf_type)
quietly cmake -S "$source" -B "$build" -DASSAY_TESTS=ON
quietly cmake --build "$build" --target "${tests[@]}" -- -j "$jobs"
choice="^($(IFS='|' && echo "${tests[*]}"))\$"
quietly ctest --test-dir "$build" -R "$choice" --no-tests=error --output-junit "$bare/tests.xml" \
    --test-output-size-passed 65536
found=$(python3 "$source/scripts/skipped.py" "$bare/tests.xml")
[ "$found" = $'0 skipped\n0 skipped in part' ] || fail "the reference pack is not whole: $found"
echo "tried: the reference pack: ${tests[*]}"

step "checksums"
(cd "$out" && sha256sum -- *.tar.gz *.deb *.whl >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
(cd "$out" && ls -l -- * | awk '{ print $5, $NF }')
step "done: $out, commit $commit"
