#!/bin/sh
# deps.sh - installs what `make figures` and `make test` need and this machine lacks.
#
#   deps.sh figures   stb_image_write (draws the PNGs), curl (fetches MNIST)
#   deps.sh dev       clang with its sanitizer runtime, g++, a compiler for ARM and Open MPI, for
#                     the whole check matrix; without Open MPI the example that needs it is left
#                     out. And Node with npm, for the book; Coq, Coquelicot and Gappa, for the
#                     proofs
#
# It uses whichever package manager is there (apt-get, dnf, pacman, brew), as root or through sudo,
# says what it does, and does nothing when nothing is missing.
set -u

say() { printf 'deps: %s\n' "$*"; }
have() { command -v "$1" >/dev/null 2>&1; }

has_stb() {
    for dir in ${STB:-} /usr/include/stb /usr/include /usr/local/include/stb /usr/local/include \
        /opt/homebrew/include/stb /opt/homebrew/include; do
        [ -f "$dir/stb_image_write.h" ] && return 0
    done
    have pkg-config && pkg-config --exists stb && return 0
    return 1
}

has_asan() { # can clang link a sanitized program?
    have clang || return 1
    dir=$(mktemp -d) || return 1
    echo 'int main(void) { return 0; }' >"$dir/a.c"
    clang -fsanitize=address "$dir/a.c" -o "$dir/a" >/dev/null 2>&1
    found=$?
    rm -rf "$dir"
    return $found
}

has_mpi() { # Fedora's is not on the path
    { have mpicc && have mpirun; } || [ -x /usr/lib64/openmpi/bin/mpicc ]
}

has_coq() { # with Coquelicot
    have coqc && have coqtop || return 1
    dir=$(mktemp -d) || return 1
    echo 'From Coquelicot Require Import Coquelicot.' >"$dir/a.v"
    coqc -q -w none "$dir/a.v" >/dev/null 2>&1
    found=$?
    rm -rf "$dir"
    return $found
}

# The packages for `$1` (stb, curl, g++, clang, asan, node, arm, mpi, coq, gappa) with the manager
# $manager.
package() {
    case $manager:$1 in
    apt-get:stb) echo libstb-dev ;;
    dnf:stb) echo stb_image_write-devel ;;
    *:stb) echo stb ;;
    apt-get:g++) echo g++ ;;
    dnf:g++) echo gcc-c++ ;;
    *:g++) echo gcc ;;
    apt-get:asan) echo "libclang-rt-$(clang_major)-dev" ;;
    dnf:asan) echo compiler-rt ;;
    *:asan) echo compiler-rt ;;
    brew:clang) echo llvm ;;
    brew:node) echo node ;;
    *:node) echo nodejs npm ;;
    apt-get:arm) echo gcc-arm-none-eabi ;;
    dnf:arm) echo arm-none-eabi-gcc-cs ;;
    brew:arm) echo arm-none-eabi-gcc ;;
    *:arm) echo arm-none-eabi-gcc ;;
    apt-get:mpi) echo openmpi-bin libopenmpi-dev ;;
    dnf:mpi) echo openmpi-devel ;;
    pacman:mpi) echo openmpi ;;
    brew:mpi) echo open-mpi ;;
    apt-get:coq) echo coq libcoq-coquelicot ;;
    *:coq) echo coq coquelicot ;;
    *) echo "$1" ;;
    esac
}

clang_major() { # of the clang that is here, or that apt would install
    if have clang; then
        clang -dumpversion | cut -d. -f1
    else
        apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\).*/\1/p' |
            head -n 1
    fi
}

install() {
    say "installing $* with $manager"
    case $manager in
    apt-get)
        $root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq \
            --no-install-recommends "$@" >/dev/null
        ;;
    dnf) $root dnf install -y -q "$@" ;;
    pacman) $root pacman -S --needed --noconfirm "$@" ;;
    brew) brew install "$@" ;;
    esac
}

missing=
optional= # installed if that can be done
case ${1:-figures} in
figures)
    has_stb || missing="$missing stb"
    have curl || have wget || missing="$missing curl"
    ;;
dev)
    have g++ || missing="$missing g++"
    have clang || missing="$missing clang"
    has_asan || missing="$missing asan"
    { have node && have npm; } || missing="$missing node"
    have arm-none-eabi-gcc || missing="$missing arm"
    has_mpi || optional="$optional mpi"
    has_coq || optional="$optional coq"
    have gappa || optional="$optional gappa"
    ;;
*)
    say "unknown set '$1'; there are: figures, dev"
    exit 2
    ;;
esac
if [ -z "$missing$optional" ]; then
    say "nothing is missing"
    exit 0
fi

manager=
for m in apt-get dnf pacman brew; do
    if have $m; then
        manager=$m
        break
    fi
done
root=
[ "$(id -u)" = 0 ] || { have sudo && root=sudo; }
if [ -z "$manager" ] && [ -z "$missing" ]; then
    say "no$optional here, and no package manager to install that with; the rest is there"
    exit 0
fi
if [ -z "$manager" ]; then
    say "missing:$missing; found no apt-get, dnf, pacman or brew to install them with"
    say "stb_image_write.h may also be put anywhere: then call make with STB=/its/folder"
    exit 1
fi
packages=
[ "$manager" = apt-get ] && ! have clang && $root apt-get update -qq
for item in $missing; do packages="$packages $(package "$item")"; done
# shellcheck disable=SC2086
if [ -n "$packages" ] && ! install $packages; then
    say "could not install:$packages"
    exit 1
fi
for item in $optional; do
    target=prove
    [ "$item" = mpi ] && target=mpi
    # shellcheck disable=SC2046
    install $(package "$item") ||
        say "could not install $(package "$item"); \`make $target\` will not work, the rest does"
done
say "done"
