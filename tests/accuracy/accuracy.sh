#!/bin/sh
# accuracy.sh - builds and runs the accuracy program: normlayers.h in three precisions, the usual
# algorithms, and PyTorch where some Python has it, against the exact result.
#
#   accuracy.sh            tables and figure into BUILD/accuracy; fails if a bound is broken
#   accuracy.sh docs       the same, then figure, CSV and tables into docs/
#
# Environment: CC, BUILD, FLAGS (of the compiler), as the Makefile sets them. BUILD/lab.a must
# be there.
set -eu
cd "$(dirname "$0")/../.."
: "${CC:=cc}" "${BUILD:=build}" "${FLAGS:=-std=c99 -O2 -ffp-contract=off}"
out=$BUILD/accuracy
mkdir -p "$out"

compile() { # object, source, options
    # shellcheck disable=SC2086
    $CC $FLAGS -Wall -Wextra -Wpedantic -I. -Iexamples -Itests $3 -c "tests/accuracy/$2.c" \
        -o "$out/$1.o"
}
compile layers layers ""
compile layers_float_sums layers -DNRM_ACC=float
compile layers_double layers -DNRM_DOUBLE
for source in textbook torch report accuracy; do compile $source $source ""; done
$CC "$out"/layers.o "$out"/layers_float_sums.o "$out"/layers_double.o "$out"/textbook.o \
    "$out"/torch.o "$out"/report.o "$out"/accuracy.o "$BUILD/lab.a" \
    -o "$out/accuracy" -lm

. tests/torch.sh
status=0
"$out/accuracy" --out "$out/" ${python:+--python "$python"} || status=$?
if [ "${1:-}" = docs ] && [ $status -eq 0 ]; then
    cp "$out/accuracy.png" "$out/accuracy.csv" docs/figures/
    awk -v tables="$out/accuracy_tables.md" '
        /^<!-- tables: end -->$/ { skip = 0 }
        !skip { print }
        /^<!-- tables: begin/ {
            skip = 1
            print ""
            while ((getline line < tables) > 0) print line
            print ""
        }' docs/accuracy.md >"$out/accuracy.md"
    cp "$out/accuracy.md" docs/accuracy.md
    echo "wrote docs/accuracy.md, docs/figures/accuracy.png and .csv"
fi
exit $status
