#!/bin/sh
# same_row.sh - tests/bits/test_same_row.c in all builds: the three types, for this processor and
# for any, plain, with several threads. And the control: two builds in which a row does depend on
# its company must be found, one that takes the length of a block from the number of rows, and one
# whose products OpenBLAS computes (Debian: libopenblas-dev).
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}"
. tests/checks.sh
OMP_WAIT_POLICY=passive OMP_DYNAMIC=false
export OMP_WAIT_POLICY OMP_DYNAMIC

compile() { # program, flags...
    program=$dir/$1
    shift
    # shellcheck disable=SC2086
    $CC -std=c99 -ffp-contract=off -I. -Iexamples -Itests "$@" tests/bits/test_same_row.c \
        -o "$program" -lm $libraries
}

finds() { # says that the program fails, and where
    "$dir/$1" >"$dir/$1.log" 2>&1 && return 1
    grep -q "$2" "$dir/$1.log"
}

libraries=
for type in float "double -DNRM_DOUBLE" "float-statistics -DNRM_ACC=float"; do
    name=${type%% *} option=${type#"$name"}
    for flags in -O1 -O2 "-O3 -march=native" "-O2 -DNRM_PLAIN" "-O2 -fopenmp -DNRM_OPENMP"; do
        # shellcheck disable=SC2086
        check "$name: compiles with $flags" compile same_row $flags $option
        for threads in 1 2 3; do
            case $flags:$threads in
            *openmp*) what=", $threads threads" ;;
            *:1) what= ;;
            *) continue ;;
            esac
            check "$name, $flags$what" env OMP_NUM_THREADS=$threads "$dir/same_row"
        done
    done
done

# A block of 256 values if the batch is small, of 1024 if it is large.
mkdir -p "$dir/doctored"
sed 's/nrmi_least(D - at->i, NRMI_BLOCK)/nrmi_least(D - at->i, v->groups < 8 ? 256 : NRMI_BLOCK)/' \
    normlayers.h >"$dir/doctored/normlayers.h"
check "the doctored header is another one" test -n \
    "$(cmp normlayers.h "$dir/doctored/normlayers.h")"
check "it compiles" compile doctored_row -O2 -iquote "$dir/doctored"
check "blocks whose length depends on the batch are found" finds doctored_row "layer norm, width"

printf '#include <cblas.h>\n#define NRM_GEMM cblas_sgemm\n' >"$dir/blas.h"
libraries=-lopenblas
check "it compiles with OpenBLAS" compile blas_row -O2 -include "$dir/blas.h"
check "OpenBLAS gives a row other bits in other batches" finds blas_row "linear, width"
verdict same_row
