#!/bin/sh
# sanitize.sh - the programs of suite.txt where a fault that changes no result is noticed all the
# same: under the sanitizers of gcc and clang, and the plain build under valgrind. (The sanitizer of
# threads is in tests/bits/threads.sh.)
#
#   sanitize.sh            gcc: all; clang: layers, contracts and files; valgrind: contracts, files
#   sanitize.sh --sample   gcc: all; clang and valgrind: a few of them, in float
#
# Of clang's groups one thing is left out: unsigned sums, products and shifts that wrap are defined
# in C, and hashes, checksums and random numbers rely on them. Division of floats by zero is defined
# too, and contracts promise its results.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}" "${BUILD:=build}" "${CLANG:=clang-19}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
some='/test_(contracts|status|unchanged|sync|npz|golden)\.f32'
under_valgrind='/test_(contracts|unchanged|npz)\.'
all='/test_(contracts|status|unchanged|mlp|sync|layers|npz|golden)\.f(32|64)'
if [ "${1:-}" = --sample ]; then
    all=$some
    under_valgrind='/test_(contracts|unchanged)\.f32'
fi
passed=0
failed=0

# under NAME COMPILER SANITIZERS PROGRAMS
under() {
    if ! command -v "${2%% *}" >/dev/null; then
        echo "sanitize: missing: ${2%% *}, for $1"
        return
    fi
    CC=$2 SANITIZERS=$3 BUILD=$BUILD/$1 sh tests/run.sh sanitize "$4" >"$work/log" 2>&1
    tail -n 1 "$work/log" >"$work/last"
    read -r p _ f _ <"$work/last"
    echo "sanitize: $1: $p passed, $f failed"
    if [ "$f" != 0 ] || [ "$p" = 0 ]; then grep -v ' passed, 0 failed$' "$work/log"; fi
    passed=$((passed + p)) failed=$((failed + f))
}

# finds LETTER COMPILER SANITIZERS: is the fault of faults.c noticed, and is there none without it?
finds() {
    command -v "${2%% *}" >/dev/null || return
    # shellcheck disable=SC2086
    if $2 -g -O0 ${3:+-fsanitize=$3 -fno-sanitize-recover=all} tests/analyse/faults.c \
        -o "$work/faults" 2>"$work/log" && $RUNNER "$work/faults" x >"$work/log" 2>&1 &&
        ! $RUNNER "$work/faults" "$1" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        echo "sanitize: $2 with $3 does not find the planted fault $1"
        cat "$work/log"
        failed=$((failed + 1))
    fi
}

RUNNER=
with=address,undefined
under sanitize-gcc "$CC" $with .
for fault in a o; do finds $fault "$CC" $with; done
with="$with,integer,implicit-conversion,nullability,local-bounds \
-fno-sanitize=unsigned-integer-overflow,unsigned-shift-base"
under sanitize-clang "$CLANG -Wno-pass-failed" "$with" "$all"
for fault in a o c; do finds $fault "$CLANG" "$with"; done
under sanitize-memory "$CLANG -Wno-pass-failed" memory "$all"
finds m "$CLANG" memory
if command -v valgrind >/dev/null; then
    RUNNER="valgrind -q --error-exitcode=9 --leak-check=full"
    export RUNNER
    under valgrind "$CC" "" "$under_valgrind"
    for fault in a m; do finds $fault "$CC" ""; done
else
    echo "sanitize: missing: valgrind"
fi
echo "sanitize: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
