#!/bin/sh
# run.sh - builds and runs the tests of suite.txt, as many at a time as there are processors.
#
#   run.sh            all programs, system tests and lints
#   run.sh lint       the lints only
#   run.sh sanitize [PATTERN]   the programs under sanitizers, or those whose name has the pattern
#   run.sh plain      the tests of the layers with NRM_PLAIN (some of them are in `run.sh` too)
#   run.sh one NAME   one of them: test_mlp.f64, or test_mlp in all variants, or lint/tags.sh
#
# Environment: CC, BUILD (folder for what is built), STB_CFLAGS, SANITIZE=1 for `one`, SANITIZERS
# (default: address,undefined), RUNNER (what runs the programs, such as valgrind). The last line is
# "N passed, N failed"; the exit code is 0 only if nothing failed. Each part prints "part: N passed,
# N failed" as its last line.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/suite.sh
: "${CC:=cc}" "${BUILD:=build}" "${STB_CFLAGS=}" "${SANITIZE:=0}" "${RUNNER=}"
: "${SANITIZERS=address,undefined}"
if [ -z "$STB_CFLAGS" ]; then
    STB_CFLAGS=$(pkg-config --cflags stb 2>/dev/null || echo -isystem /usr/include/stb)
fi
[ "${1:-}" != sanitize ] || SANITIZE=1
export CC BUILD STB_CFLAGS SANITIZE SANITIZERS RUNNER LC_ALL=C
out=$BUILD/tests
flags="-std=c99 -ffp-contract=off -pthread -Wall -Wextra -Wpedantic -I. -Iexamples -Itests"
if [ "$SANITIZE" = 1 ]; then
    flags="$flags -g${SANITIZERS:+ -fsanitize=$SANITIZERS -fno-sanitize-recover=all}"
fi

# What several programs link with, compiled once for each variant: else it takes most of the time.
build() { # f32, f64, ...: the header's functions; helpers: those of the examples
    # shellcheck disable=SC2046,SC2086
    case $1 in
    once)
        rm -rf "$out/once" && mkdir -p "$out/once" || return
        for source in $(grep -L '"normlayers.h"' examples/lab/*.h | sed 's/h$/c/') \
            examples/plot/*.c; do
            quiet=
            [ "${source##*/}" != stb_image_write.c ] || quiet=-w
            $CC $flags -O1 $quiet $STB_CFLAGS -c "$source" \
                -o "$out/once/$(basename "$source" .c).o" || return
        done
        : >"$out/once.o"
        ;;
    *)
        $CC $flags -O2 $(defines ".$1") -DNORMLAYERS_IMPLEMENTATION -x c -c normlayers.h \
            -o "$out/$1.o"
        ;;
    esac
}

up_to_date() { # f32, ..., once
    [ -n "$(find "$out/$1.o" -newer normlayers.h 2>/dev/null)" ]
}

run_one() { # layers/test_mlp.f64, lint/tags.sh
    variant=${1##*.} program=${1%.*}
    if [ "$variant" = sh ]; then
        sh "tests/$1"
        return
    fi
    object=$out/$(basename "$1") linked=$out/$variant.o level=-O1
    compiled="$(defines "$1") -DNRM_IMPLEMENTED"
    case $(row "$program" 2) in
    helpers) compiled=$STB_CFLAGS linked="$out/once/*.o" ;;
    whole) compiled="$(defines "$1") $STB_CFLAGS" linked= ;;
    esac
    level=$(row "$program" 3)
    if [ "$program" = layers/test_plain ]; then # the header once more
        linked="$linked $out/plain_build.$variant.o"
        # shellcheck disable=SC2086
        $CC $flags -O1 $(defines "$1") -c tests/layers/plain_build.c \
            -o "$out/plain_build.$variant.o" || return
    fi
    # shellcheck disable=SC2086
    $CC $flags $level $compiled -c "tests/$program.c" -o "$object.o" &&
        $CC $flags "$object.o" $linked -o "$object" -lm && $RUNNER "$object"
}

log_of() {
    echo "$out/$(echo "$1" | tr / _).log"
}

# Runs one part into a log, and shows the log if the part failed or has no verdict.
run_logged() {
    log=$(log_of "$1")
    started=$(date +%s)
    (run_one "$1") >"$log" 2>&1
    code=$?
    line=$(tail -n 1 "$log")
    case $line in
    *": "*" passed, "*" failed"*) ;;
    *) echo "$1: 0 passed, 1 failed" >>"$log" ;;
    esac
    if [ $code -ne 0 ] && tail -n 1 "$log" | grep -q ' 0 failed'; then
        echo "$1: 0 passed, 1 failed" >>"$log" # it failed without saying so
    fi
    [ $code -eq 0 ] || cat "$log"
    [ $code -ne 0 ] || { grep '^[a-z_]*: missing: ' "$log"; tail -n 1 "$log"; }
    echo "$1 $(($(date +%s) - started)) s" >>"$out/times"
}

# One part, after what it links with.
part() {
    case $1 in
    built.*)
        build "${1#built.}"
        rm -f "$out/building.${1#built.}"
        return
        ;;
    *.sh) ;;
    *)
        while [ -f "$out/building.${1##*.}" ]; do sleep 1; done
        up_to_date "${1##*.}" || build "${1##*.}" || return
        ;;
    esac
    run_logged "$1"
}

mkdir -p "$out" || exit 1
# What was compiled by another compiler, or otherwise, is of no use.
by="$CC $(command -v "$CC") $($CC --version 2>/dev/null | sed 1q) $flags"
if [ "$by" != "$(cat "$out/compiled_by" 2>/dev/null)" ]; then
    rm -f "$out"/*.o
    echo "$by" >"$out/compiled_by"
fi
case ${1:-test} in
part) # from below
    part "$2"
    exit
    ;;
one)
    case ${2:-} in
    *.sh) parts=${2#tests/} ;;
    *.*) parts=$(row "${2%.*}" 1).${2##*.} ;;
    *) parts=$(variants 4 | grep "^$(row "${2:-}" 1)\.") ;;
    esac
    case $parts in '' | .*)
        echo "run.sh: there is no test '${2:-}'; tests/suite.txt lists them"
        exit 2
        ;;
    esac
    ;;
test) parts=$(variants 4) ;;
lint) parts=$(variants 4 | grep '^lint/') ;;
sanitize) parts=$(variants 5 | grep -E "${2:-.}") ;;
plain) parts=$(variants 6) ;;
*)
    echo "run.sh: there is no run $1"
    exit 2
    ;;
esac
rm -f "$out"/*.log "$out/times"
# What several tests link with is built first; meanwhile there are scripts to run.
built=
for shared in $(echo "$parts" | sed -n 's/.*\.//; /^sh$/!p' | sort -u); do
    up_to_date "$shared" && [ "$shared" != once ] && continue
    rm -f "$out/$shared.o"
    : >"$out/building.$shared"
    built="$built built.$shared"
done
processors=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# shellcheck disable=SC2086
printf '%s\n' $built $parts | xargs -n 1 -P "$processors" sh tests/run.sh part
passed=0
failed=0
for part in $parts; do
    line=$(tail -n 1 "$(log_of "$part")" 2>/dev/null)
    if [ -z "$line" ]; then # what it links with does not compile, or somebody ended it
        echo "$part: has not run"
        failed=$((failed + 1))
        continue
    fi
    p=${line##*: }
    passed=$((passed + ${p%% passed*}))
    f=${p##*passed, }
    failed=$((failed + ${f%% failed*}))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
