#!/bin/sh
# deps.sh - examples/deps.sh with stand-ins for the package managers: it asks each for its own
# names, asks none where nothing is missing or STB= is given, and a failure names the next step.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
mkdir "$dir/base" "$dir/stb folder" "$dir/none"
: >"$dir/stb folder/stb_image_write.h"
for tool in sh tr cut sed head mktemp rm; do ln -s "$(command -v $tool)" "$dir/base/$tool"; done

machine() { # UID COMMAND...: a machine with these commands, which write down how they are called
    rm -rf "$dir/bin" "$dir/asked"
    cp -R "$dir/base" "$dir/bin"
    printf '#!/bin/sh\necho %s\n' "$1" >"$dir/bin/id"
    shift
    for tool; do
        case $tool in
        sudo | doas) printf '#!/bin/sh\necho "%s $*" >>"%s"\nexec "$@"\n' "$tool" "$dir/asked" ;;
        *) printf '#!/bin/sh\necho "%s $*" >>"%s"\n[ ! -f "%s" ]\n' "$tool" "$dir/asked" \
            "$dir/fails" ;;
        esac >"$dir/bin/$tool"
    done
    chmod +x "$dir/bin"/*
}
deps() { # SET: what it says is in $dir/said
    PATH="$dir/bin" STB="${STB:-}" STB_PLACES="$dir/none" sh examples/deps.sh "$@" >"$dir/said" 2>&1
}
asked() { # did the last line that a manager was called with end so?
    cat "$dir/said" && grep -qx -- "$1" "$dir/asked"
}
fails() {
    ! "$@"
}
says() {
    cat "$dir/said" && grep -qF -- "$1" "$dir/said"
}

while read -r manager call; do
    machine 0 "$manager"
    check "$manager, figures" deps figures
    check "$manager is asked for stb" asked "$manager $call"
    check "$manager, dev" deps dev
    check "$manager is asked for cmake" sh -c "grep -q '^$manager .* cmake ' '$dir/asked'"
done <<'LIST'
apt-get install -y -qq --no-install-recommends libstb-dev
dnf install -y stb_image_write-devel
pacman -S --needed --noconfirm stb
apk add stb
zypper --non-interactive install stb-devel
brew install stb
port install stb
LIST

machine 0 apt-get
deps dev
for package in tcc musl-tools clang-19 lld-19 wasi-libc gcc-aarch64-linux-gnu \
    gcc-riscv64-linux-gnu gcc-powerpc-linux-gnu gcc-s390x-linux-gnu qemu-user-static \
    gcc-mingw-w64-x86-64-win32 wine64 valgrind chromium libmpfr-dev; do
    check "apt-get is asked for $package" grep -q " $package\( \|$\)" "$dir/asked"
done
machine 0
check "no manager is a failure" fails deps figures
check "which says STB=" says "add STB=/that/folder"
STB="$dir/stb folder"
check "STB= needs no manager" deps figures
machine 1000 apt-get
check "nor root" deps figures
check "and asks nobody" test ! -f "$dir/asked"
STB=$dir/none
check "STB= without the file" fails deps figures
check "is told" says "there is no stb_image_write.h in STB=$dir/none"
STB=
check "without root or sudo" fails deps figures
check "it says what root must do" \
    says "as root: apt-get install -y --no-install-recommends libstb-dev"
check "or that STB= goes without" says "add STB=/that/folder"
check "and asks nobody" test ! -f "$dir/asked"
machine 1000 zypper sudo
check "through sudo" deps figures
check "it asks sudo" asked "sudo zypper --non-interactive install stb-devel"
machine 1000 apk doas
check "through doas" deps figures
check "it asks doas" asked "doas apk add stb"
machine 0 dnf
: >"$dir/fails"
check "a manager that fails" fails deps figures
check "is named with its command" says "to see why: dnf install -y stb_image_write-devel"
check "and the way without it" says "add STB=/that/folder"
rm "$dir/fails"
check "PyTorch where no name is known" fails deps peers
machine 1000
check "MNIST without curl" fails deps mnist
machine 1000 wget
check "MNIST with wget" deps mnist
check "an unknown set" fails deps everything
verdict deps
