# entries.awk - the mutants of a list (list.txt, ../proofs/mutants.txt), a line for each field.
#
#   awk -f entries.awk list.txt      mutant, about, story, in, by, file, history, equivalent, - , +
#
# A blank line follows each; comments are passed on. The head of list.txt says what it looks like.
function flush() { if (open) print ""; open = 0 }
function field(text) {
    if (text ~ /^was /) sub(/^was/, "history", text)
    if (text !~ /^(in|by|file|history|equivalent) /) { print FILENAME ":" FNR ": " text; exit 1 }
    print text
}
function edited(line, keep, drop, keep_end, drop_end,    at, end) { # with one of the two versions
    at = index(line, drop)
    end = index(line, drop_end)
    if (at && end) line = substr(line, 1, at - 1) substr(line, end + 2)
    at = index(line, keep)
    end = index(line, keep_end)
    if (at && end) line = substr(line, 1, at - 1) substr(line, at + 2, end - at - 2) \
        substr(line, end + 2)
    return line
}
/^#/ { flush(); print; next }
/^$/ { next }
/^- / || /^\+ / { print; next }
/^= / {
    print "- " edited(substr($0, 3), "[-", "{+", "-]", "+}")
    print "+ " edited(substr($0, 3), "{+", "[-", "+}", "-]")
    next
}
/^\| / { n = split(substr($0, 3), part, / \| /); first = 1 }
!/^\| / {
    flush()
    open = 1
    known = 0
    n = split($0, part, / \| /)
    first = 2
    print "mutant " part[1]
}
{
    for (i = first; i <= n; i++)
        if (++known == 1) print "about " part[i]
        else if (known == 2) print "story " part[i]
        else field(part[i])
}
END { flush() }
