#!/bin/sh
# tags.sh - the three sets of equation tags agree: defined, computed, proved.
#
#   tests/lint/tags.sh [ROOT]               checks the header, its chapters and their derivations
#   tests/lint/tags.sh --faults [ROOT]      doctors copies of them, one fault each, and checks
#                                           that every fault is found
#
# In the header, a tag such as [LN.14] ends a display equation: a line of a literate block (opened
# by a line that is exactly "/*", closed by one that is exactly "*/") that is indented four spaces.
#   1. Every tag is defined once.
#   2. The tags of a family are numbered 1, 2, 3, ... in the order in which they appear.
#   3. Every tag is cited beside the code that computes it, in the implementation part, or stands in
#      the list below with the reason why nothing computes it; not both.
#   4. Every tag that code, prose, a page or a test cites is defined.
#   5. Every tag has exactly one DERIVE in tests/test_derivations.c and tests/derive_*.h.
# Ranges such as "BN.8 to BN.10" cite all that is in between.
#
# In the chapters, docs/NN_*.md, a display equation is a ```math fence that ends in \tag{LN.14}.
#   6. Every such fence has one tag; no tag is shown twice.
#   7. A tag is one of the header's, or a step on the way to one, LN.14a, LN.14b, ... in this order,
#      or of a family that the header does not have, numbered as those of the header are.
#   8. Every tag that the header does not have has exactly one DERIVE in tests/steps_*.h.
LC_ALL=C
export LC_ALL

not_computed() {
    cat <<'LIST'
SUM.1   shown so as to be avoided: two passes do not cancel
BN.6    a property of the normalized values
BN.7    a property of the normalized values
BN.14   a step: the factor is taken out of the sums of BN.19
BN.15   a step towards BN.18
BN.16   a step towards BN.18
BN.17   a step towards BN.18
BN.18   a step: the Jacobian is never formed, BN.19 is its product with dy
BN.21   a property of the gradient
BN.22   a property of the gradient
BN.23   what BN.19 becomes for two values
LN.6    a property of the normalized values
LN.7    a property of the normalized values
LN.11   a step towards LN.13
LN.12   a step towards LN.13
LN.13   a step: the Jacobian is never formed, LN.14 is its product with g
LN.15   a property of the gradient
LN.16   a property of the gradient
RMS.5   a property of the gradient
NB.6    a property of the draws
LP.10   a step: the Jacobian is never formed, LP.11 is its product with dy
LP.13   a property of t
LP.14   a property of the gradient
LP.15   a property of the gradient
LP.16   a property of the three sizes
WN.4    three lines of the caller's
WN.5    a step towards WN.7
WN.7    a step: the Jacobian is never formed, WN.8 is its product with dW
WN.9    a property of the gradient
WN.10   a property of the gradient
WN.11   batch norm, seen from the weights
WN.12   batch norm, seen from the weights
WN.13   batch norm, seen from the weights
WN.14   batch norm, seen from the weights
CE.7    a property of the gradient
MLP.3   a property of batch norm: why a bias before it is redundant
MLP.4   a property of layer norm: how much of a bias before it is redundant
GC.2    the error of GC.1, which GC.3 takes away
FOLD.3  what FOLD.1 and FOLD.2 come to
FOLD.4  a bound: the error of the folded layer
CONV.6  a property of CONV.5: for the caller, since the import cannot know how long one trains on
RNN.10  a step: the Jacobian is never formed, RNN.4 to RNN.6 are its product with dh
RNN.11  what RNN.4 to RNN.6 come to for a loss on the last state
RNN.12  a property of random weights
RNN.13  a property of the norm
RNN.14  a property of the gradient
RNN.15  a property of the gradient
LIST
}

check() {
    header=$1/normlayers.h
    not_computed | awk -v header="$header" '
function fault(tag, what) {
    if (what != "") print tag ": " what
    bad[tag] = 1
    known[tag] = 1
}
function number_of(tag) {
    sub(/^[A-Z]+\./, "", tag)
    return tag + 0
}
function family_of(tag) {
    sub(/\..*$/, "", tag)
    return tag
}
# Enters every tag of a line, and what lies between the ends of a range, into cited[] and, in the
# implementation, into computed[].
function cite(line, in_code,    before, tag, from, family, n) {
    from = ""
    while (match(line, /[A-Z][A-Z]+\.[0-9]+[a-z]?/)) {
        before = RSTART > 1 ? substr(line, RSTART - 1, 1) : " "
        tag = substr(line, RSTART, RLENGTH)
        if (before !~ /[A-Za-z0-9_]/) {
            cite_one(tag, in_code)
            family = family_of(tag)
            if (from != "" && RSTART == 5 && substr(line, 1, 4) == " to " &&
                family_of(from) == family)
                for (n = number_of(from) + 1; n < number_of(tag); n++)
                    cite_one(family "." n, in_code)
            from = tag
        }
        line = substr(line, RSTART + RLENGTH)
    }
}
function cite_one(tag, in_code) {
    if (!(tag in cited)) cited[tag] = place()
    if (in_code) computed[tag] = 1
}
function place() {
    return FILENAME ":" FNR
}
function define(tag,    family, n) {
    known[tag] = 1
    if (tag in defined) fault(tag, "defined twice, at " defined[tag] " and " place())
    else {
        family = family_of(tag)
        n = number_of(tag)
        if (n != last[family] + 1)
            fault(tag, "out of order at " place() ": " family "." (last[family] + 1) " is due")
        last[family] = n
        defined[tag] = place()
    }
}
# An equation of a chapter.
function show(tag,    parent, letter, family) {
    known[tag] = 1
    if (tag in shown) fault(tag, "shown twice, at " shown[tag] " and " place())
    shown[tag] = place()
    if (tag in defined) return
    if (tag ~ /[a-z]$/) {
        parent = substr(tag, 1, length(tag) - 1)
        letter = index("abcdefghijklmnopqrstuvwxyz", substr(tag, length(tag)))
        if (!(parent in defined)) fault(tag, "a step towards " parent ", which is not defined")
        if (letter != last_step[parent] + 1)
            fault(tag, "out of order at " place() ": step " last_step[parent] + 1 " is due")
        last_step[parent] = letter
    } else {
        family = family_of(tag)
        if (family in last && !(family in of_chapters)) fault(tag, "the header has no " tag)
        of_chapters[family] = 1
        if (number_of(tag) != last[family] + 1)
            fault(tag, "out of order at " place() ": " family "." (last[family] + 1) " is due")
        last[family] = number_of(tag)
    }
    step[tag] = place()
}
# The line without its comments; `inside` remembers a comment that goes on.
function code_of(line,    code, at) {
    code = ""
    for (;;) {
        at = index(line, inside ? "*/" : "/*")
        if (!at) return inside ? code : code line
        if (!inside) code = code substr(line, 1, at - 1)
        line = substr(line, at + 2)
        inside = !inside
    }
}
FILENAME == "-" || FILENAME == "" {
    listed[$1] = 1
    if (NF < 2) fault($1, "listed as not computed, without a reason")
    next
}
FILENAME == header && /^\/\*$/ { prose = 1; next }
FILENAME == header && /^\*\/$/ { prose = 0; next }
FILENAME == header && /^#define NRM_IMPLEMENTED/ { implementation = 1 }
FILENAME == header && prose && /^    .*\[[A-Z]+\.[0-9]+[a-z]?\]$/ {
    tag = $0
    sub(/^.*\[/, "", tag)
    sub(/\]$/, "", tag)
    define(tag)
    sub(/\[[A-Z]+\.[0-9]+[a-z]?\]$/, "")
}
FILENAME == header { cite($0, implementation && !prose); next }
FNR == 1 { inside = fence = 0 }
FILENAME ~ /\/docs\/[0-9][^\/]*\.md$/ && /^```math$/ { fence = 1; tags = 0; next }
fence && /^```$/ {
    if (tags != 1) fault(place(), "a display equation with " tags " tags")
    fence = 0
}
fence && match($0, /\\tag\{[^}]*\}/) {
    tags++
    show(substr($0, RSTART + 5, RLENGTH - 6))
    next
}
FILENAME ~ /\.md$/ { cite($0, 0); next }
{
    line = code_of($0)
    if (opened) sub(/^ */, "", line) # a call that goes on behind its bracket
    line = opened line
    opened = line ~ /(DERIVE|ALSO_OF)\($/ ? line : ""
    if (opened != "") next
    while (match(line, /(DERIVE|ALSO_OF)\("[^"]*"/)) {
        call = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        tag = call
        sub(/^[A-Z_]*\("/, "", tag)
        sub(/"$/, "", tag)
        if (!(tag in cited)) cited[tag] = place()
        if (call !~ /^DERIVE/) continue
        if (tag in derived) fault(tag, "two DERIVEs, at " derived[tag] " and " place())
        if ((FILENAME ~ /\/steps_/) != (tag in step))
            fault(tag, "its DERIVE at " place() " belongs into " \
                (tag in step ? "steps_*.h" : "derive_*.h"))
        derived[tag] = place()
    }
}
END {
    for (tag in cited)
        if (!(tag in defined) && !(tag in step))
            fault(tag, "cited at " cited[tag] " but not defined")
    for (tag in listed)
        if (!(tag in defined)) fault(tag, "listed as not computed, but not defined")
        else if (tag in computed) fault(tag, "listed as not computed, but code cites it")
    for (tag in defined) {
        if (!(tag in computed) && !(tag in listed)) fault(tag, "no code line cites it")
        if (!(tag in derived)) fault(tag, "no DERIVE proves it")
    }
    for (tag in step)
        if (!(tag in derived)) fault(tag, "no DERIVE proves it")
    passed = failed = 0
    for (tag in known)
        if (tag in bad) failed++
        else passed++
    if (passed + failed == 0) failed = 1 # nothing was read
    printf "tags: %d passed, %d failed\n", passed, failed
    exit failed > 0
}' - "$header" "$1"/README.md "$1"/docs/*.md "$1"/tests/test_derivations.c "$1"/tests/derive_*.h \
        "$1"/tests/steps_*.h
}

# One doctored copy: what is wrong with it, an awk program that makes it from all files, and a text
# that the report has to contain.
fault() {
    what=$1
    program=$2
    expected=$3
    rm -rf "$work/copy"
    mkdir -p "$work/copy/docs" "$work/copy/tests"
    for file in normlayers.h README.md docs/*.md tests/test_derivations.c tests/derive_*.h \
        tests/steps_*.h; do
        awk "$program"' { print }' "$file" >"$work/copy/$file"
    done
    if report=$(check "$work/copy"); then
        failed=$((failed + 1))
        echo "not found: $what"
    elif printf '%s\n' "$report" | grep -q -e "$expected"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "found, but not named \"$expected\": $what"
        printf '%s\n' "$report"
    fi
}

faults() {
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    passed=0
    failed=0
    fault 'an equation that stands there twice' '/\[LN.14\]$/ { print }' 'LN.14: defined twice'
    fault 'a missing equation' '/\[LN.12\]$/ { next }' 'LN.13: out of order'
    fault 'the last equation of a family missing' '/\[CE.7\]$/ { next }' 'CE.7: .*not defined'
    fault 'two equations that changed places' \
        '/\[BN.3\]$/ { kept = $0; next } /\[BN.4\]$/ { print; $0 = kept }' 'BN.4: out of order'
    fault 'an equation that no code cites' \
        '!/\[OPT.5\]$/ && !/DERIVE/ { gsub(/OPT\.5/, "that") }' 'OPT.5: no code line cites it'
    fault 'a new equation without code or check' \
        '/\[CE.7\]$/ { print; sub(/CE.7/, "CE.8") }' 'CE.8: no DERIVE proves it'
    fault 'an identity that code has begun to cite' \
        '/\/\* BN.20 is without/ { sub(/BN.20/, "BN.20 and BN.21") }' \
        'BN.21: listed as not computed, but'
    fault 'an identity on the list that is gone' '/\[GC.2\]$/ { next }' 'GC.2: listed as not comp'
    fault 'a code line that cites an unknown tag' \
        '/\/\* LN.14 \*\// { sub(/LN.14/, "LN.41") }' 'LN.41: cited at .* but not defined'
    fault 'prose that cites an unknown tag' \
        '/BN.19 is a projection/ { sub(/BN.19/, "BM.19") }' 'BM.19: cited at .* but not defined'
    fault 'a range that runs too far' 'sub(/EXP.1 to EXP.3/, "EXP.1 to EXP.9") { }' 'EXP.8: cited'
    fault 'an equation without a DERIVE' '/DERIVE\("SUM.5"/ { next }' 'SUM.5: no DERIVE'
    fault 'a DERIVE that is commented out' \
        '/DERIVE\("SUM.3"/ { $0 = "/*" $0 "*/" }' 'SUM.3: no DERIVE'
    fault 'two DERIVEs of one equation' '/DERIVE\("SUM.3"/ { print }' 'SUM.3: two DERIVEs'
    fault 'a DERIVE of no equation' 'sub(/DERIVE\("NB.7"/, "DERIVE(\"NB.8\"") { }' 'NB.8: cited'
    fault 'a second witness of no equation' 'sub(/ALSO_OF\("CE.1"/, "ALSO_OF(\"CE.0\"") { }' \
        'CE.0: cited'
    fault 'an empty header' 'FILENAME ~ /normlayers/ { next }' 'not defined'
    fault 'a fence without a tag' '/\\tag\{BN.4\}/ { next }' 'with 0 tags'
    fault 'an equation shown twice' 'sub(/\\tag\{BN.4\}/, "\\tag{BN.3}") { }' \
        'BN.3: shown twice'
    fault 'a step that is missing' 'sub(/\\tag\{BN.19a\}/, "\\tag{BN.19c}") { }' \
        'BN.19c: out of order'
    fault 'a step towards nothing' 'sub(/\\tag\{BN.19a\}/, "\\tag{BN.91a}") { }' 'BN.91a: a step'
    fault 'a step without a DERIVE' '/DERIVE\("BN.19a"/ { next }' 'BN.19a: no DERIVE'
    fault 'a DERIVE of no step' 'sub(/DERIVE\("BN.19a"/, "DERIVE(\"BN.19z\"") { }' 'BN.19z: cited'
    fault 'a page that cites an unknown tag' \
        '/^# Batch/ { print; $0 = "See BN.99." }' 'BN.99: cited at .* but not defined'
    echo "tags, doctored: $passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

cd "$(dirname "$0")/../.." || exit 1
command=check
if [ "${1:-}" = --faults ]; then
    command=faults
    shift
fi
if [ $# -gt 0 ]; then cd "$1" || exit 1; fi
$command .
