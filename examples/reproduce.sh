#!/bin/sh
# reproduce.sh PROGRAM... - all experiments one after the other, most important first, two runs at
# a time. What is done already is not done again, so it may be stopped at any moment, in any way.
#
#   reproduce.sh --publish PROGRAM...   copies what the full run on MNIST gave to docs/experiments
#   reproduce.sh --redraw PROGRAM...    draws and judges the tables of docs/experiments anew
#
# In the environment: BUILD; ONLY="16 17" for some of them; QUICK=1 for a smoke pass; JOBS=2 runs
# at a time; MNIST_DIR, see dataset.h.
set -u
: "${BUILD:=build}" "${ONLY:=}" "${QUICK:=}" "${JOBS:=2}"
docs=docs/experiments
out=$BUILD/reproduce
quick=
if [ -n "$QUICK" ]; then
    out=$BUILD/reproduce_quick
    quick=--quick
fi

# The order of importance, should time run short; those not named here come last.
importance='26 32 21 31 23 10 11 13 15 16 14 29 17 20 30 12 22'

mode=run
case ${1:-} in --*) mode=${1#--} && shift ;; esac

wanted() { # is the program with this number asked for?
    [ -z "$ONLY" ] && return 0
    for only in $ONLY; do [ "${1%%_*}" = "$only" ] && return 0; done
    return 1
}

ordered() { # the programs asked for, in the order of importance
    for number in $importance; do
        for program in "$@"; do
            if [ "${program%%_*}" = "$number" ] && wanted "$program"; then echo "$program"; fi
        done
    done
    for program in "$@"; do
        case " $importance " in *" ${program%%_*} "*) continue ;; esac
        if wanted "$program"; then echo "$program"; fi
    done
}

programs=$(ordered "$@")
if [ -z "$programs" ]; then
    echo "reproduce: there is no experiment '$ONLY'; the experiments are: $*" >&2
    exit 2
fi

minutes() { # seconds on one core, as minutes with JOBS runs at a time
    awk -v s="$1" -v jobs="$JOBS" 'BEGIN { printf "%.0f", s / jobs / 60 + 0.49 }'
}

run_all() {
    plan=$(for program in $programs; do
        "$BUILD/$program" $quick --runs "$BUILD/runs" --plan || exit 1
    done) || exit 1
    echo "$plan" | awk '{ runs += $2; missing += $3 } END {
        printf "reproduce: %d runs, %d of them to do\n", runs, missing }'
    ahead=$(echo "$plan" | awk '{ s += $5 } END { print s + 0 }')
    [ -n "$quick" ] || echo "reproduce: about $(minutes "$ahead") minutes, if this machine is as" \
        "fast as ours"
    failed=
    for program in $programs; do
        ahead=$(echo "$plan" | awk -v name="$program" -v s="$ahead" '
            $1 == name { s -= $5 } END { print s < 0 ? 0 : s }')
        echo "== $program"
        "$BUILD/$program" $quick --threads "$JOBS" --runs "$BUILD/runs" --ahead "$ahead" \
            --out "$out" || failed="$failed $program"
    done
    [ -z "$failed" ] || echo "reproduce: FAILED:$failed" >&2
    tables=$(for program in $(ordered_all "$@"); do ls "$out/${program}_verdicts.csv"; done \
        2>/dev/null)
    # shellcheck disable=SC2086
    [ -z "$tables" ] || "$BUILD/verdicts" --out "$out/verdicts.md" $tables || failed=verdicts
    echo "reproduce: tables, figures and verdicts.md are in $out"
    [ -z "$failed" ]
}

ordered_all() { # all programs by number: how the verdicts are listed
    for program in "$@"; do echo "$program"; done | sort
}

verdicts_of_docs() { # the page of all verdicts, and the tables in the experiments' own pages
    tables=$(ls "$docs"/data/*_verdicts.csv 2>/dev/null)
    # shellcheck disable=SC2086
    [ -z "$tables" ] || "$BUILD/verdicts" --pages experiments --out docs/verdicts.md $tables
    for table in $tables; do
        page=$docs/$(basename "$table" _verdicts.csv).md
        [ ! -f "$page" ] || "$BUILD/verdicts" --into "$page" "$table" || exit 1
    done
}

publish() {
    mkdir -p "$docs/data" "$docs/figures"
    for program in $programs; do
        if ! grep -q '^# mode: full' "$out/$program.csv" ||
            grep -q '^# data: synthetic' "$out/$program.csv"; then
            echo "reproduce: $program: not a full run on MNIST; nothing copied" >&2
            exit 1
        fi
        rm -f "$docs/figures/$program".png "$docs/figures/$program"_*.png
        cp "$out/$program.csv" "$out/${program}_verdicts.csv" "$docs/data/" || exit 1
        cp "$out/$program"*.png "$docs/figures/" || exit 1
    done
    verdicts_of_docs
}

redraw() {
    for program in $programs; do
        table=$docs/data/$program.csv
        if [ ! -f "$table" ]; then
            echo "reproduce: $program has no table in $docs/data yet"
            continue
        fi
        "$BUILD/$program" --from "$table" --out "$out" >/dev/null || exit 1
        rm -f "$docs/figures/$program".png "$docs/figures/$program"_*.png
        cp "$out/${program}_verdicts.csv" "$docs/data/" || exit 1
        cp "$out/$program"*.png "$docs/figures/" || exit 1
    done
    verdicts_of_docs
}

mkdir -p "$out"
case $mode in
run) run_all "$@" ;;
publish) publish ;;
redraw) redraw ;;
*)
    echo "reproduce: unknown option --$mode" >&2
    exit 2
    ;;
esac
