#!/bin/sh
# plain_code.sh - the plain C functions of the chapters compute what the header computes.
#
# The blocks marked ```c plain are taken out of docs/ as they stand there (plain_code.awk) and
# compiled. plain_code.c runs each beside the header in double, on random data, to 1e-12, and then
# again with each tagged line made wrong by a factor of 1.001: every one has to be noticed.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
CC=${CC:-cc}
flags="-std=c99 -O1 -ffp-contract=off -Wall -Wextra -Wpedantic -Werror -DNRM_DOUBLE -I. -Iexamples
-Itests"

compare() { # pages...: the comparison with these pages, compiled and run
    awk -f tests/pages/plain_code.awk "$@" >"$dir/pages.h" || return 1
    # shellcheck disable=SC2086
    $CC $flags -I"$dir" tests/pages/plain_code.c "$dir/header.o" -lm -o "$dir/compare" &&
        "$dir/compare"
}
# A page that is wrong in some other way has to be noticed as well.
doctored() { # page sed-script
    sed "$2" "$1" >"$dir/doctored.md"
    if cmp -s "$1" "$dir/doctored.md"; then return 1; fi
    set -- "$1" docs/[0-9]*.md
    page=$1
    shift
    for file; do
        shift
        if [ "$file" = "$page" ]; then file=$dir/doctored.md; fi
        set -- "$@" "$file"
    done
    ! compare "$@"
}

printf '#define NORMLAYERS_IMPLEMENTATION\n#include "normlayers.h"\n' >"$dir/header.c"
# shellcheck disable=SC2086
check "the header compiles" $CC $flags -c "$dir/header.c" -o "$dir/header.o"
if compare docs/[0-9]*.md; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
batch_norm=docs/01_batch_norm.md
check "a sign" doctored $batch_norm 's|- xhat\[i\] \* sum_xhat / M)|+ xhat[i] * sum_xhat / M)|'
check "a mean that is left out" doctored $batch_norm 's|(dy\[i\] - sum / M|(dy[i]|'
check "an overwritten gradient" doctored $batch_norm 's|\*dbeta += sum;|*dbeta = sum;|'
check "a function that is gone" doctored $batch_norm 's|void batch_norm_infer|void other|'
check "a block that is gone" doctored $batch_norm 's|^```c plain|```c|'
verdict plain_code
