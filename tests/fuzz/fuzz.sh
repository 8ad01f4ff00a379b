#!/bin/sh
# fuzz.sh - runs each fuzz target for a while, from its corpus (make fuzz).
#
#   SECONDS_EACH=20 fuzz.sh [TARGET...]    calls, mlp, npz, idx; without a name all of them
#   fuzz.sh --keep [TARGET...]             the same, and what is new goes into corpus/, made small
#
# corpus/TARGET.txt holds inputs that reach different code, in base 16.
# Clang's libFuzzer with the address and undefined-behaviour sanitizers; half of the time in float
# and half in double, where the target has numbers. An input that breaks something stays in
# $BUILD/fuzz and fails. The last line is "fuzz: N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${BUILD:=build}" "${SECONDS_EACH:=20}"
keep=0
[ "${1:-}" != --keep ] || { keep=1 && shift; }
here=tests/fuzz out=$BUILD/fuzz
mkdir -p "$out" || exit 1
for clang in clang-19 clang none; do
    command -v "$clang" >/dev/null 2>&1 || continue
    echo 'int LLVMFuzzerTestOneInput(const void *p, long n) { return p && n < 0; }' >"$out/probe.c"
    ! "$clang" -fsanitize=fuzzer,address "$out/probe.c" -o "$out/probe" 2>/dev/null || break
done
if [ "$clang" = none ]; then
    echo "fuzz: missing: clang with libFuzzer ('make deps-dev' installs clang and libclang-rt)"
    echo "fuzz: 0 passed, 1 failed"
    exit 1
fi
flags="-std=c99 -g -O1 -ffp-contract=off -Wall -Wextra -Wno-pass-failed -I. -Iexamples
-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined"
TMPDIR=${TMPDIR:-/tmp}
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
export TMPDIR
passed=0 failed=0

run() { # target, variant, seconds, define...: status 0 if nothing is found
    name=$1.$2 seconds=$3 target=$1
    shift 3
    work=$out/$name
    rm -rf "$work" && mkdir -p "$work/found" "$work/broken"
    # shellcheck disable=SC2086
    if ! "$clang" $flags "$@" "$here/fuzz_$target.c" -o "$work/program" -lm 2>"$work/log"; then
        cat "$work/log"
        echo "$name: does not compile"
        return 1
    fi
    most=400
    [ "$target" != npz ] || most=1200
    "$work/program" -max_total_time="$seconds" -max_len=$most -rss_limit_mb=3000 -timeout=20 \
        -artifact_prefix="$work/broken/" -print_final_stats=1 "$work/found" \
        "$out/corpus.$target" >"$work/log" 2>&1
    code=$?
    runs=$(awk '/number_of_executed_units/ { print $2 }' "$work/log")
    findings=$(find "$work/broken" -type f | wc -l)
    echo "$name: ${runs:-0} executions in $seconds s, $((findings)) findings"
    [ $code -eq 0 ] && [ "$findings" -eq 0 ] && [ "${runs:-0}" -gt 100 ] && return 0
    grep -aE 'broken after|runtime error|ERROR|SUMMARY' "$work/log" | sed 's/^/    /'
    return 1
}

# The same in the background, and what it said and whether it passed as files.
start() { (run "$@" >"$out/$1.$2.said" 2>&1 && : >"$out/$1.$2.passed") & }

unpack() { # target: its corpus as files
    rm -rf "$out/corpus.$1" && mkdir -p "$out/corpus.$1"
    python3 -c 'import sys
for number, word in enumerate(open(sys.argv[1]).read().split()):
    open("%s/%d" % (sys.argv[2], number), "wb").write(bytes.fromhex(word))' \
        "$here/corpus/$1.txt" "$out/corpus.$1"
}

pack() { # target: what reaches more than the others, into its corpus
    rm -rf "$out/small" && mkdir -p "$out/small"
    # shellcheck disable=SC2086
    "$(echo "$out/$1".*/program | cut -d' ' -f1)" -set_cover_merge=1 "$out/small" \
        "$out/corpus.$1" "$out/$1".*/found >/dev/null 2>&1
    python3 -c 'import os, sys, textwrap
of = sorted(open(os.path.join(sys.argv[1], n), "rb").read().hex() for n in os.listdir(sys.argv[1]))
print(textwrap.fill(" ".join(sorted(of, key=len)), 100, break_long_words=False))' \
        "$out/small" >"$here/corpus/$1.txt"
}

rm -f "$out"/*.said "$out"/*.passed
for target in ${*:-calls mlp npz idx}; do
    unpack "$target" || exit 1
    case $target in
    calls | mlp)
        start "$target" f32 $(((SECONDS_EACH + 1) / 2))
        start "$target" f64 $(((SECONDS_EACH + 1) / 2)) -DNRM_DOUBLE
        wait
        ;;
    *) start "$target" bytes "$SECONDS_EACH" ;;
    esac
done
wait
[ "$keep" = 0 ] || for target in ${*:-calls mlp npz idx}; do pack "$target"; done
for said in "$out"/*.said; do
    cat "$said"
    if [ -f "${said%.said}.passed" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "fuzz: $passed passed, $failed failed"
[ $failed -eq 0 ]
