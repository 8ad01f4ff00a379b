#!/bin/sh
# Tests of dieharder on the random numbers, 20 samples each: on the numbers of one stream, and the
# shorter half of them on those of 64 neighbouring streams, 4096 of each in turn, and on normal
# numbers by way of their distribution. Left out are its slowest tests, those that it calls suspect,
# and 201, which finds all generators wrong. A test fails below p = 1e-6.
set -u
cd "$(dirname "$0")/../.." || exit 1
command -v dieharder >/dev/null || { echo "dieharder: missing: dieharder"; exit 1; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
${CC:-cc} -std=c99 -O2 -DNRM_DOUBLE -I. -Itests tests/layers/test_random.c -o "$work/numbers" -lm ||
    exit 1
for kind in bits streams normal; do
    tests="0 8 10 11 12 15 100 102 204"
    [ $kind != bits ] || tests="$tests 1 2 3 9 13 16 101 202 203"
    for test in $tests; do
        "$work/numbers" $kind 1 2>/dev/null | dieharder -g 200 -d $test -p 20 2>/dev/null |
            sed -n "s/^ *\([a-z_0-9]*\)|\([ 0-9]*\)|.*| *\([A-Z]*\) *$/\3 $kind \1\2/p"
    done
done >"$work/verdicts"
grep -v -e '^PASSED' -e '^WEAK' "$work/verdicts"
failed=$(grep -c -v -e '^PASSED' -e '^WEAK' "$work/verdicts")
passed=$(($(wc -l <"$work/verdicts") - failed))
[ "$passed" -ge 120 ] || { echo "dieharder: too few results"; failed=$((failed + 1)); }
echo "dieharder: $(grep -c '^WEAK' "$work/verdicts") weak (p < 0.005 or > 0.995)"
echo "dieharder: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
