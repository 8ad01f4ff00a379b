#!/bin/sh
# The numbers that README.md boasts of are those of the project: equations of the header, steps of
# the chapters, mutants.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
LC_ALL=C
export LC_ALL

# How many are there? The first number of README.md before the words $1, and the lines $2 counts.
same() {
    said=$(tr '\n' ' ' <README.md | grep -o -E "[0-9]+ $1" | head -n 1 | cut -d' ' -f1)
    [ "$said" = "$2" ] || { echo "README.md says '$said $1', there are $2" && false; }
}
equations=$(awk -f tests/lint/extract_tags.awk normlayers.h | grep -c '^define')
all=$(grep -c '^| [A-Z]*\.[0-9]*[a-z]* | ' docs/equations.md)
check "equations of the header" same "equations in the header" "$equations"
check "steps of the chapters" same "steps in the" $((all - equations))
# those that compute the same are no mistakes
wrong=$(awk -f tests/mutants/entries.awk tests/mutants/list.txt |
    awk '$1 == "mutant" { n++ } $1 == "equivalent" { n-- } END { print n }')
check "mutants" same "wrong edits of the formulas" "$wrong"
# "31 claims: 19 reproduced, 5 partly, ..." as verdicts.md counts them
count=$(sed -n 's/^\*\*\([0-9]* claims: .*\)\.\*\*$/\1/p' examples/experiments/verdicts.md)
check "verdicts of the experiments" sh -c "tr '\n' ' ' <README.md | grep -q -F '${count:-no count}'"
# what the tuned MNIST comparison found: points ahead at the best rates and at one; fewer steps
tuned=examples/experiments/34_tuned_mnist/34_tuned_mnist_verdicts.csv
best=$(sed -n 's/^claim,34m,.*,\([0-9.]*\) ± [0-9.]* points against .*/\1/p' "$tuned")
one=$(sed -n 's/^claim,34m,.* points against \([0-9.]*\) ±.*/\1/p' "$tuned")
fewer=$(sed -n 's/^claim,34a,.*: \([0-9.]*\) times.*/\1/p' "$tuned")
says() {
    tr '\n' ' ' <README.md | grep -q -F "$1" || { echo "README.md does not say '$1'" && false; }
}
check "points at the best rates" says "$(printf '%.1f' "$best") points ahead of no norm"
check "points at one rate" says "$(printf '%.1f' "$one") points at one small rate for all"
check "fewer steps" says "$fewer times fewer steps"
verdict counts
