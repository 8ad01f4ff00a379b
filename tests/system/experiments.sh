#!/bin/sh
# experiments.sh - the experiments can be trusted as machines: a smoke pass of all of them, on the
# synthetic digits, ends in time and leaves every figure and verdict, and the tables whose checksums
# are on file; one that was killed three times, with a quarter,
# a half and three quarters done, ends with the same tables; and the tables on file give the
# verdicts beside them.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}" "${BUILD:=build}" "${LIMIT:=180}"
. tests/checks.sh
first=$BUILD/smoke
again=$BUILD/killed
here=examples/experiments
programs=$(cd $here && echo [1-9]*)
MNIST_DIR=synthetic
export MNIST_DIR

smoke() { # FOLDER: all experiments, small
    make -s reproduce QUICK=1 CC="$CC" BUILD="$1"
}
in_time() {
    echo "the smoke pass took $1 s; the limit is $LIMIT s" && [ "$1" -le "$LIMIT" ]
}

# The programs are the same for both passes; compiling is not what is timed.
rm -rf "$first" "$again"
check "the experiments compile" make -s experiments CC="$CC" BUILD="$first"
mkdir -p "$again" && cp "$first/compiled_by" "$again" && cp "$first"/*.o "$again" &&
    for program in $programs verdicts; do
        [ -x "$first/$program" ] && cp "$first/$program" "$again"
    done
began=$(date +%s)
check "a smoke pass of all experiments" smoke "$first"
check "in time" in_time $(($(date +%s) - began))
for program in $programs; do
    for what in .csv .png _verdicts.csv; do
        check "$program$what" sh -c "ls '$first/reproduce_quick/${program}_quick'*$what"
    done
done
# shellcheck disable=SC2086
check "the tables are those of quick.sha256" \
    env QUICK=1 BUILD="$first" sh $here/replicate.sh 0 $programs
check "a page of verdicts" grep -q 'not counted' "$first/reproduce_quick/verdicts.md"

# Three times everything is killed at once, as a power cut would; -s, since not every shell's kill
# takes a group after -9.
runs_done() {
    find "$1/runs" -name '*.csv' 2>/dev/null | wc -l
}
kill_after() { # N: as soon as N runs are done; a pass that ends before is a failure
    setsid make -s reproduce QUICK=1 CC="$CC" BUILD="$again" >/dev/null 2>&1 &
    while [ "$(runs_done "$again")" -lt "$1" ] && kill -s 0 "$!" 2>/dev/null; do sleep 0.1; done
    kill -s KILL -- "-$!"
    was_there=$?
    wait "$!" 2>/dev/null
    echo "killed with $(runs_done "$again") runs done"
    return $was_there
}
if command -v setsid >/dev/null; then
    all=$(runs_done "$first")
    for quarter in 1 2 3; do
        check "killed with $quarter quarters of $all runs done" kill_after $((all * quarter / 4))
    done
    check "a pass that was killed three times ends" smoke "$again"
    for program in $programs; do
        check "$program.csv is the same" \
            cmp "$first/reproduce_quick/${program}_quick.csv" \
            "$again/reproduce_quick/${program}_quick.csv"
    done
else
    echo "experiments: missing: setsid, nothing is killed"
fi

# The tables that are on file give the verdicts that are on file.
for table in $here/*/*_verdicts.csv; do
    [ -f "$table" ] || continue
    program=$(basename "$table" _verdicts.csv)
    check "$program judges its table" "$first/$program" \
        --from "$here/$program/$program.csv" --out "$dir"
    check "$program has the verdicts on file" cmp "$dir/${program}_verdicts.csv" "$table"
    mkdir -p "$dir/$program" && cp "$here/$program/README.md" "$dir/$program"
done
check "the page of verdicts is written" "$first/verdicts" --links --csv "$dir/verdicts.csv" \
    --out "$dir/verdicts.md" $here/*/*_verdicts.csv
check "verdicts.md is that page" cmp "$dir/verdicts.md" $here/verdicts.md
check "verdicts.csv has its numbers" cmp "$dir/verdicts.csv" $here/verdicts.csv
check "the pages take their tables" "$first/verdicts" --into "$dir" $here/*/*_verdicts.csv
for table in $here/*/*_verdicts.csv; do
    program=$(basename "$table" _verdicts.csv)
    check "the page of $program has them" cmp "$dir/$program/README.md" "$here/$program/README.md"
done

# A table that is none is told in one line, and a line's end in a cell does not end the row. Of
# three claims with p = 0.04 and one with 0.9 none is left, and three of them were reproduced alone.
table=$dir/lines.csv
names=kind,id,claim,source,paper,ours,verdict,remark,criterion,pilot,class,why_not
names=$names,n,difference,low,high,effect,p,size,parts,best_p
row='claim,1a,"a\nb|c",,,,reproduced,,,,training,setting,5,1,0.0707,1.929,1.335,0.0407,met,1,0.0407'
none='claim,1b,d,,,,inconclusive,,,,training,setting,5,0.1,-2,2.2,0.06,0.9,met,1,0.9'
printf "%b\n" "$names\n$row" >"$table"
check "a table without a program" sh -c \
    "! '$first/verdicts' --out '$dir/page.md' '$table' 2>'$dir/said' && grep -q program '$dir/said'"
check "a table that is not there" sh -c "! '$first/verdicts' --out '$dir/page.md' '$dir/none.csv' \
    2>'$dir/said' && [ \"\$(grep -o none.csv '$dir/said' | wc -l)\" -eq 1 ]"
printf "%b\n" "# program: 16_lines\n$names\n$row" >"$table"
check "a table with lines in a cell" "$first/verdicts" --out "$dir/page.md" "$table"
check "is one row" grep -q '^| 1a | a b\\|c |.*| reproduced |' "$dir/page.md"
printf "%b\n" "# program: 16_lines\n$names\n$row\n$row\n$row\n$none" >"$table"
check "four tests" "$first/verdicts" --out "$dir/page.md" "$table"
check "none is a discovery" sh -c "! grep -q '^| 1a .*| reproduced |' '$dir/page.md' &&
    [ \"\$(grep -c '[*]inconclusive[*]' '$dir/page.md')\" -ge 4 ]"
verdict experiments
