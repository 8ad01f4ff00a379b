#!/bin/sh
# The same bits from every build. tests/determinism.c prints a hash for each piece of the library;
# here it is built by each compiler at each level of optimisation, in float and in double, and the
# hashes are compared with those of the plainest build of all (the first compiler, -O0).
#
#   exact lines   must agree in all builds, whatever the compiler may fuse
#   train lines   must agree in all builds with -ffp-contract=off
#
# Besides, the header is built without its vectors (NRM_NO_VECTORS), private to its file
# (NRM_STATIC, so that its functions may be inlined into the caller's), and as C++.
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

build() { # folder, compiler, flags: the program's output in folder/out
    # shellcheck disable=SC2086
    "$2" $3 -I. tests/determinism.c -o "$1/program" -lm >"$1/log" 2>&1 &&
        "$1/program" >"$1/out" 2>>"$1/log"
}

# One build of one compiler, and its lines of the given classes against the reference. Verdicts
# are lines of folder/verdicts, for two compilers work at the same time.
check() { # folder, classes, compiler, precision, flags
    what="$3 $4 $5"
    if ! build "$1" "$3" "$4 $5"; then
        echo "failed does not build or run: $what" >>"$1/verdicts"
        sed 's/^/    /' "$1/log" >>"$1/verdicts"
        return
    fi
    for class in $2; do
        grep "^$class " "$work/reference$4" >"$1/expected"
        grep "^$class " "$1/out" >"$1/got"
        if [ -s "$1/expected" ] && cmp -s "$1/expected" "$1/got"; then
            echo "passed" >>"$1/verdicts"
        else
            echo "failed $class lines differ: $what" >>"$1/verdicts"
            diff "$1/expected" "$1/got" | sed 's/^/    /' >>"$1/verdicts"
        fi
    done
}

all_builds() { # compiler
    mkdir "$work/$1"
    native=
    echo 'int main(void) { return 0; }' >"$work/$1/try.c"
    "$1" -march=native "$work/$1/try.c" -o "$work/$1/try" 2>/dev/null && native=-march=native
    for precision in "" -DNRM_DOUBLE; do
        for level in -O0 -O2 -O3 "-O3 $native"; do
            check "$work/$1" exact "$1" "$precision" "-std=gnu99 $level"
        done
        for level in -O2 "-O3 $native" "-O2 -DNRM_NO_VECTORS"; do
            check "$work/$1" "exact train" "$1" "$precision" "-std=c99 $level -ffp-contract=off"
        done
        check "$work/$1" exact "$1" "$precision" "-std=gnu99 -O3 $native -DNRM_STATIC"
        check "$work/$1" exact "$1" "$precision" "-x c++ -std=gnu++17 -O2 $native"
    done
}

compilers=
for compiler in gcc clang; do
    if command -v "$compiler" >/dev/null 2>&1; then
        compilers="$compilers $compiler"
    else
        echo "determinism: no $compiler here"
    fi
done
[ -n "$compilers" ] || { echo "determinism: no compiler"; exit 1; }

for precision in "" -DNRM_DOUBLE; do
    if ! build "$work" "${compilers##* }" "$precision -std=c99 -O0 -ffp-contract=off"; then
        cat "$work/log"
        echo "determinism: 0 passed, 1 failed"
        exit 1
    fi
    mv "$work/out" "$work/reference$precision"
done
for compiler in $compilers; do all_builds "$compiler" & done
wait
cat "$work"/*/verdicts >"$work/verdicts"
grep -v '^passed' "$work/verdicts" | sed 's/^failed/determinism:/'
passed=$(grep -c '^passed' "$work/verdicts")
failed=$(grep -c '^failed' "$work/verdicts")
echo "determinism: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
