#!/bin/sh
# replicate.sh SECONDS PROGRAM... - the report of `make replicate`, which has just run all programs
# from nothing: are the tables those on file, and the verdicts too? Its sections are those of the
# ML Reproducibility Challenge. Fails if a table differs.
#
#   replicate.sh --record PROGRAM...  the checksums of the quick pass just made become quick.sha256
#
# In the environment: BUILD; QUICK=1 for the quick pass, on the synthetic digits.
set -u
LC_ALL=C
export LC_ALL
: "${BUILD:=build/replicate}" "${QUICK:=}"
here=examples/experiments # with a folder for each program
case $QUICK in
'' | 0) out=$BUILD/reproduce infix= ;;
*) out=$BUILD/reproduce_quick infix=_quick ;;
esac
report=$BUILD/replication.md

sha256() { sha256sum 2>/dev/null || shasum -a 256; }
rows() { # TABLE: without the lines that name version, compiler and flags
    sed '/^# version:/d; /^# compiler:/d; /^# flags:/d' "$1"
}
checksum() { rows "$1" | sha256 | cut -d' ' -f1; }

if [ "$1" = --record ]; then
    shift
    for program in "$@"; do
        echo "$(checksum "$BUILD/reproduce_quick/${program}_quick.csv")  $program"
    done >"$here/quick.sha256"
    exit
fi
seconds=$1
shift

on_file() { # PROGRAM: the checksum that its table should have
    if [ -n "$infix" ]; then
        sed -n "s/  $1\$//p" "$here/quick.sha256"
    elif [ -f "$here/$1/$1.csv" ]; then
        checksum "$here/$1/$1.csv"
    fi
}

head_line() { # NAME FILE
    sed -n "s/^# $1: //p" "$2" | head -1
}

results() { # a row for each table; the last line is the number of those that differ
    differ=0
    for program in "$@"; do
        table=$out/$program$infix.csv
        if [ ! -f "$table" ]; then
            sum=- same='**no table**' count=0
        else
            sum=$(checksum "$table") count=$(grep -vc '^#' "$table")
            same='the same'
            [ "$sum" = "$(on_file "$program")" ] || same='**differs**'
        fi
        [ "$same" = 'the same' ] || differ=$((differ + 1))
        echo "| $program | $count | \`$(echo "$sum" | cut -c1-16)\` | $same |"
    done
    echo "$differ"
}

verdicts() { # what the verdicts of this run are, and which differ from those on file
    # shellcheck disable=SC2086
    ${UNDER:-} "$BUILD/verdicts" --csv "$BUILD/verdicts.csv" --out "$BUILD/verdicts.md" \
        $(for program in "$@"; do ls "$out/${program}_verdicts.csv"; done 2>/dev/null) || return
    awk -F, 'FNR == 1 { next }
        NR == FNR { before[$1] = $NF; next }
        { now++; count[$NF]++
          if (before[$1] != $NF) other = other "- " $1 ": on file " before[$1] ", here " $NF "\n" }
        END {
            for (verdict in count) list = list sprintf("%d %s, ", count[verdict], verdict)
            printf "%d verdicts: %sfrom this run alone.\n\n", now, list
            if (other != "") printf "These differ from the ones on file:\n\n%s", other
            else print "Each is the one on file."
        }' "$here/verdicts.csv" "$BUILD/verdicts.csv"
}

for program in "$@"; do
    first=$out/$program$infix.csv
    [ ! -f "$first" ] || break
done
table=$(results "$@")
differ=$(echo "$table" | tail -1)
{
    cat <<END
# Replication report

Written by \`make replicate${infix:+ QUICK=1}\` after a run from nothing.

## Scope

$# experiments with the claims of [their pages](../../examples/experiments/README.md): what five
tutorials, and the papers behind them, say of normalization layers in networks and in algebra. A
table on file is replicated if every number in it is the same, to the last digit written.

## Method

- Data: $(head_line data "$first"). Seeds of $(basename "$first"): $(head_line seeds "$first").
- Compiler: $(head_line compiler "$first"), $(head_line flags "$first").
- Machine: $(uname -sm)${UNDER:+, under $UNDER}.
- Time: $((seconds / 60)) min $((seconds % 60)) s, compiling included.
- Settings, criteria and what each run measures stand in the programs and on their pages.

## Results

| experiment | rows | SHA-256, first 16 digits | table on file |
|---|---|---|---|
$(echo "$table" | sed '$d')

$(if [ -n "$infix" ]; then echo "A quick pass gives no verdicts."; else verdicts "$@"; fi)

## What was easy

The programs need a C compiler, stb_image_write.h and the four files of MNIST. One command runs
them, may be stopped at any moment and goes on where it was. All sums have a fixed order and random
numbers a generator of their own, so other machines give the same tables.

## What was difficult

The sources leave out settings: initialization, learning rate, batch size, number of seeds. Ours are
on the pages, named as ours. Their networks and data are hundreds of times larger, so that a claim
about them can be tested here only where its cause is present in a small network.

## What this cannot tell

That a table is the same says that the programs do on two machines what they did on one. It does
not say that they measure what a claim means; the pages argue that. Other seeds, other data and
larger networks are other experiments.
END
} >"$report"
echo "replicate: $(($# - differ)) of $# tables are those on file; the report is $report"
[ "$differ" = 0 ]
