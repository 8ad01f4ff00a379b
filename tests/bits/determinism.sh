#!/bin/sh
# The same bits from every build, and those on file. tests/bits/determinism.c prints a hash for each
# piece of the library; here it is built by each compiler at several levels of optimisation, for
# several processors, languages and widths of vectors, in all three types, and its lines are
# compared with tests/expected/golden.txt. Then tests/bits/threads.sh does the same with threads.
#
#   exact lines   must be those on file in all builds, whatever the compiler may fuse
#   train lines   must be in all builds that cannot fuse multiply-add: because they are told not
#                 to (-ffp-contract=off), or because the processor they are for does not have it
#
#   determinism.sh          check
#   determinism.sh golden   write the file anew, from plain builds (first compiler, -O0): for
#                           changes of the specification, such as another order of a sum, and for
#                           new lines; say in the commit why they changed
#
# Environment: OTHER_CC and OTHER_RUN, a cross compiler with its options and what runs its programs,
# such as OTHER_CC="aarch64-linux-gnu-gcc -static" OTHER_RUN=qemu-aarch64-static. They are found by
# themselves under these names.
set -u
cd "$(dirname "$0")/../.." || exit 1
self=tests/bits/determinism.sh
golden=tests/expected/golden.txt
LC_ALL=C
export LC_ALL

option_of() { # type: what selects it
    case $1 in
    f64) echo -DNRM_DOUBLE ;;
    acc32) echo -DNRM_ACC=float ;;
    esac
}

build() { # folder, compiler, runner, flags: the program's output in folder/out
    # shellcheck disable=SC2086
    $2 $4 -I. tests/bits/determinism.c -o "$1/program" -lm >"$1/log" 2>&1 &&
        $3 "$1/program" >"$1/out" 2>>"$1/log"
}

# Can this build fuse a multiplication and an addition?
fuses() { # compiler, flags, folder
    case $2 in *-ffp-contract=off*) return 1 ;; esac
    : >"$3/empty.c"
    # shellcheck disable=SC2086
    $1 $2 -dM -E "$3/empty.c" >"$3/macros" 2>/dev/null || return 1
    grep -q -e '__FMA__' -e '__FP_FAST_FMA' -e '__ARM_FEATURE_FMA' -e '__aarch64__' "$3/macros"
}

# One build, and its lines against those on file. Prints one verdict per class.
check() { # folder, compiler, runner, type, flags
    what="$2 $5, $4"
    if ! build "$1" "$2" "$3" "$(option_of "$4") $5"; then
        echo "failed does not build or run: $what"
        sed 's/^/    /' "$1/log"
        return
    fi
    classes="exact train"
    fuses "$2" "$5" "$1" && classes=exact
    for class in $classes; do
        awk -v type="$4" -f tests/bits/golden.awk "$golden" | grep "^$class " >"$1/expected"
        grep "^$class " "$1/out" >"$1/got"
        if [ -s "$1/expected" ] && cmp -s "$1/expected" "$1/got"; then
            echo "passed"
        else
            echo "failed $class lines differ: $what"
            diff "$1/expected" "$1/got" | sed -n '1,20s/^/    /p'
        fi
    done
}

if [ "${1:-}" = one ]; then # working folder, line of its file `jobs`
    folder=$2/$3
    mkdir "$folder" || exit 1
    IFS='|' read -r compiler runner type flags <<END
$(sed -n "$3p" "$2/jobs")
END
    check "$folder" "$compiler" "$runner" "$type" "$flags" >"$folder/verdict"
    rm -f "$folder/program"
    exit 0
fi

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

compilers=
for compiler in gcc clang; do
    if command -v "$compiler" >/dev/null 2>&1; then
        compilers="$compilers $compiler"
    else
        echo "determinism: missing: $compiler"
    fi
done
[ -n "$compilers" ] || { echo "determinism: no compiler"; exit 1; }

if [ "${1:-}" = golden ]; then
    {
        echo "# What tests/bits/determinism.c prints, with the hash of each type."
        echo "# To renew this file: sh tests/bits/determinism.sh golden"
        echo "# class name f32 f64 acc32"
    } >"$work/golden"
    for type in f32 f64 acc32; do
        first=${compilers# }
        if ! build "$work" "${first%% *}" "" \
            "$(option_of $type) -std=c99 -O0 -ffp-contract=off"; then
            cat "$work/log"
            exit 1
        fi
        mv "$work/out" "$work/$type"
    done
    paste -d ' ' "$work/f32" "$work/f64" "$work/acc32" |
        awk '{ print $1, $2, $3, $6, $9 }' >>"$work/golden"
    cp "$work/golden" "$golden"
    echo "determinism: $(grep -vc '^#' "$golden") lines in $golden"
    exit 0
fi

# Does the compiler know these flags, and does a program built with them run here? features: what
# the processor must have for it, of which the compiler itself may ask it.
works() { # compiler, flags, features...
    works_compiler=$1
    works_flags=$2
    shift 2
    {
        echo '#include <stdio.h>'
        echo 'int main(void) {'
        for feature in "$@"; do
            echo "    if (!__builtin_cpu_supports(\"$feature\")) return 1;"
        done
        echo '    return puts("") < 0; }'
    } >"$work/try.c"
    # shellcheck disable=SC2086
    "$works_compiler" $works_flags "$work/try.c" -o "$work/try" >"$work/log" 2>&1 &&
        "$work/try" >"$work/log" 2>&1
}

job() { # compiler, runner, types, flags
    for type in $3; do echo "$1|$2|$type|$4" >>"$work/jobs"; done
}

# A job for machines like this one that have all that is asked for; otherwise a line that says so.
job_if() { # compiler, types, flags that may be unknown, other flags, features...
    job_compiler=$1 job_types=$2 job_flags=$3 job_others=$4
    shift 4
    if works "$job_compiler" "$job_flags" "$@"; then
        job "$job_compiler" "" "$job_types" "$job_flags $job_others"
    else
        echo "determinism: this machine cannot run what $job_compiler $job_flags makes"
    fi
}

# The three types do not go through all of it: a build takes seconds. Each meets every kind of code.
all_jobs() { # compiler
    native=
    works "$1" -march=native && native=-march=native
    job "$1" "" f32 "-std=gnu99 -O0"
    job "$1" "" f32 "-std=gnu99 -O2"
    job "$1" "" acc32 "-std=c99 -O3"
    job "$1" "" f32 "-std=gnu99 -O3 $native"
    job "$1" "" "f64 acc32" "-std=gnu99 -O3 $native -DNRM_STATIC"
    job "$1" "" "f32 f64" "-std=c99 -O3 $native -ffp-contract=off"
    job "$1" "" "f32 acc32" "-std=gnu99 -O2 -DNRM_NO_VECTORS"
    job "$1" "" f64 "-x c++ -std=gnu++17 -O2"
    if [ "$1" = clang ]; then # flags that no macro tells: a pragma keeps them out
        job_if clang f32 "-fassociative-math -fno-signed-zeros -fno-trapping-math" \
            "-std=c99 -O2 $native -ffp-contract=off -freciprocal-math -fapprox-func"
    fi
    case $(uname -m) in
    x86_64 | amd64)
        # vectors of 16 bytes are what the lines above use without $native; here are 32 without
        # and with fused operations, and 64, which any compiler makes of two times 32 if need be
        job_if "$1" f32 "-mavx -mno-fma" "-std=gnu99 -O2" avx
        job_if "$1" f64 "-mavx2 -mfma -mno-avx512f" "-std=gnu99 -O2" avx2 fma
        # the copies for other processors; those of 64 bytes are in the lines above
        for bytes in 16 32; do
            job "$1" "" "f32 f64" "-std=gnu99 -O2 -DNRM_DISPATCH_LIMIT=$bytes"
        done
        job "$1" "" acc32 "-std=gnu99 -O2 -DNRM_NO_DISPATCH"
        job_if "$1" f32 "-mavx2 -mfma -U__AVX512F__ -D__AVX512F__" "-std=gnu99 -O2" avx2 fma
        # the 32-bit machine, whose floats without these two options would be those of the x87
        job_if "$1" "f32 f64 acc32" "-m32 -msse2 -mfpmath=sse" "-std=gnu99 -O2"
        ;;
    esac
}

# A machine of another make.
other_jobs() {
    if [ -z "${OTHER_CC:-}" ] && command -v aarch64-linux-gnu-gcc >/dev/null 2>&1; then
        OTHER_CC="aarch64-linux-gnu-gcc -static"
        OTHER_RUN=$(command -v qemu-aarch64-static || command -v qemu-aarch64)
    fi
    if [ -z "${OTHER_CC:-}" ] || [ -z "${OTHER_RUN:-}" ]; then
        echo "determinism: missing: a cross compiler with an emulator"
        return
    fi
    job "$OTHER_CC" "$OTHER_RUN" "f32 f64 acc32" "-std=gnu99 -O2"
    job "$OTHER_CC" "$OTHER_RUN" "f32 f64 acc32" "-std=c99 -O3 -ffp-contract=off"
}

for compiler in $compilers; do all_jobs "$compiler"; done
other_jobs
processors=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
awk '{ print NR }' "$work/jobs" | xargs -n 1 -P "$processors" sh $self one "$work"
cat "$work"/*/verdict >"$work/verdicts"
grep -v '^passed' "$work/verdicts" | sed 's/^failed/determinism:/'
passed=$(grep -c '^passed' "$work/verdicts")
failed=$(grep -c '^failed' "$work/verdicts")
builds=$(wc -l <"$work/jobs")
[ "$(find "$work" -name verdict | wc -l)" -eq "$builds" ] || failed=$((failed + 1))
if [ -f tests/bits/threads.sh ]; then
    sh tests/bits/threads.sh >"$work/threads"
    grep -v '^threads: [0-9]* passed' "$work/threads"
    line=$(tail -n 1 "$work/threads")
    p=${line##*: }
    f=${line##*passed, }
    case $line in
    "threads: "*" passed, "*" failed")
        passed=$((passed + ${p%% passed*}))
        failed=$((failed + ${f%% failed*}))
        ;;
    *) failed=$((failed + 1)); echo "determinism: no verdict of tests/bits/threads.sh" ;;
    esac
fi
echo "determinism: $builds builds beside those with threads"
echo "determinism: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
