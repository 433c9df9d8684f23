#!/usr/bin/env bash
# What a new user does, on new machines of Debian bookworm: scripts/demo.sh and mpirun where nothing
# else is installed, where openmpi-bin alone is, and where everything is; then the packages made
# there, each where nothing else is. A machine is a chroot, made by debootstrap from Debian's server.
# usage: bash scripts/bare-machines.sh [MACHINE...]     (default: bare openmpi-bin everything packages)
# Needs root and debootstrap, a network and 6 GB in TMPDIR; skipped (77) without the first two. The
# committed state is what is built. `packages` is installed after `everything` has made them.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
    echo "it needs root and debootstrap"
    exit 77
fi
[ $# -gt 0 ] || set -- bare openmpi-bin everything packages
root=$(mktemp -d --tmpdir assay-machines.XXXXXX)
trap 'rm -rf "$root"' EXIT # no mount outlives its command, see within()
commit=$(git rev-parse --short=12 HEAD)
assay=build/release/assay
evaluate='perplexity -m data/tiny.Q4_K_M.gguf -f data/text.txt -c 256 --chunks 4'
mpirun='mpirun --allow-run-as-root --oversubscribe -n 2'
install='apt-get install -q -y --no-install-recommends'

step() {
    printf '\n== %s (%d s)\n' "$1" "$SECONDS"
}

# within MACHINE COMMAND: as root in its /src, with mounts and processes of its own.
within() {
    unshare --mount --pid --fork bash -euo pipefail -c '
        mount --make-rprivate /
        mount -t proc proc "$1/proc"
        mount -t sysfs sysfs "$1/sys"
        mkdir -p "$1/dev/shm" && mount -t tmpfs tmpfs "$1/dev/shm"
        exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive \
            chroot "$1" bash -euo pipefail -c "cd /src; $2"' within "$root/$1" "$2"
}

# expect TEXT COMMAND...: what the command prints has the text, whatever its exit code.
expect() {
    local text=$1 said
    shift
    said=$("$@" 2>&1) || true
    printf '%s\n' "$said"
    grep -qF -- "$text" <<<"$said" || { echo "FAILED: nothing printed has: $text"; exit 1; }
}

new_machine() {
    step "$1: a machine"
    if [ ! -d "$root/debian" ]; then
        debootstrap --variant=minbase bookworm "$root/debian" http://deb.debian.org/debian \
            >"$root/log" || { cat "$root/log"; exit 1; }
        echo force-unsafe-io >"$root/debian/etc/dpkg/dpkg.cfg.d/unsafe-io" # it lives for an hour
    fi
    cp -a "$root/debian" "$root/$1"
    cp /etc/resolv.conf "$root/$1/etc/"
    mkdir "$root/$1/src"
    within "$1" 'apt-get update -q'
}

# The same figures from one process and from two.
share() {
    local alone
    alone=$(within "$1" "$2 $evaluate 2>/dev/null | tail -n 1")
    [[ $alone == Final\ estimate* ]] || { echo "FAILED: no estimate, but: $alone"; exit 1; }
    expect "$alone" within "$1" "$mpirun $2 $evaluate"
}

demo() {
    step "$1: scripts/demo.sh"
    expect 'Same top p' within "$1" 'bash scripts/demo.sh'
    step "$1: mpirun"
    share "$1" "$assay"
    expect "commit    $commit" within "$1" "$assay version"
}

for machine in "$@"; do
    new_machine "$machine"
    [ "$machine" = packages ] || git archive "$commit" | tar -x -C "$root/$machine/src"
    case $machine in
        bare) demo bare ;;
        openmpi-bin)
            step "openmpi-bin: without its headers"
            within openmpi-bin "$install openmpi-bin && bash scripts/deps.sh build &&
                apt-get purge -q -y libopenmpi-dev"
            expect 'mpi.h: No such file or directory); built without it' within openmpi-bin \
                "cmake --preset release && cmake --build --preset release --target assay"
            expect 'this build has no assay-mpi-openmpi.so' within openmpi-bin "$mpirun $assay $evaluate"
            demo openmpi-bin # deps.sh installs the headers
            ;;
        everything)
            within everything 'bash scripts/deps.sh all'
            demo everything
            step "everything: packages"
            within everything 'cmake --build --preset release --target package'
            ;;
        packages)
            cp "$root"/everything/src/build/release/package/{,lib}assay*[-_]* "$root/packages/src/"
            within packages 'mkdir alone && tar -xzf assay-*.tar.gz -C alone --strip-components 1'
            cp -r data docs "$root/packages/src/"
            step "packages: the .tar.gz"
            expect 'needs libmicrohttpd, which cannot be loaded' within packages \
                'alone/bin/assay serve -m data/tiny.Q4_K_M.gguf'
            within packages "alone/bin/assay $evaluate"
            step "packages: the .deb"
            within packages 'apt-get install -q -y ./assay_*.deb'
            expect 'listening on' within packages \
                'timeout -s INT 20 assay serve --port 0 -m data/tiny.Q4_K_M.gguf'
            step "packages: the library"
            within packages "apt-get install -q -y ./libassay*.deb && $install gcc libc6-dev pkg-config"
            expect 'worst error' within packages \
                'cc /usr/share/doc/assay/examples/compare_kernel.c $(pkg-config --cflags --libs assay) -lm && ./a.out'
            within packages "$install openmpi-bin"
            share packages assay
            share packages alone/bin/assay
            ;;
    esac
done
step "done: $*"
