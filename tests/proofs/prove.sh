#!/bin/sh
# prove.sh - Coq checks the theorems of tests/proofs/*.v, for every n.
#
#   prove.sh              all files; what each theorem assumes; the tags; the rounding by Gappa
#   prove.sh mutants      wrong edits of the statements (mutants.txt), which must not be provable
#
# A theorem passes if its file compiles and if it rests on nothing but what Coq's real numbers rest
# on: the axioms listed below. Environment: BUILD, JOBS. The last line is "N passed, N failed".
# Without Coq nothing has been proved, and that is a failure.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${BUILD:=build}" "${JOBS:=2}"
LC_ALL=C.UTF-8
export LC_ALL
passed=0
failed=0
fail() {
    failed=$((failed + 1))
    printf 'failed: %s\n' "$*"
}
verdict() {
    echo "proofs: $passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}

# Classical logic, functions that agree everywhere are equal, and Dedekind's cuts: the real numbers
# of Coq's standard library (and Coquelicot's) are built on these.
axioms='ClassicalDedekindReals.sig_forall_dec ClassicalDedekindReals.sig_not_dec
FunctionalExtensionality.functional_extensionality_dep Classical_Prop.classic
ClassicalEpsilon.constructive_indefinite_description'

for tool in coqc coqtop coqdep gappa; do
    command -v $tool >/dev/null ||
        fail "no $tool here; 'make deps-dev' installs Coq, Coquelicot and Gappa"
done
[ "$failed" -eq 0 ] || verdict

out=$BUILD/proofs
mkdir -p "$out" || exit 1
for file in tests/proofs/*.v; do # only those that have changed are compiled anew
    cmp -s "$file" "$out/${file##*/}" || cp "$file" "$out/"
done
cd "$out" || exit 1
files=$(cd "$OLDPWD" && cd tests/proofs && echo *.v)
for file in *.v; do # of another time
    case " $files " in *" $file "*) ;; *) rm -f "${file%.v}".* ;; esac
done
{
    echo "all: $(echo "$files" | sed 's/\.v/.vo/g')"
    printf '%%.vo: %%.v\n\t@coqc -q -w none $< || { rm -f $@; exit 1; }\n'
    coqdep -Q . '' $files 2>/dev/null | grep '\.vo .*:' | sed 's/ [^ ]*\.glob//; s/ [^ ]*\.v\.beautified//
        s/ [^ ]*\.required_vo//; s/\.v$/.v/'
} >Makefile.coq
make -k -j "$JOBS" -f Makefile.coq >log 2>&1 || { cat log; fail "a file does not compile"; }

if [ "${1:-}" = mutants ]; then
    [ "$failed" -eq 0 ] || verdict
    . "$OLDPWD/tests/proofs/mutants.sh"
    verdict
fi

# Every theorem, and what it rests on: "NAME ok" or "NAME AXIOM".
theorems=$(cd "$OLDPWD" && awk -f tests/lint/proofs.awk tests/proofs/*.v |
    awk -F '\t' '{ sub(/:.*/, "", $4); sub(/.*\//, "", $4); sub(/\.v$/, "", $4); print $4 "." $2 }')
assumptions() { # of the theorems $*
    {
        echo "Require $(echo "$files" | sed 's/\.v//g')."
        printf 'Print Assumptions %s.\n' "$@"
    } >"assumed_$part.txt.v"
    mv "assumed_$part.txt.v" "assumed_$part.in"
    coqtop -q -w none <"assumed_$part.in" 2>&1 >"assumed_$part.out" | sed -n '/Error/p'
}
part=0
count=$(echo "$theorems" | wc -l)
echo "$theorems" | split -l $(((count + JOBS - 1) / JOBS)) - theorems.
for list in theorems.*; do
    part=${list#theorems.}
    assumptions $(cat "$list") &
done
wait
for list in theorems.*; do
    awk -v axioms="$axioms" -v list="$list" '
BEGIN {
    split(axioms, a)
    for (i in a) { known[a[i]] = 1; sub(/^.*\./, "", a[i]); known[a[i]] = 1 }
    while ((getline line < list) > 0) name[++n] = line
}
{ sub(/^(Coq < )+/, "") }
/^Closed under the global context|^Axioms:/ { k++; next }
k && match($0, /^[A-Za-z_][A-Za-z_.0-9]*( |$)/) {
    axiom = substr($0, 1, RLENGTH)
    sub(/ $/, "", axiom)
    if (!(axiom in known)) bad[k] = bad[k] " " axiom
}
END {
    for (i = 1; i <= n; i++)
        print name[i] (i > k ? " is not there" : bad[i] == "" ? " ok" : " assumes" bad[i])
}' "assumed_${list#theorems.}.out"
done >assumed
rm -f theorems.*
while read -r name rest; do
    if [ "$rest" = ok ]; then passed=$((passed + 1)); else fail "$name $rest"; fi
done <assumed

cd "$OLDPWD" || exit 1
sh tests/lint/proofs.sh >"$out/lint" || fail "$(cat "$out/lint")"
for script in tests/proofs/*.gappa; do # prints nothing if it has proved all
    [ -f "$script" ] || continue
    if report=$(gappa "$script" 2>&1) && ! printf '%s' "$report" | grep -q -i -E 'error|warning|fail'; then
        passed=$((passed + 1))
    else
        fail "$script: $report"
    fi
done
verdict
