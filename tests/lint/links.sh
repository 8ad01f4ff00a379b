#!/bin/sh
# Every link of every page leads somewhere: to a file or folder of the project, and to a heading of
# it where the link names one, as GitHub spells their anchors. Pictures too. Links to the web are
# left alone. Pages that no reading path reaches from README.md are faults as well,
# and so are test programs of which tests/README.md does not say what they protect.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
LC_ALL=C
export LC_ALL
pages=$(find README.md docs examples tests -name '*.md' ! -path '*/node_modules/*' | sort)

# page TAB line TAB target, of all links outside of code
# shellcheck disable=SC2086
awk '
FNR == 1 { fence = 0 }
/^ *```/ { fence = !fence; next }
fence { next }
{
    gsub(/`[^`]*`/, "")
    text = held $0
    held = ""
    while (match(text, /\]\([^()]*(\([^()]*\)[^()]*)*\)/)) {
        target = substr(text, RSTART + 2, RLENGTH - 3)
        sub(/ ".*"$/, "", target)
        print FILENAME "\t" FNR "\t" target
        text = substr(text, RSTART + RLENGTH)
    }
}' $pages >"$dir/links"

# The anchors of a page: its headings in small letters, without punctuation, blanks as hyphens.
dash=$(printf '\342\200\224')
anchors() {
    awk '/^```/ { fence = !fence } !fence && sub(/^##* /, "")' "$1" |
        sed 's/\[\([^]]*\)\]([^)]*)/\1/g' | tr 'A-Z ' 'a-z-' |
        sed "s/[][!\"#\$%&'()*+,.\/:;<=>?@\\\\^\`{|}~]//g; s/$dash//g"
}

leads_somewhere() { # page target
    file=${2%%#*}
    anchor=
    case $2 in *"#"*) anchor=${2#*#} ;; esac
    if [ -n "$file" ]; then path=$(dirname "$1")/$file; else path=$1; fi
    [ -e "$path" ] || { echo "there is no $path" && return 1; }
    [ -z "$anchor" ] || anchors "$path" | grep -q -x -F -- "$anchor" ||
        { echo "$path has no heading #$anchor" && return 1; }
}

while IFS="$(printf '\t')" read -r page line target; do
    case $target in *://* | mailto:*) continue ;; esac
    check "$page:$line: $target" leads_somewhere "$page" "$target"
done <"$dir/links"

# Which pages can be reached from README.md, link by link?
reached() {
    awk -F '\t' '
    function plain(path) {
        while (sub(/\/\.\//, "/", path)) {}
        while (sub(/[^\/]+\/\.\.\//, "", path)) {}
        sub(/^\.\//, "", path)
        return path
    }
    function folder(path) { return sub(/[^\/]*$/, "", path) ? path : "" }
    {
        target = $3
        sub(/#.*$/, "", target)
        if (target == "" || target ~ /:\/\//) next
        target = plain(folder($1) target)
        if (target ~ /\/$/) target = target "README.md"
        to[$1] = to[$1] " " target
    }
    END {
        list[n = 1] = "README.md"
        seen["README.md"] = 1
        for (i = 1; i <= n; i++) {
            print list[i]
            count = split(to[list[i]], next_one, " ")
            for (k = 1; k <= count; k++)
                if (!(next_one[k] in seen)) {
                    seen[next_one[k]] = 1
                    list[++n] = next_one[k]
                }
        }
    }' "$dir/links" >"$dir/reached"
}
reached
for page in $pages; do
    check "$page can be reached from README.md" grep -q -x -F "$page" "$dir/reached"
done
sed -n 's/^tests\/README.md.*\(test_[a-z_]*\.c\)$/\1/p' "$dir/links" >"$dir/programs"
for program in tests/*/test_*.c; do
    check "tests/README.md says what $program protects" \
        grep -q -x "$(basename "$program")" "$dir/programs"
done
verdict links
