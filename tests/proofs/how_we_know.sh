#!/bin/sh
# how_we_know.sh - the table of docs/how_we_know.md: which equation is proved, executed, measured,
# analysed.
#
#   how_we_know.sh          prints the table
#   how_we_know.sh check    fails if the page has another one
#   how_we_know.sh docs     writes it into the page
#
# From the tags of normlayers.h, the names of the theorems in tests/proofs/*.v, the reasons in
# tests/proofs/exceptions.txt, the witnesses in docs/equations.md, and the tags in
# tests/analysed.txt, one a line with what was found behind it, if there is such a file.
set -u
cd "$(dirname "$0")/../.." || exit 1
LC_ALL=C
export LC_ALL
page=docs/how_we_know.md

table() {
    {
        awk -f tests/lint/proofs.awk tests/proofs/*.v
        sed -n 's/^\([A-Z][A-Z]*\.[0-9][0-9]*\)  *\([a-z ]*\):.*$/except\t\1\t\2/p' \
            tests/proofs/exceptions.txt
        sed -n 's/^| \([A-Z]*\.[0-9]*\) | `\(.*\)` | header | \(.*\) |$/witness\t\1\t\3/p' \
            docs/equations.md
        if [ -f tests/analysed.txt ]; then
            sed -n 's/^\([A-Z][A-Z]*\.[0-9][0-9]*\) *\(.*\)$/analysed\t\1\t\2/p' tests/analysed.txt
        fi
        awk -f tests/lint/extract_tags.awk normlayers.h
    } | awk -F '\t' '
$1 == "theorem" {
    file = $4
    sub(/:.*/, "", file)
    if (!($3 in proved)) { proved[$3] = "[" $2 "](../" file ")"; theorems++ }
    else { more[$3]++; others++ }
}
$1 == "except" { reason[$2] = $3 }
$1 == "witness" {
    executed[$2] = kinds($3, "RIC")
    measured[$2] = kinds($3, "FOS")
}
$1 == "analysed" { analysed[$2] = $3 == "" ? "yes" : $3 }
$1 == "define" {
    text = $5
    gsub(/\|/, "\\|", text)
    rows = rows "| " $2 " | " ($2 in proved ? proved[$2] (more[$2] ? " + " more[$2] : "") \
        : reason[$2]) " | " executed[$2] " | " measured[$2] " | " analysed[$2] " | `" text "` |\n"
    n++
    run += executed[$2] != ""
    looked += measured[$2] != ""
}
function kinds(text, wanted,    i, list, part, found) {
    split(text, list, /; /)
    found = ""
    for (i = 1; i in list; i++) {
        part = substr(list[i], 1, 1)
        if (index(wanted, part)) found = found (found == "" ? "" : " ") part
    }
    return found
}
END {
    print "Of the " n " equations of the header " theorems " are proved (" theorems + others \
        " theorems), " run " executed"
    print "and " looked " measured.\n"
    print "| tag | proved | executed | measured | analysed | equation |"
    print "|---|---|---|---|---|---|"
    printf "%s", rows
}'
}
# What the page should be
page_with_table() {
    sed '/<!-- table: begin/q' "$page"
    echo
    table
    echo
    sed -n '/<!-- table: end/,$p' "$page"
}
case ${1:-} in
check) page_with_table | diff "$page" - ;;
docs) page_with_table >"$page.new" && mv "$page.new" "$page" ;;
*) table ;;
esac
