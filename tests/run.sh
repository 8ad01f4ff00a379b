#!/bin/sh
# run.sh - builds and runs the tests, two at a time or as many as there are processors.
#
#   run.sh            all test programs, system tests and lints
#   run.sh lint       the lints only
#   run.sh plain      the tests of the layers with NRM_PLAIN (some of them are in `run.sh` too)
#   run.sh one NAME   one of them
#
# Environment: CC, BUILD (folder for what is built), STB_CFLAGS, SANITIZE=1 (address and
# undefined-behaviour sanitizers over everything). The last line is "N passed, N failed"; the exit
# code is 0 only if nothing failed. Each part prints "part: N passed, N failed" as its last line.
set -u
cd "$(dirname "$0")/.." || exit 1
: "${CC:=cc}" "${BUILD:=build}" "${STB_CFLAGS=}" "${SANITIZE:=0}"
if [ -z "$STB_CFLAGS" ]; then
    STB_CFLAGS=$(pkg-config --cflags stb 2>/dev/null || echo -isystem /usr/include/stb)
fi
export CC BUILD STB_CFLAGS SANITIZE LC_ALL=C
out=$BUILD/tests
flags="-std=c99 -ffp-contract=off -pthread -Wall -Wextra -Wpedantic -I. -Iexamples -Itests"
if [ "$SANITIZE" = 1 ]; then
    flags="$flags -g -fsanitize=address,undefined -fno-sanitize-recover=all"
fi

# Which sources are built how: those that include the header run in both precisions (a few of the
# longest only in double), and under the sanitizers all in both and also with statistics in float
# (NRM_ACC=float, acc32). Tests of the examples' helpers run once, linked with the helpers.
variants() {
    for source in tests/test_*.c; do
        name=$(basename "$source" .c)
        case $name in
        test_complexstep | test_invariance | test_museum) echo "$name.f64" ;;
        *)
            if ! grep -q 'define NORMLAYERS_IMPLEMENTATION' "$source"; then
                echo "$name.helpers"
                continue
            fi
            echo "$name.f64"
            case $SANITIZE:$name in
            0:test_steps | 0:test_gradcheck | 0:test_recurrent) ;; # most of it is about doubles
            0:* | *:test_gemm | *:test_golden | *:test_npz | *:test_plain) echo "$name.f32" ;;
            *) printf '%s.f32\n%s.acc32\n' "$name" "$name" ;;
            esac
            ;;
        esac
    done
    plain_variants "$SANITIZE"
}

# With NRM_PLAIN: the tests that ask for bounds and not for bits. `make test` has the quick ones.
plain_variants() { # 1: all
    echo test_contracts.plain32
    for name in layers sync mlp golden; do echo "test_$name.plain"; done
    [ "$1" = 1 ] || return 0
    for name in layers sync mlp golden; do echo "test_$name.plain32"; done
    for name in contracts conventions workers recurrent gradcheck invariance complexstep museum \
        worked_examples; do
        echo "test_$name.plain"
    done
}

# The lints read the text of the project, the system tests use it as a user would.
lints() {
    for script in tests/lint/*.sh; do
        [ -f "$script" ] && echo "$script"
    done
}

systems() {
    for script in tests/system/*.sh; do
        [ -f "$script" ] && echo "$script"
    done
}

build_helpers() {
    # shellcheck disable=SC2086
    $CC $flags -O1 $STB_CFLAGS -c examples/helpers.c -o "$out/helpers.o" &&
        $CC $flags -O1 -w $STB_CFLAGS -c examples/stb_image_write.c -o "$out/stb_image_write.o"
}

# What a variant is compiled with.
defines() {
    case $1 in
    *.f64) echo -DNRM_DOUBLE ;;
    *.acc32) echo -DNRM_ACC=float ;;
    *.plain) echo -DNRM_PLAIN -DNRM_DOUBLE ;;
    *.plain32) echo -DNRM_PLAIN ;;
    esac
}

# The header's functions, compiled once for each variant: else they take most of a test's time.
build_implementation() {
    printf '#define NORMLAYERS_IMPLEMENTATION\n#include "normlayers.h"\n' >"$out/normlayers$1.c"
    # shellcheck disable=SC2046,SC2086
    $CC $flags -O2 $(defines "$1") -c "$out/normlayers$1.c" -o "$out/normlayers$1.o"
}

build() { # .helpers, .f32, .f64, .acc32, .plain, .plain32
    if [ "$1" = .helpers ]; then build_helpers; else build_implementation "$1"; fi
}

up_to_date() {
    case $1 in
    .helpers) [ -f "$out/helpers.o" ] ;;
    *) [ -n "$(find "$out/normlayers$1.o" -newer normlayers.h 2>/dev/null)" ] ;;
    esac
}

# Long programs that run for a moment: -O0 saves more time than it costs.
level() {
    case $SANITIZE:${1#test_} in
    0:derivations | 0:steps | 0:npz | 0:gemm | 0:contracts | 0:numerics | 0:layers | 0:sync)
        echo -O0
        ;;
    *) echo -O1 ;;
    esac
}

# Does a test look inside, at private functions, or want a build with a BLAS of its own?
looks_inside() {
    grep -qE 'nrmi_|NRM_GEMM' "tests/$1.c"
}

run_one() {
    name=${1%.*}
    compiled="$(defines "$1")" linked=
    case $1 in
    *.sh)
        sh "$1"
        return
        ;;
    *.helpers)
        compiled=$STB_CFLAGS
        linked="$out/helpers.o $out/stb_image_write.o"
        ;;
    *)
        if ! looks_inside "$name"; then # the header's once-guard: it is there already
            compiled="$compiled -DNRM_IMPLEMENTED"
            linked=$out/normlayers.${1##*.}.o
        fi
        ;;
    esac
    if [ "$name" = test_plain ]; then # the header once more
        linked="$linked $out/plain_build.${1##*.}.o"
        # shellcheck disable=SC2086
        $CC $flags -O1 $(defines "$1") -c tests/plain_build.c -o "$out/plain_build.${1##*.}.o" ||
            return
    fi
    # shellcheck disable=SC2086
    $CC $flags "$(level "$name")" $compiled -c "tests/$name.c" -o "$out/$1.o" &&
        $CC $flags "$out/$1.o" $linked -o "$out/$1" -lm &&
        "$out/$1"
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

mkdir -p "$out" || exit 1
# What was compiled by another compiler, or otherwise, is of no use.
by="$CC $(command -v "$CC") $($CC --version 2>/dev/null | sed 1q) $flags"
if [ "$by" != "$(cat "$out/compiled_by" 2>/dev/null)" ]; then
    rm -f "$out"/*.o
    echo "$by" >"$out/compiled_by"
fi
if [ "${1:-}" = one ]; then
    case $2 in
    built.*)
        build "${2#built}"
        rm -f "$out/building${2#built}"
        exit 0
        ;;
    *.sh) ;;
    *)
        while [ -f "$out/building.${2##*.}" ]; do sleep 1; done
        up_to_date ".${2##*.}" || build ".${2##*.}" || exit 1
        ;;
    esac
    run_logged "$2"
    exit 0
fi

rm -f "$out"/*.log "$out/times"
if [ "${1:-}" = lint ]; then
    parts=$(lints) built=
elif [ "${1:-}" = plain ]; then
    parts=$(plain_variants 1) built="plain plain32"
else
    parts="$(systems)
$(lints)
$(variants)"
    built="plain32 plain helpers f32 f64"
    [ "$SANITIZE" = 0 ] || built="$built acc32"
fi
# What several tests link with is built first; meanwhile there are scripts to run.
for shared in $built; do
    rm -f "$out/normlayers.$shared.o" "$out/$shared.o"
    : >"$out/building.$shared"
    parts="built.$shared
$parts"
done
processors=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
echo "$parts" | xargs -n 1 -P "$processors" sh tests/run.sh one
passed=0
failed=0
for part in $parts; do
    case $part in built.*) continue ;; esac
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
