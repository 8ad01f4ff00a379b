#!/bin/sh
# prove.sh - Coq checks the theorems of tests/proofs/*.v, for every n.
#
#   prove.sh              all files; what each theorem assumes; the tags; the rounding, by Gappa
#                         and beside what is measured
#   prove.sh mutants      wrong edits of the statements (mutants.txt), which must not be provable
#   prove.sh all          both
#
# A theorem passes if its file compiles and if it rests on nothing but what Coq's real numbers rest
# on: the axioms listed below. Environment: CC, BUILD, JOBS. The last line is "N passed, N failed".
# Without Coq nothing has been proved, and that is a failure.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}" "${BUILD:=build}" "${JOBS:=2}"
LC_ALL=C.UTF-8
export LC_ALL
. tests/checks.sh

# Classical logic, functions that agree everywhere are equal, and Dedekind's cuts: the real numbers
# of Coq's standard library (and Coquelicot's) are built on these.
axioms='ClassicalDedekindReals.sig_forall_dec ClassicalDedekindReals.sig_not_dec
FunctionalExtensionality.functional_extensionality_dep Classical_Prop.classic'

for tool in coqc coqtop coqdep gappa; do
    command -v $tool >/dev/null ||
        fail "no $tool here; 'make deps-dev' installs Coq, Coquelicot and Gappa"
done
[ "$failed" -eq 0 ] || { verdict proofs; exit; }

root=$PWD
mkdir -p "$BUILD/proofs" || exit 1
out=$(cd "$BUILD/proofs" && pwd)
for file in tests/proofs/*.v; do # only those that have changed are compiled anew
    cmp -s "$file" "$out/${file##*/}" || cp "$file" "$out/"
done
cd "$out" || exit 1
files=$(cd "$root/tests/proofs" && echo *.v)
for file in *.v; do # of another time
    case " $files " in *" $file "*) ;; *) rm -f "${file%.v}".* ;; esac
done
{
    echo "all: $(echo "$files" | sed 's/\.v/.vo/g')"
    printf '%%.vo: %%.v\n\t@coqc -q -w none $< || { rm -f $@; exit 1; }\n'
    # only what each .vo needs
    coqdep -Q . '' $files 2>/dev/null | grep '\.vo .*:' |
        sed 's/^\([^ ]*\.vo\) [^:]*:/\1:/'
} >Makefile.coq
make -k -j "$JOBS" -f Makefile.coq >log 2>&1 || { cat log; fail "a file does not compile"; }

if [ "${1:-}" = mutants ]; then
    [ "$failed" -ne 0 ] || . "$root/tests/proofs/mutants.sh"
    verdict proofs
    exit
fi

# Every theorem, and what it rests on: "FILE.NAME ok", or the axioms beyond the known ones. Asking
# for all of a file together takes a second, one by one minutes; so one by one is for culprits only.
theorems=$(cd "$root" && awk -f tests/lint/proofs.awk tests/proofs/*.v |
    awk -F '\t' '{ sub(/:.*/, "", $4); sub(/.*\//, "", $4); sub(/\.v$/, "", $4); print $4 "." $2 }')
foreign() { # the unknown axioms behind the theorems $*; "nothing" if Coq does not know them all
    {
        echo "Require $(echo "$files" | sed 's/\.v//g')."
        echo "Definition those := ($(echo "$*" | sed 's/ /, /g'))."
        echo 'Print Assumptions those.'
    } | coqtop -q -w none 2>&1 | awk -v axioms="$axioms" '
BEGIN {
    split(axioms, a)
    for (i in a) {
        known[a[i]] = 1
        sub(/^.*\./, "", a[i])
        known[a[i]] = 1
    }
}
{ gsub(/Coq < /, "") }
/Closed under the global context|^Axioms:/ { answered = 1; next }
answered && match($0, /^[A-Za-z_][A-Za-z_.0-9]*( |$)/) && !/^Fetching opaque/ {
    axiom = substr($0, 1, RLENGTH)
    sub(/ $/, "", axiom)
    if (!(axiom in known)) print axiom
}
END { if (!answered) print "nothing" }'
}
for file in $files; do
    {
        names=$(echo "$theorems" | grep "^${file%.v}\.")
        if [ -z "$names" ]; then
            :
        elif [ -z "$(foreign $names)" ]; then
            printf '%s ok\n' $names
        else
            for name in $names; do
                rests=$(foreign "$name" | tr '\n' ' ')
                echo "$name ${rests:-ok}"
            done
        fi
    } >"${file%.v}.assumed" &
    running=$((${running:-0} + 1))
    [ $((running % JOBS)) -ne 0 ] || wait
done
wait
for file in $files; do
    while read -r name rests; do
        case $rests in
        ok) pass ;;
        nothing*) fail "$name: Coq does not know it" ;;
        *) fail "$name rests on $rests" ;;
        esac
    done <"${file%.v}.assumed"
done
[ $((passed + failed)) -ge "$(echo "$theorems" | wc -l)" ] || fail "some theorem was not looked at"

cd "$root" || exit 1
sh tests/lint/proofs.sh >"$out/lint" || fail "$(cat "$out/lint")"
for script in tests/proofs/*.gappa; do # prints nothing if it has proved all
    [ -f "$script" ] || continue
    if report=$(gappa "$script" 2>&1) && [ -z "$report" ]; then
        pass
    else
        fail "$script: $report"
    fi
done
# The error of the plain primitives, beside the bound: the table of docs/accuracy.md.
if $CC -std=c99 -O2 -ffp-contract=off -DNRM_PLAIN -DNRM_ACC=float -I. -Iexamples \
    tests/proofs/rounding.c -o "$out/rounding" -lm && "$out/rounding" >"$out/rounding.txt"; then
    pass
else
    fail "an error is beyond its bound: $(cat "$out/rounding.txt")"
fi
while read -r line; do
    grep -q -x -F "$line" docs/accuracy.md || fail "docs/accuracy.md has not the row: $line"
done <"$out/rounding.txt"

if [ "${1:-}" = all ]; then
    cd "$out" || exit 1
    . "$root/tests/proofs/mutants.sh"
fi
verdict proofs
