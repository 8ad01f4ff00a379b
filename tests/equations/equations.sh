#!/bin/sh
# equations.sh - every equation of the header and of the chapters: what it says, and how far apart
# its two sides were, by each witness.
#
#   equations.sh          prints the table; fails if an equation has no check, if a witness leaves
#                         more than its bound, or more than docs/equations.md says it leaves, or
#                         if that page asks for other witnesses or bounds than the tests do
#   equations.sh docs     writes docs/equations.md anew
#
# A row is: tag, the witnesses (kind, largest deviation, bound), the equation. The kinds are told in
# derive_tools.h. Environment: CC, BUILD. The last line is "equations: N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}" "${BUILD:=build}"
LC_ALL=C
export LC_ALL
out=$BUILD/equations
page=docs/equations.md
mkdir -p "$out" || exit 1

# The three programs that look at equations, in double, all at a time.
rm -f "$out"/*.txt # of another time
pids=
for program in derivations steps complexstep; do
    (
        $CC -std=c99 -O0 -ffp-contract=off -DNRM_DOUBLE -I. -Iexamples -Itests \
            "tests/equations/test_$program.c" -o "$out/$program" -lm &&
            "$out/$program" -v >"$out/$program.txt"
    ) &
    pids="$pids $!"
done
failed=0
for pid in $pids; do
    wait "$pid" || failed=$((failed + 1))
done
[ "$failed" -eq 0 ] || grep -h FAILED "$out"/*.txt

# The statements: "tag TAB place TAB equation", in the order in which one reads them; a chapter
# shows some of the header's again.
awk -f tests/lint/extract_tags.awk normlayers.h docs/[0-9]*.md | awk -F '\t' '
$1 ~ /define|show/ && !seen[$2]++ { sub(/:[0-9]*$/, "", $3); print $2 "\t" $3 "\t" $NF }' \
    >"$out/statements"

# Joined with what the programs have measured: "tag TAB place TAB equation TAB witnesses", where a
# witness is "kind worst bound".
awk -F '\t' '
FILENAME ~ /\.txt$/ {
    split($0, f, / +/)
    if (f[1] ~ /^[A-Z]+\.[0-9]+[a-z]?$/ && f[2] ~ /^[A-Z]$/) note(f[1], f[2], f[4], f[5])
    next
}
function note(tag, kind, worst, most,    key) {
    key = tag " " kind
    if (!(key in deviation)) kinds[tag] = kinds[tag] kind
    if (!(key in deviation) || worst + 0 > deviation[key] + 0) deviation[key] = worst
    if (!(key in bound) || most + 0 > bound[key] + 0) bound[key] = most
}
{
    row = $0 "\t"
    for (i = 1; i <= length(kinds[$1]); i++) {
        key = $1 " " substr(kinds[$1], i, 1)
        row = row (i > 1 ? ";" : "") substr(kinds[$1], i, 1) " " deviation[key] " " bound[key]
    }
    print row
}' "$out"/derivations.txt "$out"/steps.txt "$out"/complexstep.txt "$out/statements" >"$out/table"

if [ "${1:-}" = docs ]; then
    awk -F '\t' -f tests/equations/equations.awk -v command=page "$out/table" >"$out/page.md" &&
        [ "$failed" -eq 0 ] && cp "$out/page.md" "$page.tmp" && mv "$page.tmp" "$page" &&
        echo "equations: $page is written"
    exit
fi
# What the page promises below 1e-15 is the rounding of long doubles of 64 bits and more. Where they
# are no longer than doubles, the bounds of the tests are all that can be asked.
rounding=1e-15
digits=$(echo __LDBL_MANT_DIG__ | $CC -E -P - 2>/dev/null | tail -n 1)
case $digits in
5[0-9])
    echo "equations: long double is double here, so only the bounds of the tests are asked for"
    rounding=1
    ;;
esac
awk -F '\t' -f tests/equations/equations.awk -v command=check -v failed="$failed" \
    -v rounding="$rounding" "$page" "$out/table"
