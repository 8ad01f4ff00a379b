#!/bin/sh
# tags.sh - the three sets of equation tags agree: defined, computed, proved.
#
#   tests/lint/tags.sh [ROOT]               checks the header, its chapters and their derivations
#   tests/lint/tags.sh --faults [ROOT]      doctors copies of them, one fault each, and checks
#                                           that every fault is found
#
# How tags are written, and where, extract_tags.awk says.
#   1. Every tag is defined once.
#   2. The tags of a family are numbered 1, 2, 3, ... without a gap.
#   3. A tag in square brackets, [BN.19], is computed by a line of code; one in round ones, (BN.17),
#      a step or a property, is not.
#   4. Every tag that code, prose, a page or a test cites is defined.
#   5. Every tag has a claim in layers.claims or functions.claims, or one DERIVE in derive_*.h, of
#      tests/equations.
# And in the chapters, docs/NN_*.md:
#   6. Every display equation has one tag; no tag is shown twice.
#   7. A tag is one of the header's; or goes on where the header's family ends, in order, or is of a
#      family of the chapters; or is a step on the way to any of these, LN.14a, LN.14b, ... in this
#      order.
#   8. Every tag that the header does not have has a claim in tests/equations/*.claims, or one
#      DERIVE in steps_*.h there.
LC_ALL=C
export LC_ALL

agree() {
    awk -f "$lint/extract_tags.awk" "$1/normlayers.h" "$1"/README.md "$1"/docs/*.md |
        awk '
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
function define(tag, place, kind,    family) {
    known[tag] = 1
    if (tag in defined) fault(tag, "defined twice, at " defined[tag] " and " place)
    defined[tag] = place
    to_compute[tag] = kind == "computed"
    family = family_of(tag)
    of_header[family] = 1
    if (number_of(tag) > last[family]) last[family] = number_of(tag)
}
# An equation of a chapter.
function show(tag, place,    parent, letter, family) {
    known[tag] = 1
    if (tag in shown) fault(tag, "shown twice, at " shown[tag] " and " place)
    shown[tag] = place
    if (tag in defined) return
    if (tag ~ /[a-z]$/) {
        parent = substr(tag, 1, length(tag) - 1)
        letter = index("abcdefghijklmnopqrstuvwxyz", substr(tag, length(tag)))
        towards[tag] = parent
        if (letter != last_step[parent] + 1)
            fault(tag, "out of order at " place ": step " last_step[parent] + 1 " is due")
        last_step[parent] = letter
    } else {
        family = family_of(tag)
        if (number_of(tag) != last[family] + 1)
            fault(tag, "out of order at " place ": " family "." (last[family] + 1) " is due")
        last[family] = number_of(tag)
    }
    step[tag] = place
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
FILENAME == "-" {
    split($0, f, "\t")
    if (f[1] == "define") define(f[2], f[3], f[4])
    if (f[1] == "show") show(f[2], f[3])
    if (f[1] == "fence") fault(f[3], "a display equation with " f[4] " tags")
    if (f[1] == "compute" && !(f[2] in computed)) computed[f[2]] = f[3]
    if (f[1] ~ /cite|compute/ && !(f[2] in cited)) cited[f[2]] = f[3]
    next
}
FNR == 1 { inside = 0 }
FILENAME ~ /\.claims$/ {
    if (!match($0, /^[A-Z]+\.[0-9]+[a-z]?/)) next
    tag = substr($0, 1, RLENGTH)
    if (!(tag in cited)) cited[tag] = FILENAME ":" FNR
    derived[tag] = FILENAME ":" FNR
    if ((FILENAME ~ /(layers|functions)\.claims$/) == (tag in step))
        fault(tag, "its claim at " derived[tag] " belongs to those of the " \
            (tag in step ? "chapter" : "header"))
    next
}
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
        place = FILENAME ":" FNR
        if (!(tag in cited)) cited[tag] = place
        if (call !~ /^DERIVE/) continue
        if (tag in derived) fault(tag, "two DERIVEs, at " derived[tag] " and " place)
        if ((FILENAME ~ /\/steps_/) != (tag in step))
            fault(tag, "its DERIVE at " place " belongs into " \
                (tag in step ? "steps_*.h" : "derive_*.h"))
        derived[tag] = place
    }
}
END {
    for (tag in towards)
        if (!(towards[tag] in defined) && !(towards[tag] in step))
            fault(tag, "a step towards " towards[tag] ", which is not defined")
    for (tag in cited)
        if (!(tag in defined) && !(tag in step))
            fault(tag, "cited at " cited[tag] " but not defined")
    for (family in of_header)
        for (n = 1; n < last[family]; n++)
            if (!(family "." n in defined) && !(family "." n in step))
                fault(family "." n, "not defined, but " family "." last[family] " is")
    for (tag in defined) {
        if (to_compute[tag] && !(tag in computed))
            fault(tag, "no line of code computes it; a step would be (" tag ")")
        if (!to_compute[tag] && tag in computed)
            fault(tag, "a step, but computed at " computed[tag] "; it would be [" tag "]")
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
}' - "$1"/tests/equations/test_derivations.c "$1"/tests/equations/derive_*.h \
    "$1"/tests/equations/steps_*.h "$1"/tests/equations/*.claims
}

# One doctored copy: what is wrong with it, an awk program that makes it from all files, and a text
# that the report has to contain.
fault() {
    what=$1
    program=$2
    expected=$3
    rm -rf "$dir/copy"
    mkdir -p "$dir/copy/docs" "$dir/copy/tests/equations"
    for file in normlayers.h README.md docs/*.md tests/equations/test_derivations.c \
        tests/equations/derive_*.h tests/equations/steps_*.h tests/equations/*.claims; do
        awk "$program"' { print }' "$file" >"$dir/copy/$file"
    done
    agree "$dir/copy" >"$dir/report" && fail "$what: not found" && return
    check "$what: found, but not named $expected" grep -e "$expected" "$dir/report"
}

faults() {
    . "$lint/../checks.sh"
    fault 'an equation that stands there twice' '/\[LN.14\]$/ { print }' 'LN.14: defined twice'
    fault 'a missing equation' '/^    .*\(LN.12\)$/ { next }' 'LN.12: out of order'
    fault 'the last equation of a family missing' '/^    .*\(CE.7\)$/ { next }' 'CE.7: its claim'
    fault 'an equation whose line is gone' 'sub(/ *\/\* OPT\.5.*\*\//, "") { }' \
        'OPT.5: no line of code computes it'
    fault 'an equation that a comment only speaks of' 'sub(/\/\* OPT\.5/, "/* see OPT.5") { }' \
        'OPT.5: no line of code computes it'
    fault 'a step that pretends to be computed' \
        '/^    .*\(BN.17\)$/ { sub(/\(BN.17\)$/, "[BN.17]") }' 'BN.17: no line of code computes it'
    fault 'a step that a line computes' 'sub(/\/\* BN\.19/, "/* BN.18, BN.19") { }' \
        'BN.18: a step, but computed'
    fault 'an equation that pretends to be a step' \
        '/^    .*\[BN.19\]$/ { sub(/\[BN.19\]$/, "(BN.19)") }' 'BN.19: a step, but computed'
    fault 'a new equation without code or check' \
        '/^    .*\(CE.7\)$/ { print; sub(/\(CE.7\)/, "[CE.8]") }' 'CE.8: no DERIVE proves it'
    fault 'a code line that cites an unknown tag' \
        'sub(/\/\* LN.14/, "/* LN.41") { }' 'LN.41: cited at .* but not defined'
    fault 'prose that cites an unknown tag' \
        '/BN.19 is a projection/ { sub(/BN.19/, "BM.19") }' 'BM.19: cited at .* but not defined'
    fault 'a range that runs too far' 'sub(/ACT.4 to ACT.6/, "ACT.4 to ACT.9") { }' 'ACT.8: cited'
    fault 'an equation without a DERIVE' '/DERIVE\("SUM.5"/ { next }' 'SUM.5: no DERIVE'
    fault 'a DERIVE that is commented out' \
        '/DERIVE\("SUM.3"/ { $0 = "/*" $0 "*/" }' 'SUM.3: no DERIVE'
    fault 'two DERIVEs of one equation' '/DERIVE\("SUM.3"/ { print }' 'SUM.3: two DERIVEs'
    fault 'a DERIVE of no equation' 'sub(/DERIVE\("GC.7"/, "DERIVE(\"GC.8\"") { }' 'GC.8: cited'
    fault 'a second witness of no equation' 'sub(/ALSO_OF\("GC.2"/, "ALSO_OF(\"GC.0\"") { }' \
        'GC.0: cited'
    fault 'an empty header' 'FILENAME ~ /normlayers/ { next }' 'out of order'
    fault 'a fence without a tag' '/\\tag\{BN.4\}/ { next }' 'with 0 tags'
    fault 'an equation shown twice' 'sub(/\\tag\{BN.4\}/, "\\tag{BN.3}") { }' \
        'BN.3: shown twice'
    fault 'a step that is missing' 'sub(/\\tag\{BN.19a\}/, "\\tag{BN.19c}") { }' \
        'BN.19c: out of order'
    fault 'a step towards nothing' 'sub(/\\tag\{BN.19a\}/, "\\tag{BN.91a}") { }' 'BN.91a: a step'
    fault 'a step without a DERIVE' '/^BN.19a:/ { next }' 'BN.19a: no DERIVE'
    fault 'a DERIVE of no step' 'sub(/^BN.19a:/, "BN.19z:") { }' 'BN.19z: cited'
    fault 'a page that cites an unknown tag' \
        '/^# Batch/ { print; $0 = "See BN.99." }' 'BN.99: cited at .* but not defined'
    verdict "tags, doctored"
}

cd "$(dirname "$0")/../.." || exit 1
lint=$PWD/tests/lint
command=agree
if [ "${1:-}" = --faults ]; then
    command=faults
    shift
fi
if [ $# -gt 0 ]; then cd "$1" || exit 1; fi
$command .
