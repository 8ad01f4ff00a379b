#!/bin/sh
# run.sh - makes every mutant of list.txt, runs the tests on it, and names what kills it.
#
#   run.sh               all mutants, as many at a time as there are processors
#   run.sh --sample [N]  N (100) that the name of the commit draws, and all in functions that the
#                        last commits changed (SINCE=COMMIT: since then)
#   run.sh --only ID...  these, or all that shell patterns name; shows what failed
#   run.sh --write [ID...]  all or these, and writes their killers to killers.txt if none fails
#
# A mutant is asked for its equations first (test_derivations), or for the programs that its entry
# names, and if these are content then all fast tests. It passes if it is killed by the program and
# the equation (or test function) that killers.txt names before it, or if it is on record as
# equivalent and no test says otherwise. Environment: CC, CC_OPENMP (gcc), BUILD, JOBS. The last
# line is "mutants: N passed, M failed".
set -u
self=$(cd "$(dirname "$0")" && pwd)/run.sh
cd "${MUTANTS_ROOT:-$(dirname "$0")/../..}" || exit 1
. tests/suite.sh
: "${CC:=cc}" "${BUILD:=build}"
# Any compiler will do; without optimisation clang is the faster one by a quarter.
if [ "$CC" = cc ] && command -v clang >/dev/null 2>&1; then CC=clang; fi
export CC BUILD LC_ALL=C
killers=${MUTANTS_KILLERS:-tests/mutants/killers.txt}
mkdir -p "$BUILD" || exit 1
BUILD=$(cd "$BUILD" && pwd) # the tests leave this folder
work=${MUTANTS_WORK:-$BUILD/mutants} about=

flags="-std=c99 -O0 -ffp-contract=off -pthread -w -DTEST_FIRST_FAILURE"
: "${SUITE:=derivations golden contracts sync workers numerics gemm layers conventions mlp
complexstep npz invariance status unchanged power golden.f32 contracts.f32 numerics.f32 status.f32
power.f32}"

# ---- one entry of the list -----------------------------------------------------------------------

# field ID NAME: the text of one line of its entry, nothing if it has none.
field() {
    awk -v id="$1" -v name="$2" '
        $1 == "mutant" { mine = $2 == id }
        mine && $1 == name { sub(/^[^ ]* /, ""); print; exit }' "$work/list"
}

# mutate ID FILE: the file with the line replaced; a message and status 1 if it is not there.
mutate() {
    awk -v id="$1" '
        function bare(line) { sub(/^ +/, "", line); return line }
        function starts(line,   at) { # is this where the function is declared or defined?
            if (sub(/^NRM_KERNEL\(/, "void ", line)) sub(/,/, "(", line)
            at = index(line, within "(")
            return line ~ /^[A-Za-z]/ && at > 1 && substr(line, at - 1, 1) ~ /[ *]/
        }
        FNR == NR {
            if ($1 == "mutant") mine = $2 == id
            if (!mine) next
            if ($1 == "in") { within = $2; place = $3 }
            if ($1 == "-") from = substr($0, 3)
            if ($1 == "+") to = substr($0, 3)
            next
        }
        {
            line[FNR] = $0
            if (within != "" && !inside) {
                if (starts($0)) pending = 1
                if (pending && $0 ~ /;$/) pending = 0
                if (pending && $0 == "{") { pending = 0; inside = 1 }
            } else if (inside && $0 == "}") inside = 0
            if ((within == "" || inside) && bare($0) == from) found[++count] = FNR
        }
        END {
            if (from == "" || to == "") { print "no such entry, or no lines in it"; exit 1 }
            if (count == 0) { print "not in the file: " from; exit 1 }
            if (count > 1 && place == "") { print count " times in the file: " from; exit 1 }
            at = found[place == "" ? 1 : place]
            if (at == "") { print "not that often in the file: " from; exit 1 }
            match(line[at], /^ */)
            for (i = 1; i <= FNR; i++)
                print i == at ? substr(line[i], 1, RLENGTH) to : line[i]
        }' "$work/list" "$2"
}

# ---- one program on one header -------------------------------------------------------------------

# limited SECONDS COMMAND...: ends it after so much processor time, or ten times as much of a clock
limited() {
    seconds=$1
    shift
    # shellcheck disable=SC3045
    (
        ulimit -t "$seconds" 2>/dev/null # where there is one
        exec "$@"
    ) &
    child=$!
    (
        trap 'kill $nap; exit' TERM
        sleep $((seconds * 10)) &
        nap=$!
        wait $nap
        kill -9 $child
    ) >/dev/null 2>&1 &
    watch=$!
    # whoever stops the run stops both; left alone, they would go on for hours
    trap 'kill -9 $child; kill $watch; exit 1' HUP INT TERM
    wait $child
    code=$?
    trap - HUP INT TERM
    kill $watch 2>/dev/null
    wait $watch 2>/dev/null
    return $code
}

# The part of a program that no mutant changes; nothing for those that contain the header.
prebuild() {
    if [ "$(row "$name" 2)" = whole ] || [ -f "$work/$1.o" ]; then return; fi
    # shellcheck disable=SC2046,SC2086
    $CC $flags -O1 $(defines "x.$kind") -DNRM_IMPLEMENTED -I. -Iexamples -Itests \
        -c "$source" -o "$work/$1.$$.o" && mv "$work/$1.$$.o" "$work/$1.o"
}

# build PROGRAM FOLDER: with the header that is in the folder, to FOLDER/PROGRAM.
build() {
    name=${1%.*} kind=f64 compiler=$CC header=
    case $1 in
    *.f32) kind=f32 ;;
    *.threads) kind=threads compiler="${CC_OPENMP:-gcc} -fopenmp" header="-DNRM_OPENMP" ;;
    *) name=$1 ;;
    esac
    source=tests/$(row "$name" 1).c
    [ -d "$2/tests" ] || prebuild "$1" || return 1
    # shellcheck disable=SC2046,SC2086
    if [ -d "$2/tests" ]; then
        $CC $flags $(defines "x.$kind") -I"$2" -I"$2/examples" -I"$2/tests" "$2/$source" \
            -o "$2/$1" -lm 2>>"$2/compiler"
    elif [ "$(row "$name" 2)" = whole ]; then
        $CC $flags $(defines "x.$kind") -I"$2" -Iexamples -Itests "$source" \
            -o "$2/$1" -lm 2>>"$2/compiler"
    else
        [ -f "$2/$kind.o" ] || $compiler $flags $header $(defines "x.$kind") -x c \
            -DNORMLAYERS_IMPLEMENTATION -c "$2/normlayers.h" -o "$2/$kind.o" 2>>"$2/compiler" ||
            return 1
        $compiler -pthread "$work/$1.o" "$2/$kind.o" -o "$2/$1" -lm 2>>"$2/compiler"
    fi
}

# run PROGRAM FOLDER SECONDS: status 0 if it is content; else $verdict says what failed.
run() {
    log=$2/$1.log
    TMPDIR=$2 OMP_NUM_THREADS=3 limited "$3" "$2/$1" >"$log" 2>&1
    code=$?
    rm -f "$2/$1"
    [ $code -eq 0 ] && return 0
    verdict=$(awk -v about=", $about," '
        function add(what) { if (!(what in seen)) { seen[what] = 1; name[++count] = what } }
        function print_some(   i, gap) {
            for (i = 1; i <= count && i <= 5; i++) { printf "%s%s", gap, name[i]; gap = ", " }
            if (count > 5) printf " and %d more", count - 5
        }
        /FAILED$/ && $1 ~ /^[A-Z]+\.[0-9]+$/ { # its own equations first
            if (index(about, ", " $1 ",")) add($1)
            else other[++others] = $1
        }
        /^FAILED / { sub(/[,(]$/, "", $2); add($2) }
        END { for (i = 1; i <= others; i++) add(other[i]); print_some() }' "$log")
    if [ -z "$verdict" ]; then
        case $code in
        137 | 152 | 265) verdict="out of time" ;;
        *) if [ $code -gt 128 ]; then verdict=crash; else verdict="exit $code"; fi ;;
        esac
    fi
    verdict="$1: $verdict"
    return 1
}

# ---- one mutant ----------------------------------------------------------------------------------

# Puts FOLDER/mutant in the place of the file; of another than the header in copies of all.
place() { # place FILE FOLDER
    if [ "$1" != normlayers.h ]; then
        mkdir -p "$2/examples" && cp -R tests normlayers.h "$2" &&
            cp -R examples/*.h examples/lab examples/plot "$2/examples"
    fi
    mv "$2/mutant" "$2/$1"
}

# Leaves in FOLDER/result: "killed" or "survived" and the verdict, or "broken" and why.
judge() { # judge ID FOLDER
    rm -rf "$2"
    mkdir -p "$2" || exit 1
    file=$(field "$1" file)
    : "${file:=normlayers.h}"
    if ! mutate "$1" "$file" >"$2/mutant"; then
        echo "broken $(sed -n 1p "$2/mutant")" >"$2/result"
        return
    fi
    place "$file" "$2"
    by=$(field "$1" by)
    about=$(field "$1" about)
    : "${by:=derivations}"
    for program in $by $SUITE; do
        case " $asked " in *" $program "*) continue ;; esac
        asked="$asked $program"
        if ! build "$program" "$2"; then
            echo "broken does not compile, see $2/compiler" >"$2/result"
            return
        fi
        if ! run "$program" "$2" "$(limit "$program")"; then
            echo "killed $verdict" >"$2/result"
            return
        fi
    done
    echo survived >"$2/result"
}

# How long a program may take: much longer than it took with the right header.
limit() {
    if [ -f "$work/$1.seconds" ]; then cat "$work/$1.seconds"; else echo 120; fi
}

# One line about a mutant, and status 0 if all is as it should be.
report() { # report ID FOLDER
    result=$(cat "$2/result" 2>/dev/null || echo "broken no result")
    verdict=${result#* }
    reason=$(field "$1" equivalent)
    about=$(field "$1" about)
    case $result in
    killed*)
        recorded=$(recorded | sed -n "s/^$1  //p")
        line="killed  $1  by ${verdict#*: } (${verdict%%:*})"
        if [ -n "$reason" ]; then
            echo "FAILED  $1  is on record as equivalent, but was killed by $verdict"
            return 1
        elif [ "$write" = 0 ] && [ "$recorded" != "$(first "$verdict")" ]; then
            echo "FAILED  $1  killed by $verdict; on record: ${recorded:-nothing}"
            return 1
        fi
        echo "$line"
        ;;
    survived)
        if [ -z "$reason" ]; then
            echo "FAILED  $1  survived all tests; it is about $about"
            return 1
        fi
        echo "equal   $1  survived, as it must: $reason"
        ;;
    *)
        echo "FAILED  $1  $verdict"
        return 1
        ;;
    esac
}

# The program and the first name of a verdict.
first() {
    echo "${1%%[,]*}" | sed 's/ and [0-9]* more$//'
}

# killers.txt as a line for each mutant, and the way back: a line for each killer.
recorded() {
    awk '!/^ / { killer = $0; sub(/  .*/, "", killer); sub(/^.*  /, "") }
        { for (i = 1; i <= NF; i++) print $i "  " killer }' "$killers" 2>/dev/null
}
grouped() {
    awk '
        function flush() { if (line != "") print line; line = "" }
        { id = $1; sub(/^[^ ]+  /, ""); if (!($0 in of)) name[++n] = $0; of[$0] = of[$0] " " id }
        END {
            for (i = 1; i <= n; i++) {
                m = split(of[name[i]], ids, " ")
                line = name[i] " "
                for (j = 1; j <= m; j++) {
                    if (length(line) + length(ids[j]) + 1 > 100) { flush(); line = "   " }
                    line = line " " ids[j]
                }
                flush()
            }
        }'
}

# ---- all of them ---------------------------------------------------------------------------------

# sampled N: names of mutants. Of those on lines of functions in which a line is new, all.
sampled() {
    since=${SINCE:-HEAD~5}
    git diff -U0 "$since" -- normlayers.h 2>/dev/null |
        sed -n 's/^@@ [^+]*+\([0-9]*\),*\([0-9]*\) @@.*/\1 \2/p' >"$work/changed"
    seed=$(git rev-parse HEAD 2>/dev/null | cksum | cut -d' ' -f1)
    awk -v seed="$seed" -v wanted="$1" '
        function bare(line) { sub(/^ +/, "", line); return line }
        FILENAME ~ /changed$/ {
            for (i = 0; i < ($2 == "" ? 1 : $2); i++) new[$1 + i] = 1
            next
        }
        FILENAME ~ /normlayers.h$/ { # a function is a part between two blank lines at the margin
            if ($0 == "" && ended) { part++; ended = 0 }
            if ($0 ~ /^[}#]/) ended = 1
            if (FNR in new) changed[part] = 1
            of[bare($0)] = of[bare($0)] " " part + 0
            next
        }
        $1 == "mutant" { id[++n] = $2; draw[n] = 0 }
        /^- / {
            m = split(of[substr($0, 3)], parts, " ")
            for (i = 1; i <= m; i++) if (parts[i] in changed) draw[n] = 1
        }
        END {
            srand(seed % 2147483647)
            for (left = n; left > 0 && wanted > 0; left--) # each as likely as any other
                if (rand() * left < wanted) { draw[left] = 1; wanted-- }
            for (i = 1; i <= n; i++) if (draw[i]) print id[i]
        }' "$work/changed" normlayers.h "$work/list"
}

write=0 show=0 sample= patterns='*'
case ${1:-} in
one) # from below: judge one of them
    asked=
    judge "$2" "$work/$2"
    # what is not wanted any more is large
    rm -rf "$work/$2/normlayers.h" "$work/$2"/*.o "$work/$2/tests" "$work/$2/examples"
    write=$3
    report "$2" "$work/$2"
    exit 0
    ;;
control) # from below, too: one program, and how long it takes with the header as it is
    mkdir -p "$work/none.$2"
    cp normlayers.h "$work/none.$2/normlayers.h"
    started=$(date +%s)
    if build "$2" "$work/none.$2" && run "$2" "$work/none.$2" 600; then
        echo $((10 * ($(date +%s) - started + 1))) >"$work/$2.seconds"
        rm -rf "$work/none.$2"
    else
        echo "mutants: $2 fails, or does not compile, without any mutant:"
        cat "$work/none.$2/compiler" "$work/none.$2/$2.log" 2>/dev/null | tail -n 5
        touch "$work/unfit"
    fi
    exit 0
    ;;
'') ;;
--write)
    shift
    write=1 patterns=${*:-*}
    ;;
--sample)
    sample=${2:-100}
    work=$work.sample
    ;;
--only)
    shift
    patterns=${*:?which ones?} show=1
    work=$work.only
    ;;
*) # the comment at the top
    sed -n '2,/^set -u/{/^set -u/d;s/^# \{0,1\}//p;}' "$self"
    case $1 in -h | --help) exit 0 ;; esac
    exit 2
    ;;
esac
export MUTANTS_WORK="$work"

rm -rf "$work"
mkdir -p "$work" || exit 1
awk -f tests/mutants/entries.awk "${MUTANTS_LIST:-tests/mutants/list.txt}" >"$work/list" || exit 1
processors=${JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)}

all=$(awk '$1 == "mutant" { print $2 }' "$work/list")
[ -z "$sample" ] || patterns=$(sampled "$sample")
set -f # the patterns are for names of mutants, not of files
ids=$(for id in $all; do
    for pattern in $patterns; do
        # shellcheck disable=SC2254
        case $id in $pattern) echo "$id" && break ;; esac
    done
done)
set +f
if [ -z "$ids" ]; then
    echo "mutants: no mutant is called $patterns"
    echo "mutants: 0 passed, 1 failed"
    exit 1
fi
twice=$(echo "$all" | sort | uniq -d)

# The programs that will be asked, on the header as it is: they must be content with it.
programs=$(for id in $ids; do
    if [ -n "$(field "$id" equivalent)" ]; then echo "$SUITE"; fi
    by=$(field "$id" by)
    echo "${by:-derivations}"
done | tr ' ' '\n' | sort -u)
echo "$programs" | xargs -n 1 -P "$processors" sh "$self" control
if [ -f "$work/unfit" ]; then
    echo "mutants: 0 passed, 1 failed"
    exit 1
fi

# shellcheck disable=SC2086
echo $ids | tr ' ' '\n' | xargs -P "$processors" -I ID sh "$self" one ID $write |
    tee "$work/report"
# Those whose judge was itself ended, for want of memory say, have not passed.
passed=$(grep -c -E '^(killed|equal) ' "$work/report")
failed=$(($(echo "$ids" | wc -w) - passed))
if [ -n "$twice" ]; then
    echo "FAILED  two entries of the name $twice"
    failed=$((failed + 1))
fi
if [ $show = 1 ]; then
    for id in $ids; do
        echo "== $id: $(field "$id" story)"
        grep -hE 'FAILED|failed:' "$work/$id"/*.log 2>/dev/null | sed -n 1,20p
    done
fi
if [ $write = 1 ] && [ "$failed" -gt 0 ]; then
    echo "mutants: $killers is left as it was"
elif [ $write = 1 ]; then
    recorded >"$work/recorded"
    for id in $all; do
        case $(cat "$work/$id/result" 2>/dev/null) in
        killed*) echo "$id  $(first "$(sed 's/^killed //' "$work/$id/result")")" ;;
        survived) echo "$id  none: equivalent" ;;
        *) grep "^$id  " "$work/recorded" ;; # not asked
        esac
    done | grouped >"$killers.tmp" && mv "$killers.tmp" "$killers"
fi
echo "mutants: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
