#!/bin/sh
# The same bits from any number of threads, and no data race. Called by tests/bits/determinism.sh.
#
#   determinism.c with NRM_OPENMP, on 1, 2, 3 and 8 threads: all lines must be those of
#     tests/expected/golden.txt, which come from builds without threads;
#   the same with SEE_THREADS, which fails unless several threads had work in every large layer and
#     product, and only one in small ones;
#   test_status.c with NRM_OPENMP on as many: what the part of any thread has met
#     reaches the status;
#   determinism.c under clang's thread sanitizer, whose OpenMP tells it about barriers (gcc's
#     does not: everything behind a barrier would be reported);
#   threads.c, several threads that call the library at the same time, under the sanitizer.
#
# Each of these checks is also seen to fail: on a build whose work nobody shares, and on programs
# with a race.
set -u
cd "$(dirname "$0")/../.." || exit 1
bits=tests/bits/determinism.c
golden=tests/expected/golden.txt
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
# Threads that wait shall sleep: there may be more of them than processors.
OMP_WAIT_POLICY=passive OMP_DYNAMIC=false LC_ALL=C
export OMP_WAIT_POLICY OMP_DYNAMIC LC_ALL

verdict() { # folder, exit code, what: a line for each check, and what was printed if it failed
    if [ "$2" -eq 0 ]; then
        echo passed >>"$1/verdicts"
    else
        echo "failed $3" >>"$1/verdicts"
        sed -n '1,20s/^/    /p' "$1/log" >>"$1/verdicts"
    fi
}

build() { # folder, compiler, flags, source, program
    # shellcheck disable=SC2086
    "$2" $3 -I. -Iexamples "$4" -o "$1/$5" -lm >"$1/log" 2>&1
}

# The lines of a program on some numbers of threads.
check_lines() { # folder, program, type, what, numbers of threads...
    folder=$1 program=$2 type=$3 what=$4
    shift 4
    awk -v type="$type" -f tests/bits/golden.awk "$golden" >"$folder/expected"
    for threads in "$@"; do
        OMP_NUM_THREADS=$threads "$folder/$program" >"$folder/got" 2>"$folder/log"
        code=$?
        diff "$folder/expected" "$folder/got" >>"$folder/log" || code=1
        [ -s "$folder/expected" ] || code=1
        verdict "$folder" $code "$what, $type, $threads threads"
    done
}

must_fail() { # folder, what, text, command...: it fails and says the text
    folder=$1 what=$2 text=$3
    shift 3
    if "$@" >"$folder/log" 2>&1; then
        verdict "$folder" 1 "$what: was not noticed"
    else
        grep -q "$text" "$folder/log"
        verdict "$folder" $? "$what: failed otherwise"
    fi
}

check_openmp() { # compiler
    openmp="-std=c99 -ffp-contract=off -fopenmp"
    for row in "f32 -O2" "f64 -O1 -DNRM_DOUBLE" "acc32 -O1 -DNRM_ACC=float"; do
        if build "$work/$1" "$1" "$openmp -DNRM_OPENMP ${row#* }" $bits lines; then
            check_lines "$work/$1" lines "${row%% *}" "$1" 1 2 3 8
        else
            verdict "$work/$1" 1 "$1 -fopenmp ${row#* } does not build"
        fi
    done
    build "$work/$1" "$1" "$openmp -O1 -DNRM_OPENMP -Itests" tests/contracts/test_status.c statuses
    verdict "$work/$1" $? "$1, test_status.c does not build"
    for threads in 1 2 3 8; do
        OMP_NUM_THREADS=$threads "$work/$1/statuses" >"$work/$1/log" 2>&1
        verdict "$work/$1" $? "$1, statuses, $threads threads"
    done
    seen="$openmp -O1 -DSEE_THREADS -finstrument-functions"
    build "$work/$1" "$1" "$seen -DNRM_OPENMP" $bits seen
    verdict "$work/$1" $? "$1 -finstrument-functions does not build"
    check_lines "$work/$1" seen f32 "$1, who works" 1 2 3 8
    build "$work/$1" "$1" "$seen" $bits alone
    verdict "$work/$1" $? "$1 without NRM_OPENMP does not build"
    must_fail "$work/$1" "$1: work that nobody shares" "0 threads at work" \
        env OMP_NUM_THREADS=2 "$work/$1/alone"
}

# A sanitizer's report makes a program fail.
check_sanitized_openmp() { # compiler
    TSAN_OPTIONS=ignore_noninstrumented_modules=1
    export TSAN_OPTIONS
    sanitize="-std=c99 -ffp-contract=off -O1 -g -fopenmp -fsanitize=thread"
    build "$work/$1" "$1" "$sanitize" "$work/race_openmp.c" race
    must_fail "$work/$1" "$1: a race in OpenMP" "data race" env OMP_NUM_THREADS=3 "$work/$1/race"
    if build "$work/$1" "$1" "$sanitize -DNRM_OPENMP" $bits sanitized; then
        check_lines "$work/$1" sanitized f32 "$1 -fsanitize=thread" 3
    else
        verdict "$work/$1" 1 "$1 -fsanitize=thread -fopenmp does not build"
    fi
}

check_sanitized_calls() { # compiler
    sanitize="-std=c99 -O1 -g -fsanitize=thread -pthread"
    build "$work/$1" "$1" "$sanitize" "$work/race.c" race
    must_fail "$work/$1" "$1: a race" "data race" "$work/$1/race"
    build "$work/$1" "$1" "$sanitize" tests/bits/threads.c calls &&
        "$work/$1/calls" >"$work/$1/log" 2>&1
    verdict "$work/$1" $? "$1: calls at the same time"
}

works() { # compiler, flags, source: builds a program that runs, whatever it returns
    # shellcheck disable=SC2086
    "$1" $2 "$3" -o "$work/try" >"$work/log" 2>&1 && "$work/try" >"$work/log" 2>&1
}

check_compiler() {
    mkdir "$work/$1"
    if [ -f "$work/$1.openmp" ]; then check_openmp "$1"; fi
    if [ -f "$work/$1.sanitizer" ]; then check_sanitized_calls "$1"; fi
    if [ "$1" = clang ] && [ -f "$work/$1.openmp" ] && [ -f "$work/$1.sanitizer" ]; then
        check_sanitized_openmp "$1"
    fi
}

cat >"$work/try.c" <<'END'
#include <stdio.h>
int main(void) { return puts("runs") < 0; }
END
sed 's/#include/#include <omp.h>\n&/; s/return/return omp_get_max_threads() < 1 ||/' \
    "$work/try.c" >"$work/try_openmp.c"
cat >"$work/race_openmp.c" <<'END'
#include <stdio.h>
int main(void)
{
    long sum = 0;
    int i;
#pragma omp parallel for
    for (i = 0; i < 1000; i++) sum += i;
    return printf("%ld\n", sum) < 0;
}
END
cat >"$work/race.c" <<'END'
#include <pthread.h>
static long sum;
static void *count(void *nothing)
{
    int i;
    for (i = 0; i < 1000; i++) sum++;
    return nothing;
}
int main(void)
{
    pthread_t a, b;
    if (pthread_create(&a, 0, count, 0) != 0 || pthread_create(&b, 0, count, 0) != 0) return 0;
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
END
compilers=
for compiler in gcc clang; do
    if ! command -v "$compiler" >/dev/null 2>&1; then
        echo "threads: missing: $compiler"
        continue
    fi
    compilers="$compilers $compiler"
    if works "$compiler" -fopenmp "$work/try_openmp.c"; then
        : >"$work/$compiler.openmp"
    else
        echo "threads: missing: OpenMP for $compiler (for clang it is libomp-dev)"
    fi
    if works "$compiler" -fsanitize=thread "$work/try.c"; then
        : >"$work/$compiler.sanitizer"
    else
        echo "threads: missing: the thread sanitizer of $compiler"
    fi
done
for compiler in $compilers; do check_compiler "$compiler" & done
wait
: >"$work/verdicts"
for compiler in $compilers; do
    [ ! -f "$work/$compiler/verdicts" ] || cat "$work/$compiler/verdicts" >>"$work/verdicts"
done
grep -v '^passed' "$work/verdicts" | sed 's/^failed/threads:/'
passed=$(grep -c '^passed' "$work/verdicts")
failed=$(grep -c '^failed' "$work/verdicts")
echo "threads: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
