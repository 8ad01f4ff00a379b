# equations.awk - the table of equations.sh, checked and printed, or as a page.
#
# Variables: command (check, page), failed (programs that have failed already), rounding (deviations
# up to this one are not compared with those of the page). Lines of the table: tag, place, equation,
# witnesses "kind worst bound;...", separated by tabs.

# What a page may promise: the next power of ten above twice the deviation, so that another compiler
# or another mathematical library keeps the promise too.
function met(worst, most,    power) {
    if (worst + 0 == 0) return "0"
    for (power = -20; ten_to(power) < 2 * worst; power++) {}
    return ten_to(power) < most + 0 ? "1e" power : short(most)
}
function ten_to(power) { # a busybox may have been built without the operator ^
    return ("1e" power) + 0
}
function short(number) { # 1.0e-09 -> 1e-9
    if (number + 0 == 0) return "0"
    sub(/\.0e/, "e", number)
    sub(/e\+00$/, "", number)
    sub(/\.0$/, "", number)
    sub(/e-0/, "e-", number)
    return number
}
function witness(text,    f) { # as the page has it
    split(text, f, " ")
    if (f[1] == "R") return "R"
    if (f[1] == "S") return "S ≤ " short(f[3])
    return f[1] " ≤ " short(f[3]) ", met " met(f[2], f[3])
}
function witnesses(list,    count, item, i, row) {
    count = split(list, item, ";")
    for (i = 1; i <= count; i++) row = row (i > 1 ? "; " : "") witness(item[i])
    return row
}
# The witnesses of a row and what is asked of them, without what they met.
function demands(text) {
    gsub(/, met [^;]*/, "", text)
    return text
}
function escaped(text) {
    gsub(/\|/, "\\|", text)
    return text
}
function equation(place, text) {
    if (place ~ /\.h$/) return "`" escaped(text) "`"
    # a bar would end the cell of the table
    gsub(/\\\|/, "\\Vert ", text)
    gsub(/\|/, "\\vert ", text)
    return "$`" text "`$"
}
function fail(what) {
    print what
    bad++
}

BEGIN {
    if (command == "page") {
        print "# All equations"
        print ""
        print "All numbered equations of the header and of the chapters, with their checks."
        print "`make equations-docs` writes this page. `make equations` repeats all checks, prints"
        print "the largest deviation of each, and fails if it exceeds both the one printed here and"
        print "1e-15, the rounding error of a few doubles."
        print ""
        print "The checks: **R**, the same operations, written again, give the same bits; **I**,"
        print "an independent evaluation of the other side; **F**, an integral by Simpson's rule;"
        print "**C**, the forward pass at a complex point, or in dual numbers; **O**, what a series"
        print "omits, relative to its first omitted term; **S**, moments of random draws, in units"
        print "of their standard error."
        print ""
        print "After each letter come the bound that the tests demand in double and the one that"
        print "was met. In float the tests demand 1e-6 for results of the code (I), and the same"
        print "bounds as in double for algebra. The tests are `*.claims`, `derive_*.h`,"
        print "`steps_numerics.h` and `test_complexstep.c`, all in `tests/equations`."
        print ""
        print "| tag | equation | where | checks |"
        print "|---|---|---|---|"
    }
}

# The page, when it is being checked.
FILENAME ~ /\.md$/ {
    line = $0
    cells = split(line, cell, / \| /)
    if (line ~ /^\| [A-Z]+\.[0-9]+[a-z]? \| /) {
        tag = cell[1]
        sub(/^\| /, "", tag)
        promised[tag] = line
        asked[tag] = cell[cells]
        sub(/ \|$/, "", asked[tag])
    }
    next
}
command == "page" {
    place = $2
    sub(/^docs\//, "", place)
    if ($4 == "") {
        print $1 ": no check has looked at it" >"/dev/stderr"
        bad++
    }
    printf "| %s | %s | %s | %s |\n", $1, equation($2, $3), \
        ($2 ~ /\.h$/ ? "header" : "[chapter " (place + 0) "](" place ")"), witnesses($4)
    next
}
{
    count++
    wrong = bad
    if ($4 == "") fail($1 ": no check has looked at it")
    line = promised[$1]
    if (line == "" || index(line, " | " equation($2, $3) " | ") == 0)
        fail($1 ": docs/equations.md has another equation, or none: make equations-docs")
    else if (demands(asked[$1]) != demands(witnesses($4)))
        fail($1 ": docs/equations.md asks for " demands(asked[$1]) ", the tests for " \
            demands(witnesses($4)) ": make equations-docs")
    n = split($4, item, ";")
    row = ""
    for (i = 1; i <= n; i++) {
        split(item[i], f, " ")
        row = row (i > 1 ? ", " : "") f[1] " " short(f[2]) " of " short(f[3])
        if (!(f[2] + 0 <= f[3] + 0)) fail($1 ": " f[1] " leaves " f[2] ", more than " f[3])
        if (f[1] == "S" || f[1] == "R" || line == "") continue
        at = match(line, f[1] " ≤ [^,]*, met [0-9e-]+")
        if (!at) continue
        value = substr(line, RSTART, RLENGTH)
        sub(/^.* met /, "", value)
        if (!(f[2] + 0 <= value + 0 || f[2] + 0 <= rounding + 0) || value + 0 > f[3] + 0)
            fail($1 ": " f[1] " leaves " f[2] ", docs/equations.md says " value)
    }
    printf "%-7s %-62s %s\n", $1, row, $3
    if (bad == wrong) passed++
    seen[$1] = 1
}
END {
    if (command == "page") exit bad > 0
    for (tag in promised)
        if (!(tag in seen)) fail(tag ": in docs/equations.md only")
    failures = count - passed + failed
    if (failures == 0 && bad) failures = bad
    printf "equations: %d passed, %d failed\n", passed, failures
    exit failures > 0 || passed == 0
}
