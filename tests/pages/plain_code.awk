# plain_code.awk - the plain functions of the chapters, as one C file for plain_code.c.
#
#   awk -f tests/pages/plain_code.awk docs/[0-9]*.md >pages.h
#
# Takes every block that begins with ```c plain. Each line that ends in the tag of an equation is an
# assignment, `... = expression; /* BN.1 */`, also += and -=. It becomes
#
#   ... = FAULT(k) * (expression);
#
# where FAULT(k) is 1, or 1.001 if k is the fault that plain_code.c has chosen. So it can make every
# tagged line wrong, one after the other. `faults` lists them.

function quoted(text) { return "\"" text "\"" }
BEGIN { print "static int fault;\n#define FAULT(k) (fault == (k) ? 1.001 : 1.0)" }
/^```c plain$/ {
    open = 1
    blocks++
    printf "#line %d %s\n", FNR + 1, quoted(FILENAME)
    next
}
open && /^```$/ { open = 0; next }
!open { next }
match($0, /; *\/\* [A-Z]+\.[0-9]+[a-z]?.*\*\/$/) {
    statement = substr($0, 1, RSTART - 1)
    tag = substr($0, RSTART + 1)
    gsub(/^ *\/\* | \*\/$/, "", tag)
    rest = statement
    head = ""
    while (match(rest, /[^=!<>]= /)) {
        head = head substr(rest, 1, RSTART + RLENGTH - 1)
        rest = substr(rest, RSTART + RLENGTH)
    }
    if (head == "") {
        print FILENAME ":" FNR ": a tagged line that is no assignment" >"/dev/stderr"
        bad = 1
    }
    count++
    where[count] = FILENAME ":" FNR ": " tag
    print head "FAULT(" count ") * (" rest ");"
    next
}
{ print }
END {
    if (!blocks) {
        print "no block is marked c plain" >"/dev/stderr"
        bad = 1
    }
    print "#line 1 \"faults\"\nstatic const char *const faults[] = {"
    for (i = 1; i <= count; i++) print "    " quoted(where[i]) ","
    print "};"
    exit bad
}
