#!/bin/sh
# check.sh - the micro-benchmark in its quick form: every layer and pass is there, every contestant
# gives the right results, every percentage is a positive number, and what is made of the table has
# what the table has. How fast anything is, is not tested.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}" "${STB_CFLAGS=-isystem /usr/include/stb}"
. tests/checks.sh
column() { # column NAME: of the table
    LC_ALL=C awk -F, -v name="$1" '
        /^#/ { next }
        !at { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
        { gsub(/"/, ""); print $at }' "$csv"
}

csv=$dir/bench/layers.csv
check "the quick benchmark runs" env CC="$CC" STB_CFLAGS="$STB_CFLAGS" BUILD="$dir" \
    sh tests/bench/layers.sh --quick
check "a table is written" test -s "$csv"
if [ -s "$csv" ]; then
    column case | sort -u >"$dir/cases"
    for pass in fwd bwd; do
        for case in batchnorm/64x64 batchnorm/64x128 batchnorm/128x1000 batchnorm/128x1024 \
            batchnorm/4x64x56x56 batchnorm/4x128x14x14 layernorm/64x128 layernorm/128x1000 \
            layernorm/128x768 layernorm/32x4096 frozen/64x128 noisy/64x128 relu/64x128 \
            tanh/64x128 sigmoid/64x128 entropy/128x10 linear/64x784x64 linear/8x1000x1000 \
            groupnorm/64x128g8 groupnorm/128x768g32 groupnorm/4x64x56x56g8 \
            groupnorm/4x128x14x14g32 instancenorm/4x64x56x56 instancenorm/4x128x14x14 \
            rmsnorm/64x128 rmsnorm/128x768 rmsnorm/32x4096 l1norm/64x128 l1norm/128x1024 \
            l1norm/4x64x56x56 linfnorm/64x128 linfnorm/128x1024 linfnorm/4x64x56x56 sync/64x128 \
            sync/128x1024 sync/4x64x56x56 weightnorm/784x64 weightnorm/125x1000; do
            check "$case/$pass" grep -qx "$case/$pass" "$dir/cases"
        done
    done
    check "inference of both norms" test "$(grep -c 'norm/.*/inf$' "$dir/cases")" -eq 10
    column status >"$dir/status"
    check "all results are right" test "$(grep -cvx ok "$dir/status")" -eq 0
    column percent_of_limit >"$dir/percent"
    check "all percentages are positive numbers" awk '!/^[0-9.e+-]+$/ || $1 <= 0 { exit 1 }' \
        "$dir/percent"
    column contestant | sort | uniq -c >"$dir/contestants"
    cases=$(wc -l <"$dir/cases")
    for contestant in limit ours ours-O2 ours-O3; do
        check "$contestant has every case" grep -qx " *$((cases)) $contestant" "$dir/contestants"
    done
    check "Markdown has a row for each case" \
        test "$(cat "$dir/bench/layers.md" "$dir/bench/family.md" | grep -c '^| .*[μm]s')" \
        -eq "$cases"
    check "the table of faster contestants has the plain loops and ggml's" \
        test "$(grep -c '^| [pt].* of [0-9]* |' "$dir/bench/slower.md")" -eq 3
fi
check "nothing to do is an error" sh -c "! '$dir/bench/layers' --only nothing --out '$dir/none'"
check "it can be asked for one layer" "$dir/bench/layers" --quick --only relu --out "$dir/one"
verdict bench
