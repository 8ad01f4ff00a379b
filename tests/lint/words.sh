#!/bin/sh
# Words that have no place in a repository: absolute paths of somebody's machine, talk about how the
# text came to be, and notes of things left undone. Checked in all tracked text files.
#
# The words are put together from halves, so that this file does not contain what it looks for.
set -u
cd "$(dirname "$0")/../.." || exit 1
passed=0
failed=0
files=$(git ls-files 2>/dev/null | grep -v '\.png$')
if [ -z "$files" ]; then
    echo "words: not a git checkout, nothing to look at"
    echo "words: 0 passed, 0 failed"
    exit 0
fi

forbid() { # extended regular expression
    # shellcheck disable=SC2086
    found=$(grep -n -I -E -- "$1" $files /dev/null 2>/dev/null)
    if [ -n "$found" ]; then
        failed=$((failed + 1))
        echo "words: forbidden: $1"
        echo "$found" | sed 's/^/    /' | cut -c1-160
    else
        passed=$((passed + 1))
    fi
}

slash=/
begin='(^|[^A-Za-z0-9_.])'
end='([^A-Za-z0-9_]|$)'
forbid "${begin}${slash}work(${slash}|$)"
forbid "${begin}${slash}farm(${slash}|$)"
forbid "${slash}tmp${slash}brief"
forbid '"resolved"'": " # where a lock file says that its packages came from
forbid "[Tt]his ses""sion"
forbid "[Ss]ub-?age""nt"
forbid "[Cc]losing no""te"
forbid "${begin}TO""DO${end}"
forbid "${begin}FIX""ME${end}"
forbid "${begin}XX""X${end}"
echo "words: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
