#!/bin/sh
# The header in ASCII (make ascii) is the same program: no byte beyond ASCII, the same lines, and
# preprocessed the same text to the last byte.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
LC_ALL=C
export LC_ALL
CC=${CC:-cc}
twin=$dir/ascii/normlayers.h

only_ascii() { ! grep -n "[^ -~]" "$twin"; }
same_lines() { [ "$(wc -l <normlayers.h)" -eq "$(wc -l <"$twin")" ]; }
# Every display equation keeps its tag, and says something.
same_tags() {
    for file in normlayers.h "$twin"; do
        sed -n 's/^    [^ ].*\(\[[A-Z]*\.[0-9]*\]\)$/\1/p' "$file" >"$dir/tags"
        [ -f "$dir/tags.first" ] || mv "$dir/tags" "$dir/tags.first"
    done
    [ -s "$dir/tags" ] && cmp "$dir/tags.first" "$dir/tags"
}
same_text() { # compiled with the flags $@
    for file in normlayers.h "$twin"; do
        printf '#include "%s"\n' "$(cd "$(dirname "$file")" && pwd)/normlayers.h" >"$dir/a.c"
        $CC -E -P "$@" "$dir/a.c" >"$dir/text" || return 1
        [ -f "$dir/first" ] || mv "$dir/text" "$dir/first"
    done
    cmp "$dir/first" "$dir/text" && [ -s "$dir/text" ] && rm "$dir/first"
}

check "make ascii" make ascii BUILD="$dir" CC="$CC"
check "no byte beyond ASCII" only_ascii
check "line for line" same_lines
check "all equations" same_tags
check "declarations" same_text -std=c99
check "implementation" same_text -std=c99 -DNORMLAYERS_IMPLEMENTATION
check "in double" same_text -std=c99 -DNORMLAYERS_IMPLEMENTATION -DNRM_DOUBLE
check "in C++" same_text -x c++ -std=c++11 -DNORMLAYERS_IMPLEMENTATION
verdict ascii
