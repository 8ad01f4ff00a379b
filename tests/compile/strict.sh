#!/bin/sh
# The warning matrix: normlayers.h under every option, language standard and compiler that is here,
# and the examples and tests in C99, with the strictest set of warnings that makes sense for a
# library, each of them an error.
#
#   tests/compile/strict.sh            all
#   tests/compile/strict.sh header     the header only
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh

common="-Werror -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow \
-Wdouble-promotion -Wvla -Wundef -Wcast-qual -Wmissing-declarations"
c_only="-Wc++-compat -Wstrict-prototypes -Wmissing-prototypes"
stb=$(pkg-config --cflags stb 2>/dev/null | sed 's/-I/-isystem /g')
mpi= # where mpi.h is, as Open MPI and MPICH say it
for words in "$(mpicc --showme:compile 2>/dev/null)" "$(mpicc -compile_info 2>/dev/null)"; do
    for word in $words; do
        case $word in -I*) mpi="$mpi -isystem ${word#-I}" ;; esac
    done
done

compiles() { # what, compiler, flags, source
    # shellcheck disable=SC2086
    check "$1" "$2" $3 $common -I. -fsyntax-only "$4"
}

has() { # compiler, header, flags...
    printf '#include <%s>\n' "$2" >"$dir/has.c"
    has_compiler=$1
    shift 2
    "$has_compiler" "$@" -fsyntax-only "$dir/has.c" 2>/dev/null
}

sources=$dir/sources
mkdir "$sources"
# A file that holds the implementation, and one that only reads the declarations.
printf '#define NORMLAYERS_IMPLEMENTATION\n#include "normlayers.h"\n' >"$sources/implementation.c"
cat >"$sources/user.c" <<'END'
#include "normlayers.h"
int main(void);
int main(void)
{
    return nrm_strerror(NRM_OK) == NULL;
}
END
cp "$sources/implementation.c" "$sources/implementation.cc"
sed '/^int main(void);$/d' "$sources/user.c" >"$sources/user.cc"

check_compiler() { # compiler, all or header
    compiler=$1 dir=$dir/$1
    mkdir "$dir"
    cp "$sources"/* "$dir"
    for option in "" -DNRM_DOUBLE -DNRM_STATIC "-DNRM_STATIC -DNRM_DOUBLE" -DNRM_ACC=float \
        "-DNRM_DOUBLE -DNRM_ACC=double" -DNRM_NO_VECTORS -DNRM_PLAIN "-O3 -march=native"; do
        between="c11 c17 c++17" # by options, the oldest standard and the newest will do
        [ -z "$option" ] || between=
        for source in implementation user; do
            for standard in c99 c2x c++11 c++20 $between; do
                only=$c_only suffix=c
                case $standard in c++*) only= suffix=cc ;; esac
                compiles "$compiler -std=$standard $option, $source" "$compiler" \
                    "-std=$standard $option $only" "$dir/$source.$suffix"
            done
        done
    done
    # -fsyntax-only stops before the warnings that come with optimisation
    # shellcheck disable=SC2086
    check "$compiler -O2" "$compiler" -std=c99 -O2 $common $c_only -I. -c "$dir/implementation.c" \
        -o "$dir/x.o"
    [ "$2" = header ] && return
    for source in examples/*.c examples/*/*.c examples/experiments/*/*.c tests/*/*.c; do
        [ -f "$source" ] || continue
        # the code of the pages, which plain_code.sh takes out of them and compiles
        [ "$source" = tests/pages/plain_code.c ] && continue
        case $source in tests/analyse/*) continue ;; esac # for Frama-C; planted faults
        if [ "$source" = tests/bench/peer_onednn.c ] && ! has "$compiler" oneapi/dnnl/dnnl.h; then
            echo "strict: missing: oneDNN, $source is not checked"
            continue
        fi
        # shellcheck disable=SC2086
        if [ "$source" = examples/mpi_batchnorm.c ] && ! has "$compiler" mpi.h $mpi; then
            echo "strict: missing: MPI, $source is not checked"
            continue
        fi
        case $source in
        examples/mpi_batchnorm.c | examples/lab/*.c) options="- --DNRM_DOUBLE" ;;
        tests/compile/side_double.c) options=--DNRM_DOUBLE ;;
        *) options=- ;;
        esac
        # programs that hold the library themselves are built in all three types, but for those
        # that count on a nrm_acc in double
        case $source in
        */test_complexstep.c | tests/compile/freestanding.c) options="- --DNRM_DOUBLE" ;;
        tests/proofs/rounding.c) options=--DNRM_ACC=float ;;
        tests/*)
            grep -q 'define NORMLAYERS_IMPLEMENTATION' "$source" &&
                options="- --DNRM_DOUBLE --DNRM_ACC=float"
            ;;
        esac
        for option in $options; do
            compiles "$compiler $source $option" "$compiler" \
                "-std=c99 $c_only $stb $mpi -Iexamples -Itests -Itests/bench ${option#-}" "$source"
        done
    done
    # each header by itself
    for header in examples/*.h examples/*/*.h; do
        printf '#include "%s"\nextern int header_unit;\n' "$header" >"$dir/header.c"
        compiles "$compiler $header" "$compiler" "-std=c99 $c_only $stb -Iexamples" "$dir/header.c"
    done
}

one() { # compiler, all or header: what it found, and its counts in a file
    check_compiler "$@"
    echo "$passed $failed" >"$sources.$1"
}
for compiler in gcc clang; do
    if command -v "$compiler" >/dev/null 2>&1; then
        (one "$compiler" "${1:-all}") &
    else
        echo "strict: missing: $compiler"
    fi
done
wait
for counts in "$sources".*; do
    read -r p f <"$counts"
    passed=$((passed + p)) failed=$((failed + f))
done
# PyTorch's headers take their own liberties, so the file that uses them has fewer warnings.
torch="-std=c++17 -isystem /usr/include/torch/csrc/api/include"
if [ "${1:-all}" = all ] && command -v g++ >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    if ! has g++ ATen/ATen.h -x c++ $torch; then
        echo "strict: missing: PyTorch for C++, tests/bench/peer_torch.cpp is not checked"
    else
        check tests/bench/peer_torch.cpp g++ $torch -Werror -Wall -Wextra -Wshadow -Itests/bench \
            -fsyntax-only tests/bench/peer_torch.cpp
    fi
fi
verdict strict
