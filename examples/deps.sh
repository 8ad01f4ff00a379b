#!/bin/sh
# deps.sh SET - installs what this machine lacks, with its package manager, and says what it does.
#
#   figures   stb_image_write.h, which draws the PNGs (for `make figures` and `make test`)
#   mnist     curl, if there is no wget either (for `make mnist`)
#   dev       what the whole check matrix wants: g++, clang with its sanitizers, clang 19, tcc,
#             musl, compilers for 32 bits, ARM, RISC-V, PowerPC, s390x, Windows, WebAssembly, QEMU,
#             Wine, valgrind, dieharder, Chromium, Rust, Node with npm, OpenBLAS, Open MPI,
#             PyTorch, oneDNN, NumPy, Matplotlib, CMake, Meson, Ninja, pkg-config, curl, zip, lld;
#             Coq, Coquelicot, Gappa and Frama-C for the proofs
#   peers     what `make bench-peers` and `make bench-mnist` compare with (Debian): PyTorch,
#             oneDNN, and OpenBLAS, without which PyTorch's products are slow
#
# It knows apt-get, dnf, pacman, apk, zypper, brew and port; only the names for apt-get are tried by
# our tests. It works as root, or through sudo or doas, and does nothing when nothing is missing.
# STB=/folder names a folder with stb_image_write.h: then figures and tests need no package.
set -u
: "${STB:=}" "${STB_PLACES:=/usr/include/stb /usr/include /usr/local/include/stb /usr/local/include
    /opt/homebrew/include/stb /opt/homebrew/include /opt/local/include/stb /opt/local/include}"

say() { printf 'deps: %s\n' "$*"; }
have() { command -v "$1" >/dev/null 2>&1; }

has_stb() {
    [ -f "$STB/stb_image_write.h" ] && return 0
    for dir in $STB_PLACES; do [ -f "$dir/stb_image_write.h" ] && return 0; done
    have pkg-config && pkg-config --exists stb
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

has_fuzzer() { # and what counts coverage
    have llvm-cov-19 && ls /usr/lib/llvm-19/lib/clang/*/lib/*/*fuzzer* >/dev/null 2>&1
}

has_header() { # HEADER [COMPILER]
    echo "#include <$1>" | ${2:-cc} -E - >/dev/null 2>&1
}

has_openblas() { # other packages bring its header along, with another library
    has_header cblas.h &&
        echo 'int main(void) { return 0; }' | cc -x c - -o /dev/null -lopenblas 2>/dev/null
}

has_32_bits() { # only asked of an x86-64
    [ "$(uname -m)" = x86_64 ] || return 0
    echo '#include <stdio.h>' | cc -m32 -E - >/dev/null 2>&1 &&
        echo 'int main(void) { return 0; }' | cc -m32 -x c - -o /dev/null 2>/dev/null
}

has_wine() { # Debian's wine64 is not on the path
    have wine || have wine64 || [ -x /usr/lib/wine/wine64 ]
}

has_wasm() { # the C library, and the compiler's own for that processor
    [ -d /usr/include/wasm32-wasi ] && ls /usr/lib/llvm-*/lib/clang/*/lib/wasi >/dev/null 2>&1
}

has_mpi() { # Fedora's is not on the path
    { have mpicc && have mpirun; } || [ -x /usr/lib64/openmpi/bin/mpicc ]
}

has_coq() { # with Coquelicot
    have coqc && have coqtop && [ -d "$(coqc -where)/user-contrib/Coquelicot" ]
}

has_python() { # MODULE...: for the Python of the system (importing them would take seconds)
    for module; do
        /usr/bin/python3 -c "import importlib.util as u, sys
sys.exit(u.find_spec('$module') is None)" 2>/dev/null || return 1
    done
}

clang_major() { # of the clang that is here, or that apt would install
    if have clang; then
        clang -dumpversion | cut -d. -f1
    else
        apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\).*/\1/p' |
            head -n 1
    fi
}

# The names of the packages, one column a manager, two packages joined by a plus; "=": comes with
# another of them, "-": not known.
managers='apt-get dnf pacman apk zypper brew port'
packages() { # ITEM...: what $manager calls them
    column=2
    for m in $managers; do [ "$m" = "$manager" ] && break || column=$((column + 1)); done
    for item; do
        while read row; do # a backslash joins two lines
            # shellcheck disable=SC2086
            set -- $row
            [ "$1" = "$item" ] || continue
            eval "name=\${$column:--}"
            case $name in
            -) echo "no-package-for-$item" ;;
            =) ;;
            libclang-rt) echo "libclang-rt-$(clang_major)-dev" ;;
            multilib) echo "gcc-$(cc -dumpversion | cut -d. -f1)-multilib" ;;
            *) echo "$name" | tr + ' ' ;;
            esac
        done <<'END'
stb libstb-dev stb_image_write-devel stb stb stb-devel stb stb
curl curl curl curl curl curl curl curl
gxx g++ gcc-c++ gcc g++ gcc-c++ gcc gcc13
clang clang clang clang clang clang llvm clang-18
asan libclang-rt compiler-rt compiler-rt compiler-rt = = =
node nodejs+npm nodejs+npm nodejs+npm nodejs+npm nodejs-default+npm-default node nodejs20+npm10
arm gcc-arm-none-eabi arm-none-eabi-gcc-cs arm-none-eabi-gcc gcc-arm-none-eabi \
    cross-arm-none-gcc13 arm-none-eabi-gcc arm-none-eabi-gcc
riscv gcc-riscv64-unknown-elf - riscv64-elf-gcc - - riscv64-elf-gcc riscv64-elf-gcc
rust rustc rust rust rust rust rust rust
python-plot python3-numpy+python3-matplotlib python3-numpy+python3-matplotlib \
    python-numpy+python-matplotlib py3-numpy+py3-matplotlib \
    python3-numpy+python3-matplotlib numpy+python-matplotlib py312-numpy+py312-matplotlib
openblas libopenblas-dev openblas-devel openblas openblas-dev openblas_pthreads-devel \
    openblas OpenBLAS
coq coq+libcoq-coquelicot coq+coq-coquelicot coq - coq coq coq
gappa gappa gappa - - - gappa -
cmake cmake cmake cmake cmake cmake cmake cmake
meson meson meson meson meson meson meson meson
ninja ninja-build ninja-build ninja ninja ninja ninja ninja
pkg-config pkg-config pkgconf-pkg-config pkgconf pkgconf pkg-config pkgconf pkgconfig
mpi openmpi-bin+libopenmpi-dev openmpi-devel openmpi openmpi+openmpi-dev openmpi4-devel \
    open-mpi openmpi
torch-c libtorch-dev - - - - - -
torch-py python3-torch+python3-numpy - - - - - -
multilib multilib - - - - - -
aarch64 gcc-aarch64-linux-gnu+libc6-dev-arm64-cross - - - - - -
riscv64 gcc-riscv64-linux-gnu+libc6-dev-riscv64-cross - - - - - -
powerpc gcc-powerpc-linux-gnu+libc6-dev-powerpc-cross - - - - - -
s390x gcc-s390x-linux-gnu+libc6-dev-s390x-cross - - - - - -
qemu qemu-user-static - qemu-user-static - - - -
windows gcc-mingw-w64-x86-64-win32+wine64 mingw64-gcc+wine mingw-w64-gcc+wine - - - -
clang-19 clang-19+lld-19+llvm-19+libclang-rt-19-dev - - - - - -
wasm wasi-libc+libclang-rt-19-dev-wasm32 - - - - - -
tcc tcc tcc tcc tcc - - -
musl musl-tools musl-gcc musl - - - -
valgrind valgrind valgrind valgrind valgrind valgrind - -
dieharder dieharder dieharder dieharder - - - -
chromium chromium+fonts-liberation chromium chromium chromium chromium - -
omp libomp-dev - - - - - -
zip zip+unzip zip+unzip zip+unzip zip+unzip zip+unzip zip zip
frama-c frama-c-base - - - - - -
lld lld lld lld lld lld lld -
mpfr libmpfr-dev mpfr-devel mpfr mpfr-dev mpfr-devel mpfr mpfr
onednn libdnnl-dev - - - - - -
END
    done
}

install_command() {
    case $manager in
    apt-get) echo "apt-get install -y --no-install-recommends" ;;
    dnf) echo "dnf install -y" ;;
    pacman) echo "pacman -S --needed --noconfirm" ;;
    apk) echo "apk add" ;;
    zypper) echo "zypper --non-interactive install" ;;
    brew) echo "brew install" ;;
    port) echo "port install" ;;
    esac
}

install() {
    say "installing $*"
    case $manager in
    apt-get)
        $root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq \
            --no-install-recommends "$@" >/dev/null
        ;;
    *) $root $(install_command) "$@" ;;
    esac
}

without_packages() { # the way that needs neither a manager nor root
    case $missing in *stb*)
        say "or get the one file stb_image_write.h (https://github.com/nothings/stb) into any" \
            "folder, and add STB=/that/folder to each make"
        ;;
    esac
}

missing=
lacks() { missing="$missing $1"; }
set_of=${1:-figures}
case $set_of in
figures) has_stb || lacks stb ;;
mnist) have curl || have wget || lacks curl ;;
dev)
    have g++ || lacks gxx
    have clang || lacks clang
    has_asan || lacks asan
    { have node && have npm; } || lacks node
    have arm-none-eabi-gcc || lacks arm
    have riscv64-unknown-elf-gcc || have riscv64-elf-gcc || lacks riscv
    have rustc || lacks rust
    has_python numpy matplotlib || lacks python-plot
    has_openblas || lacks openblas
    has_coq || lacks coq
    have gappa || lacks gappa
    for tool in curl cmake meson ninja pkg-config; do have $tool || lacks $tool; done
    has_mpi || lacks mpi
    has_python torch numpy || lacks torch-py
    [ -d /usr/include/torch ] || lacks torch-c
    has_header oneapi/dnnl/dnnl.h || lacks onednn
    has_32_bits || lacks multilib
    for machine in aarch64 riscv64 powerpc s390x; do
        have $machine-linux-gnu-gcc || lacks $machine
    done
    have qemu-s390x-static || have qemu-s390x || lacks qemu
    { have x86_64-w64-mingw32-gcc && has_wine; } || lacks windows
    { have clang-19 && have wasm-ld-19 && has_fuzzer; } || lacks clang-19
    has_wasm || lacks wasm
    for tool in tcc valgrind dieharder chromium; do have $tool || lacks $tool; done
    have musl-gcc || lacks musl
    has_header omp.h clang || lacks omp
    { have zip && have unzip; } || lacks zip
    have frama-c || lacks frama-c
    have wasm-ld || lacks lld
    has_header mpfr.h || lacks mpfr
    ;;
peers)
    have g++ || lacks gxx
    [ -d /usr/include/torch ] || lacks torch-c
    has_python torch numpy || lacks torch-py
    has_header oneapi/dnnl/dnnl.h || lacks onednn
    has_openblas || lacks openblas
    ;;
*)
    say "unknown set '$1'; there are: figures, mnist, dev, peers"
    exit 2
    ;;
esac
if [ -z "$missing" ]; then
    say "nothing is missing"
    exit 0
fi
if [ -n "$STB" ] && [ "${missing# stb}" != "$missing" ]; then
    say "there is no stb_image_write.h in STB=$STB"
fi

manager=
for m in $managers; do
    if have "$m"; then
        manager=$m
        break
    fi
done
if [ -z "$manager" ]; then
    say "missing:$missing; found none of $managers to install them with"
    without_packages
    exit 1
fi
root=
if [ "$(id -u)" != 0 ] && [ "$manager" != brew ]; then
    if have sudo; then root=sudo; elif have doas; then root=doas; fi
    if [ -z "$root" ]; then
        # shellcheck disable=SC2046,SC2086
        say "you are not root, and there is no sudo; as root:" $(install_command) \
            $(packages $missing)
        without_packages
        exit 1
    fi
fi
[ "$manager" = apt-get ] && ! have clang && $root apt-get update -qq
# shellcheck disable=SC2086
wanted=$(packages $missing)
set --
for package in $wanted; do # of dev it is left out, and the checks that want it say so
    case $package in
    no-package-for-*)
        say "we know no package of $manager for ${package#no-package-for-}"
        [ "$set_of" = dev ] || exit 1
        ;;
    *) set -- "$@" "$package" ;;
    esac
done
if [ $# -gt 0 ] && ! install "$@"; then
    say "could not install $*; to see why: ${root:+$root }$(install_command) $*"
    without_packages
    exit 1
fi
say "done"
