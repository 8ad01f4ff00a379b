#!/bin/sh
# One version, wherever it is written: the first line of the header, the three numbers, the string,
# the newest entry of the history, and, where they exist, the README and the pkg-config file.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh

same() { # where, version
    check "$1 says '$2', the header's first line '$version'" test "$2" = "$version"
}

version=$(sed -n '1s/^.* - v\([0-9]*\.[0-9]*\.[0-9]*\) - .*/\1/p' normlayers.h)
check "a version in the first line of normlayers.h" test -n "$version"
number() {
    sed -n "s/^#define NRM_VERSION_$1 \([0-9]*\)\$/\1/p" normlayers.h
}
same "NRM_VERSION_MAJOR, _MINOR, _PATCH" "$(number MAJOR).$(number MINOR).$(number PATCH)"
same NRM_VERSION "$(sed -n 's/^#define NRM_VERSION "\(.*\)"$/\1/p' normlayers.h)"
same "the newest entry of the history" \
    "$(sed -n '/^### History$/,/^### /s/^- \([0-9.]*\)[:,] .*/\1/p' normlayers.h | sed -n 1p)"

for file in README.md docs/README.md docs/packaging.md examples/README.md; do
    [ -f "$file" ] || continue
    # a version in the prose is one that stands beside the library's name or in a badge or tag
    number='[0-9]+\.[0-9]+\.[0-9]+'
    grep -o -E "(normlayers(\.h)?[ -]v?|[Vv]ersion:? *v?|NRM_VERSION \"?)$number" "$file" |
        grep -o -E "$number\$" | sort -u >"$dir/mentioned"
    while read -r mentioned; do same "$file" "$mentioned"; done <"$dir/mentioned"
done
for file in $(git ls-files '*.pc' '*.pc.in' 2>/dev/null); do
    written=$(sed -n 's/^Version: *//p' "$file")
    case $written in
    @*@) pass ;; # filled in from the header
    *) same "$file" "$written" ;;
    esac
done
verdict version
