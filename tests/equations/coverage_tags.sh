#!/bin/sh
# coverage_tags.sh - the line of C that carries an equation's tag is the line that runs.
#
# Runs the tests of the layers on a header compiled for gcov, in double and in float, as it is and
# with NRM_PLAIN. Every line whose comment says that it computes an equation (see
# tests/lint/extract_tags.awk) must have run in whichever of the two it is compiled, and of a loop
# or a condition in one line all of it. A comment on a further line of a statement speaks of the
# statement, one on a macro of the lines that use it.
#
# Environment: BUILD, GCC and GCOV, which belong together. The last line is "tagged: N passed, M
# failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${BUILD:=build}" "${GCC:=gcc}" "${GCOV:=gcov}"
export BUILD GCC GCOV LC_ALL=C
out=$BUILD/tagged
flags="-std=c99 -O0 -ffp-contract=off -pthread -w -I. -Iexamples -Itests"
suite="layers rows derivations contracts mlp sync conventions numerics golden workers"

. tests/suite.sh

# One program on one variant. Whether its tests are content is not the question here.
run_one() { # VARIANT PROGRAM
    folder=$out/$1
    if [ "$(row "$2" 2)" = whole ]; then
        case $1 in *.plain*) return 0 ;; esac # (it looks at what only the fast version has)
        own="--coverage" linked=
    else
        own="-DNRM_IMPLEMENTED" linked="$folder/normlayers.o"
    fi
    # shellcheck disable=SC2046,SC2086
    if ! $GCC $flags $(defines "$1") $own -c "tests/$(row "$2" 1).c" -o "$folder/$2.o" ||
        ! $GCC --coverage -pthread "$folder/$2.o" $linked -o "$folder/$2" -lm; then
        return 1
    fi 2>"$folder/$2.log"
    "$folder/$2" >"$folder/$2.log" 2>&1
    code=$?
    rm -f "$folder/$2"
    [ $code -lt 126 ]
}

if [ "${1:-}" = one ]; then
    run_one "${2%:*}" "${2#*:}" || echo "$2" >>"$out/broken"
    exit 0
fi

if ! command -v "$GCC" >/dev/null 2>&1 || ! command -v "$GCOV" >/dev/null 2>&1; then
    echo "tagged: $GCC and $GCOV are not here (Debian: apt install gcc)"
    echo "tagged: 0 passed, 1 failed"
    exit 1
fi
rm -rf "$out"
variants="fast.f64 fast.f32 plain.plain plain.plain32"
for variant in $variants; do
    mkdir -p "$out/$variant" || exit 1
    # shellcheck disable=SC2046,SC2086
    if ! $GCC $flags $(defines "$variant") --coverage -DNORMLAYERS_IMPLEMENTATION -x c \
        -c normlayers.h -o "$out/$variant/normlayers.o" 2>"$out/log"; then
        grep -m 5 error "$out/log"
        echo "tagged: 0 passed, 1 failed"
        exit 1
    fi
done
for variant in $variants; do
    for program in $suite; do
        case $variant:$program in
        *64:* | *plain:* | *32:layers) echo "$variant:$program" ;; # one line is of floats alone
        esac
    done
done | xargs -n 1 -P "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)" sh "$0" one

# "MODE LINE COUNT": "-" where a line has no code, a star behind the count if not all of it has run
for variant in $variants; do
    for counts in "$out/$variant"/*.gcda; do
        [ -f "$counts" ] || continue
        $GCOV -t "$counts" 2>/dev/null | awk -v mode="${variant%.*}" '
            /^ *-: *0:Source:/ { mine = $0 ~ /normlayers\.h$/; next }
            mine && match($0, /^ *[^:]*: *[0-9]+:/) {
                split(substr($0, 1, RLENGTH), f, ":")
                gsub(/ /, "", f[1])
                gsub(/ /, "", f[2])
                if (f[1] != "-") print mode, f[2], f[1]
            }'
    done
done >"$out/counts"
broken=0
if [ -f "$out/broken" ]; then
    sort "$out/broken" | while read -r part; do
        echo "$part does not compile, or crashes:"
        grep -h -m 1 error "$out/${part%:*}/${part#*:}.log"
    done
    broken=$(wc -l <"$out/broken")
fi
awk -f tests/lint/extract_tags.awk normlayers.h >"$out/tags"
awk -v broken="$broken" '
FILENAME ~ /\/tags$/ {
    split($0, f, "\t")
    sub(/^.*:/, "", f[3])
    if (f[1] == "compute") { tag[++tags] = f[2]; at[tags] = f[3] + 0 }
    next
}
FILENAME ~ /\/counts$/ {
    key = $1 " " $2
    rank = $3 ~ /[#=]/ ? 0 : ($3 ~ /\*$/ ? 1 : 2) # has not run, has in part, has
    if (!(key in ran) || rank > ran[key]) ran[key] = rank
    next
}
{
    line[FNR] = $0
    text = $0
    gsub(/\/\*[^*]*\*\//, "", text)
    sub(/ +$/, "", text)
    bare[FNR] = text
    define[FNR] = continued ? continued : 0
    if (text ~ /^# *define /) {
        define[FNR] = FNR
        name[FNR] = text
        sub(/^# *define +/, "", name[FNR])
        sub(/[^A-Za-z0-9_].*$/, "", name[FNR])
    }
    continued = text ~ /\\$/ ? define[FNR] : 0
    # What is handed to NRM_EACH, NRM_NUMBERS or NRM_WIDTHS has, for gcov, the line of the call.
    if (!define[FNR] && text ~ /NRM_(EACH|WIDTHS|NUMBERS)\(/) { call = FNR; depth = 0 }
    if (call) {
        within[FNR] = call
        depth += gsub(/\(/, "(", text) - gsub(/\)/, ")", text)
        if (depth == 0) call = 0
    }
}
function ends(text) {
    return text ~ /[;{}:]$/ || text == "" || text ~ /^#/ || text ~ /^\*\/|^\/\*/
}
# How much of the statement of a line has run, -1 if there is no code in this mode: the line itself,
# else the lines before it, from near to far, else those behind.
function of_statement(mode, n,    k) {
    if (n in within) n = within[n]
    if ((mode " " n) in ran) return ran[mode " " n]
    for (k = n - 1; k > 0 && !ends(bare[k]); k--)
        if ((mode " " k) in ran) return ran[mode " " k]
    for (k = n; k < FNR && !ends(bare[k]); k++)
        if ((mode " " (k + 1)) in ran) return ran[mode " " (k + 1)]
    return -1
}
# The same of a macro: of the line that uses it and has run most.
function of_macro(mode, d, level,    k, word, best, r) {
    best = -1
    word = "(^|[^A-Za-z0-9_])" name[d] "([^A-Za-z0-9_]|$)"
    for (k = d + 1; k <= FNR && level < 4; k++) {
        if (define[k] == d || index(bare[k], name[d]) == 0 || bare[k] !~ word) continue
        r = define[k] ? of_macro(mode, define[k], level + 1) : of_statement(mode, k)
        if (r > best) best = r
    }
    return best
}
END {
    split("fast plain", modes, " ")
    for (i = 1; i <= tags; i++) {
        compiled = 0
        wrong = ""
        for (m = 1; m <= 2; m++) {
            n = at[i]
            r = define[n] ? of_macro(modes[m], define[n], 0) : of_statement(modes[m], n)
            if (r < 0) continue
            compiled = 1
            if (r == 1 && n in within) r = 2 # (all its statements are one line)
            if (r == 1 && !define[n] && bare[n] !~ /^ *(} else |else )?(for|while|if) /) r = 2
            if (r < 2) wrong = wrong (wrong == "" ? "" : ", ") modes[m] ": " \
                (r ? "runs only in part" : "does not run")
        }
        if (!compiled) wrong = "has no code"
        if (wrong == "") passed++
        else {
            failed++
            text = line[at[i]]
            sub(/^ +/, "", text)
            print tag[i] ", line " at[i] ", " wrong ": " text
        }
    }
    printf "tagged: %d passed, %d failed\n", passed, failed + broken
    exit failed + broken > 0 || passed == 0
}' "$out/tags" "$out/counts" normlayers.h
