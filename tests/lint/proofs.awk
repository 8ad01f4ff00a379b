# proofs.awk - what the theorems of tests/proofs/*.v are called, and what their comments say.
#
#   awk -f tests/lint/proofs.awk tests/proofs/*.v
#
# Prints "theorem TAB NAME TAB TAG TAB FILE:LINE TAB COMMENT"; TAG is that of the name, BN.19 for
# BN_19 and BN_19_kernel. COMMENT is the last comment above it, its white space reduced.
FNR == 1 { inside = 0; text = "" }
/^\(\*/ { inside = 1; text = "" }
inside {
    text = text " " $0
    if ($0 ~ /\*\)$/) inside = 0
    next
}
/^Theorem / {
    name = $2
    sub(/:$/, "", name)
    tag = name
    if (match(tag, /^[A-Z]+_[0-9]+[a-z]?/)) tag = substr(tag, 1, RLENGTH)
    sub(/_/, ".", tag)
    said = text
    gsub(/[ \t]+/, " ", said)
    print "theorem\t" name "\t" tag "\t" FILENAME ":" FNR "\t" said
}
