#!/bin/sh
# One version, wherever it is written: the first line of the header, the three numbers, the string,
# the newest entry of the history, and, where they exist, the README and the pkg-config file.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
passed=0
failed=0

same() { # where, version
    if [ "$2" = "$version" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "version: $1 says '$2', the header's first line '$version'"
    fi
}

version=$(sed -n '1s/^.* - v\([0-9]*\.[0-9]*\.[0-9]*\) - .*/\1/p' normlayers.h)
case $version in
[0-9]*.[0-9]*.[0-9]*) passed=1 ;;
*) failed=1; echo "version: none in the first line of normlayers.h" ;;
esac
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
        grep -o -E "$number\$" | sort -u >"$work/mentioned"
    while read -r mentioned; do same "$file" "$mentioned"; done <"$work/mentioned"
done
for file in $(git ls-files '*.pc' '*.pc.in' 2>/dev/null); do
    written=$(sed -n 's/^Version: *//p' "$file")
    case $written in
    @*@) passed=$((passed + 1)) ;; # filled in from the header
    *) same "$file" "$written" ;;
    esac
done
echo "version: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
