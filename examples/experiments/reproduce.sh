#!/bin/sh
# reproduce.sh PROGRAM... - all experiments one after the other, most important first, two runs at
# a time. What is done already is not done again, so it may be stopped at any moment, in any way.
#
#   reproduce.sh --publish PROGRAM...   copies what the full run on MNIST gave to the folders here
#   reproduce.sh --redraw PROGRAM...    draws and judges the tables in the folders here anew
#
# In the environment: BUILD; ONLY="16 17" for some of them; QUICK=1 for a smoke pass; JOBS=2 runs
# at a time, 0: one for each processor; MNIST_DIR, see dataset.h; UNDER=qemu-aarch64 for programs of
# another processor.
set -u
LC_ALL=C
export LC_ALL
: "${BUILD:=build}" "${ONLY:=}" "${QUICK:=}" "${JOBS:=2}" "${UNDER:=}"
here=examples/experiments # with a folder for each program
out=$BUILD/reproduce
quick= infix=
case $QUICK in
'' | 0) ;;
*)
    out=$BUILD/reproduce_quick
    quick=--quick infix=_quick # in the names of all results
    ;;
esac

# The order of importance, should time run short; those not named here come last.
importance='26 32 21 31 23 10 34 11 13 15 16 14 29 17 20 30 12 22'

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

refuse() {
    echo "reproduce: $1" >&2
    exit 2
}
case $mode in run | publish | redraw) ;; *) refuse "unknown option --$mode" ;; esac
case $JOBS in *[!0-9]* | ????*) refuse "JOBS= is a number of runs at a time, not '$JOBS'" ;; esac
for number in $ONLY; do
    case " $*" in *" ${number}_"*) ;; *)
        refuse "there is no experiment '$number'; the experiments are: $*"
        ;;
    esac
done
programs=$(ordered "$@")
[ -n "$programs" ] || refuse "there are no experiments"

minutes() { # seconds on one core, as minutes with JOBS runs at a time, if there are the processors
    awk -v s="$1" -v jobs="$JOBS" -v most="$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)" '
        BEGIN { if (jobs < 1 || jobs > most) jobs = most; printf "%.0f", s / jobs / 60 + 0.49 }'
}

# The program under way runs in the background, since a shell that waits for one in the foreground
# hears of no signal until that has ended. It ends its own runs.
child=
run() {
    "$@" &
    child=$!
    wait "$child"
    set -- $?
    child=
    return "$1"
}
stop() { # SIGNAL
    trap - "$1"
    [ -z "$child" ] || kill "$child" 2>/dev/null
    wait
    kill -s "$1" $$
}
for signal in INT TERM HUP; do
    # shellcheck disable=SC2064
    trap "stop $signal" "$signal"
done

forget() { # what an earlier pass left of this program, so that nobody takes it for the result
    rm -f "$out/$1$infix.csv" "$out/$1${infix}_verdicts.csv" "$out/$1$infix.png" \
        "$out/$1${infix}_"*.png
}

run_all() {
    plan=$(for program in $programs; do
        $UNDER "$BUILD/$program" $quick --runs "$BUILD/runs" --plan || exit 1
    done) || exit 1
    echo "$plan" | awk '{ runs += $2; missing += $4 } END {
        printf "reproduce: %d runs, %d of them to do\n", runs, missing }'
    ahead=$(echo "$plan" | awk '{ s += $12 } END { print s + 0 }')
    [ -n "$quick" ] || echo "reproduce: about $(minutes "$ahead") minutes, if this machine is as" \
        "fast as ours"
    failed=
    for program in $programs; do
        ahead=$(echo "$plan" | awk -v name="$program" -v s="$ahead" '
            $1 == name { s -= $12 } END { print s < 0 ? 0 : s }')
        echo "== $program"
        forget "$program"
        # shellcheck disable=SC2086
        run $UNDER "$BUILD/$program" $quick --threads "$JOBS" --runs "$BUILD/runs" \
            --ahead "$ahead" --out "$out" || failed="$failed $program"
    done
    [ -z "$failed" ] || echo "reproduce: FAILED:$failed" >&2
    tables=$(for program in $(ordered_all "$@"); do ls "$out/$program${infix}_verdicts.csv"; done \
        2>/dev/null)
    # shellcheck disable=SC2086
    [ -z "$tables" ] || $UNDER "$BUILD/verdicts" --out "$out/verdicts.md" $tables || failed=verdicts
    echo "reproduce: tables, figures and verdicts.md are in $out"
    [ -z "$failed" ]
}

ordered_all() { # all programs by number: how the verdicts are listed
    for program in "$@"; do echo "$program"; done | sort
}

verdicts_of_all() { # the page of all verdicts, and the tables in the experiments' own pages
    tables=$(ls "$here"/*/*_verdicts.csv 2>/dev/null)
    [ -n "$tables" ] || return 0
    # shellcheck disable=SC2086
    "$BUILD/verdicts" --links --csv "$here/verdicts.csv" --out "$here/verdicts.md" $tables &&
        "$BUILD/verdicts" --into "$here" $tables || exit 1
}

publish_report() { # PROGRAM: its verdicts and pages
    rm -f "$here/$1/$1".png "$here/$1/$1"_*.png
    cp "$out/${1}_verdicts.csv" "$out/$1"*.png "$here/$1/" || exit 1
}

publish() {
    for program in $programs; do
        if ! grep -q '^# mode: full' "$out/$program.csv" 2>/dev/null ||
            grep -q ',not counted:' "$out/${program}_verdicts.csv"; then
            echo "reproduce: $program: not a full run on MNIST; nothing copied" >&2
            exit 1
        fi
        cp "$out/$program.csv" "$here/$program/" || exit 1
        publish_report "$program"
    done
    verdicts_of_all
}

redraw() { # in a folder of its own: what the reader has run himself is not what is on file
    out=$BUILD/redraw
    for program in $programs; do
        table=$here/$program/$program.csv
        if [ ! -f "$table" ]; then
            echo "reproduce: there is no $table yet"
            continue
        fi
        forget "$program"
        run "$BUILD/$program" --from "$table" --out "$out" >/dev/null || exit 1
        publish_report "$program"
    done
    verdicts_of_all
}

mkdir -p "$out" || exit 1
case $mode in
run) run_all "$@" ;;
publish) publish ;;
redraw) redraw ;;
esac
