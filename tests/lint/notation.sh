#!/bin/sh
# No chapter uses a symbol that the notation page does not introduce: every letter in the
# mathematics of docs/NN_*.md stands in a first column of docs/00_notation.md, in the table of the
# letters with one meaning, or in the table of those that depend on the chapter, in a row that
# names the chapter. And no row names a chapter that does not use the letter. (The museum and the
# exercises, chapters 11 and 12, speak of all others and may use their symbols.)
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
LC_ALL=C
export LC_ALL

# examine NOTATION: what is wrong, then "formulas", how many are right and how many wrong
examine() {
    awk -v notation="$1" '
# The symbols of a piece of TeX into found[]: letters, Greek ones, names in \mathrm, their hats.
function symbols(tex,    symbol, name) {
    split("", found)
    gsub(/\\tag\{[^}]*\}/, " ", tex)
    gsub(/\\(text|texttt|operatorname\*?|begin|end)\{[^}]*\}/, " ", tex)
    gsub(/\\(left|right|leftright)arrow/, " ", tex)
    gsub(/\\(left|right|[bB]ig+[lr]?)/, " ", tex)
    while (tex != "") {
        if (match(tex, hatted)) {
            symbol = substr(tex, 1, RLENGTH)
            tex = substr(tex, RLENGTH + 1)
            gsub(/[{} ]/, "", symbol)
            sub(/^\\widehat/, "\\hat", symbol)
            found[symbol] = 1
        } else if (match(tex, named)) {
            symbol = substr(tex, 1, RLENGTH)
            tex = substr(tex, RLENGTH + 1)
            gsub(/\\_/, "_", symbol)
            gsub(/ /, "", symbol)
            found[symbol] = 1
        } else if (match(tex, /^\\[A-Za-z]+/)) {
            name = substr(tex, 2, RLENGTH - 1)
            tex = substr(tex, RLENGTH + 1)
            if (name in greek) found["\\" name] = 1
        } else if (tex ~ /^\\./) {
            tex = substr(tex, 3)
        } else if (match(tex, gradient)) {
            tex = substr(tex, 2) # dx is the gradient by x
        } else {
            if (tex ~ /^[A-Za-z]/) found[substr(tex, 1, 1)] = 1
            tex = substr(tex, 2)
        }
    }
}
# The symbols of a first column; chapters is "0" for all of them, or "1, 3, 7".
function introduce(cell, chapters,    s, tex, i, n, part) {
    n = split(chapters, part, ", ")
    while (match(cell, /\$`[^`]*`\$/)) {
        tex = substr(cell, RSTART + 2, RLENGTH - 4)
        cell = substr(cell, RSTART + RLENGTH)
        symbols(tex)
        for (s in found) {
            for (i = 1; i <= n; i++) {
                if (part[i] && (part[i], s) in introduced) {
                    print notation ":" FNR ": " s " is introduced twice"
                    failed++
                }
                introduced[part[i], s] = notation ":" FNR
                if (part[i]) unused[part[i], s] = notation ":" FNR
            }
            anywhere[s] = 1
        }
    }
}
function use(tex, where,    s) {
    symbols(tex)
    for (s in found) {
        delete unused[chapter, s]
        if ((0, s) in introduced || (chapter, s) in introduced || (chapter, s) in reported) continue
        if (chapter >= 11 && s in anywhere) continue
        reported[chapter, s] = 1
        print where ": " s " is not in " notation
        failed++
    }
    count++
}
BEGIN {
    letter = "(\\\\[a-z]+|[A-Za-z])"
    hatted = "^\\\\(hat|bar|tilde|widehat|vec)( *[{]" letter "[}]| +[A-Za-z]| *\\\\[a-z]+)"
    named = "^\\\\(mathrm|mathit|mathcal|mathbb|mathbf|boldsymbol) *([{][^}]*[}]|[A-Za-z])"
    gradient = "^d *([A-Za-z]|\\\\(hat|tilde|bar|alpha|beta|gamma|mu|sigma|theta|rho|tau|ell)" \
        "([^a-z]|$))"
    n = split("alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa" \
        " lambda mu nu xi pi rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta" \
        " Lambda Xi Pi Sigma Phi Psi Omega ell nabla", names, " ")
    for (i = 1; i <= n; i++) greek[names[i]] = 1
}
FNR == 1 { fence = 0; chapter = FILENAME; sub(/^docs\//, "", chapter); chapter += 0 }
FILENAME == notation && /^\| \$`/ {
    split($0, cell, / \| /)
    introduce(cell[1], cell[2] ~ /^[0-9]+(, [0-9]+)*$/ ? cell[2] : "0")
    next
}
FILENAME == notation { next }
/^```math$/ { fence = 1; text = ""; start = FNR; next }
/^```/ {
    if (fence == 1) use(text, FILENAME ":" start)
    fence = fence ? 0 : 2
    next
}
fence == 1 { text = text " " $0; next }
fence { next }
{
    line = $0
    while (match(line, /\$`[^`]*`\$/)) {
        tex = substr(line, RSTART + 2, RLENGTH - 4)
        line = substr(line, RSTART + RLENGTH)
        use(tex, FILENAME ":" FNR)
    }
}
END {
    for (key in unused) {
        split(key, s, SUBSEP)
        print unused[key] ": chapter " s[1] " has no " s[2]
        failed++
    }
    print "formulas", count - failed, failed + 0
    exit failed > 0
}' "$1" docs/0[1-9]_*.md docs/1[0-9]_*.md
}

examine docs/00_notation.md >"$dir/found"
grep -v '^formulas' "$dir/found"
read -r _ passed failed <<END
$(grep '^formulas' "$dir/found")
END

# It must be able to fail.
faulty() { # sed-script: a notation page with a fault
    sed "$1" docs/00_notation.md >"$dir/notation.md"
    ! cmp -s docs/00_notation.md "$dir/notation.md" && ! examine "$dir/notation.md"
}
check "a letter that is missing is seen" faulty '/^| \$`W`/d'
check "a chapter that does not use the letter is seen" faulty 's/^\(| \$`d`\$ | 3\),/\1, 4,/'
check "a letter with two rows is seen" faulty '/^| \$`Q`/p'
verdict notation
