#!/bin/sh
# proofs.sh - every equation of the header has a theorem, or a reason for having none.
#
#   1. Each tag is the name of a theorem in tests/proofs/*.v, BN_19 for BN.19, or stands in
#      tests/proofs/exceptions.txt with a reason; not both.
#   2. The comment above that theorem begins with the tag and the equation, as the header has it.
#   3. A theorem with another name, BN_19_kernel, adds to one that there is; no name is used twice.
#   4. There are at least 110 of (1).
#   5. No proof is left out: no Admitted, Axiom, Parameter, Conjecture, admit.
#   6. The table of docs/how_we_know.md is what tests/proofs/how_we_know.sh makes of all this.
#
# Whether the theorems are true, `make prove` says; this lint reads the text and needs no Coq.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
LC_ALL=C
export LC_ALL

tags() {
    {
        awk -f tests/lint/extract_tags.awk normlayers.h
        awk -f tests/lint/proofs.awk tests/proofs/*.v
        sed -n 's/^\([A-Z][A-Z]*\.[0-9][0-9]*\)  *\([a-z ]*\): \(.*\)$/except\t\1\t\2\t\3/p' \
            tests/proofs/exceptions.txt
    } | awk -F '\t' '
function fault(what) { print what; bad = 1 }
$1 == "define" { says[$2] = $5 }
$1 == "theorem" {
    if ($2 in place) fault($2 " is a theorem at " place[$2] " and at " $4)
    place[$2] = $4
    name = $3
    sub(/\./, "_", name)
    if ($2 == name) { comment[$3] = $5; proved++ } else adds[$2] = $3
}
$1 == "except" {
    if ($2 in excepted) fault($2 " stands twice in exceptions.txt")
    if ($3 !~ /^(definition|random|floating point|heuristic)$/) fault($2 ": reason \"" $3 "\"?")
    excepted[$2] = 1
}
END {
    for (tag in says) {
        if (!(tag in comment) && !(tag in excepted)) fault(tag " has no theorem and no reason")
        if (tag in comment && tag in excepted) fault(tag " has both a theorem and a reason")
        if (tag in comment && !index(comment[tag], "(* " tag ": " says[tag]))
            fault(tag ": the comment of its theorem is not the equation: " says[tag])
    }
    for (tag in comment) if (!(tag in says)) fault(tag " is a theorem, but no equation")
    for (tag in excepted) if (!(tag in says)) fault(tag " is an exception, but no equation")
    for (name in adds) if (!(adds[name] in comment)) fault(name " adds to no theorem")
    if (proved < 110) fault("only " proved " theorems")
    exit bad
}'
}
whole() {
    ! grep -n -w -E 'Admitted|Axioms?|Parameters?|Conjectures?|admit|give_up|Abort|bypass_check' \
        tests/proofs/*.v
}
check "every equation is a theorem or an exception" tags
check "no proof is left out" whole
check "the table of docs/how_we_know.md is current" sh tests/proofs/how_we_know.sh check
verdict proofs
