# extract_tags.awk - where equation tags are defined, computed, shown and cited.
#
#   awk -f tests/lint/extract_tags.awk normlayers.h docs/01_batch_norm.md ...     (LC_ALL=C)
#
# This is the only place that knows how tags are written. In the header a display equation is a line
# of a literate block (opened by a line that is exactly "/*", closed by one that is exactly "*/")
# that is indented four spaces and ends in its tag: [BN.19] if a line of code computes it, (BN.17)
# if it is a step or a property that no line computes. The line that computes it ends in a comment
# that begins with the tag, /* BN.19 */ or /* BN.1 and BN.2: the moments */; in such a comment a tag
# behind a bracket, (BN.17), is only cited. "BN.8 to BN.10" means all that lie between, too. In a
# chapter, docs/NN_*.md, an equation is a ```math fence with one \tag{BN.19}.
#
# Prints records, the fields separated by tabs:
#
#   define   TAG  FILE:LINE  computed or step  EQUATION      in the header
#   compute  TAG  FILE:LINE                                  in the header
#   show     TAG  FILE:LINE  EQUATION                        in a chapter
#   fence    -    FILE:LINE  NUMBER                          a fence with so many tags, but not one
#   cite     TAG  FILE:LINE                                  anywhere else

function put(what, tag) {
    print what "\t" tag "\t" FILENAME ":" FNR
}
function trimmed(text) {
    gsub(/[ \t]+/, " ", text)
    sub(/^ /, "", text)
    sub(/ $/, "", text)
    return text
}
# A record for every tag in a piece of text.
function tags(text, what,    before, tag, last, n) {
    last = ""
    while (match(text, /[A-Z][A-Z]+\.[0-9]+[a-z]?/)) {
        before = RSTART > 1 ? substr(text, RSTART - 1, 1) : " "
        tag = substr(text, RSTART, RLENGTH)
        if (before !~ /[A-Za-z0-9_]/) {
            if (substr(text, 1, RSTART - 1) == " to " && family(last) == family(tag))
                for (n = number(last) + 1; n < number(tag); n++) put(what, family(tag) "." n)
            put(before == "(" ? "cite" : what, tag)
            last = tag
        } else last = ""
        text = substr(text, RSTART + RLENGTH)
    }
}
function family(tag) {
    sub(/\..*$/, "", tag)
    return tag
}
function number(tag) {
    sub(/^[A-Z]*\./, "", tag)
    return tag + 0
}
# A line of code. `inside` a comment that goes on, `what` becomes of its tags is known already.
function code(line,    at, before, comment) {
    before = ""
    while (line != "") {
        if (!inside) {
            at = index(line, "/*")
            if (!at) break
            before = before substr(line, 1, at - 1)
            line = substr(line, at + 2)
            inside = 1
            what = "cite"
            if (implementation && before ~ /[^ ]/ && line ~ /^ *[A-Z][A-Z]+\.[0-9]/)
                what = "compute"
        }
        at = index(line, "*/")
        comment = at ? substr(line, 1, at - 1) : line
        tags(comment, what)
        inside = !at
        line = at ? substr(line, at + 2) : ""
    }
}

FNR == 1 {
    page = FILENAME ~ /\.md$/
    chapter = FILENAME ~ /(^|\/)[0-9][0-9]_[^\/]*\.md$/
    prose = implementation = inside = fence = 0
}
!page && /^\/\*$/ { prose = 1; next }
!page && /^\*\/$/ { prose = 0; next }
!page && /^#define NRM_IMPLEMENTED/ { implementation = 1 }
!page && prose && /^    .*(\[[A-Z]+\.[0-9]+[a-z]?\]|\([A-Z]+\.[0-9]+[a-z]?\))$/ {
    at = match($0, /[[(][A-Z]+\.[0-9]+[a-z]?[])]$/)
    text = trimmed(substr($0, 1, at - 1))
    print "define\t" substr($0, at + 1, RLENGTH - 2) "\t" FILENAME ":" FNR "\t" \
        (substr($0, at, 1) == "[" ? "computed" : "step") "\t" text
    tags(text, "cite")
    next
}
!page && !prose { code($0); next }
chapter && /^```math$/ { fence = FNR; count = 0; text = ""; next }
fence && /^```$/ {
    if (count != 1) print "fence\t-\t" FILENAME ":" FNR "\t" count
    fence = 0
}
fence {
    text = text " " $0
    if (match($0, /\\tag\{[^}]*\}/)) {
        count++
        tag = substr($0, RSTART + 5, RLENGTH - 6)
        sub(/\\tag\{[^}]*\}.*$/, "", text)
        print "show\t" tag "\t" FILENAME ":" FNR "\t" trimmed(text)
        next
    }
}
{ tags($0, "cite") }
