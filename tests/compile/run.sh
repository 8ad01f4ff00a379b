#!/bin/sh
# How normlayers.h is built and linked: every language standard, several files, both precisions,
# no C library; and the builds that must fail, with the reason that must be given.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
here=tests/compile
MOST_SECONDS=${MOST_SECONDS:-6} # for compiling the implementation at -O2: 0.7 for a thousand lines

refuse() { # what, text, command...: the command fails and says the text
    what=$1
    text=$2
    shift 2
    if "$@" >"$dir/log" 2>&1; then
        fail "$what: was accepted"
    elif grep -q "$text" "$dir/log"; then
        pass
    else
        fail "$what: without saying '$text'"
    fi
}

have() { command -v "$1" >/dev/null 2>&1; }

# compiler, language flags, source, object, more flags
object() {
    tool=$1 language_flags=$2 source=$3 out=$4
    shift 4
    # shellcheck disable=SC2086
    "$tool" $language_flags -O1 -I. "$@" -c "$here/$source" -o "$dir/$out"
}
link() { # compiler, objects...
    tool=$1
    shift
    (cd "$dir" && "$tool" "$@" -o program -lm) && "$dir/program"
}
# Succeeds if all steps do.
three_files() { # compiler and language of the implementation, then of the users; flags
    object "$1" "$2" implementation.c implementation.o $5 &&
        object "$3" "$4" user_layernorm.c a.o $5 && object "$3" "$4" user_batchnorm.c b.o $5 &&
        object "$3" "$4" main_users.c m.o $5 && link "$3" implementation.o a.o b.o m.o
}
side_by_side() { # compiler, language: two implementations of different precision
    object "$1" "$2" implementation.c f32.o &&
        object "$1" "$2" implementation.c f64.o -DNRM_DOUBLE &&
        object "$1" "$2" side_float.c a.o && object "$1" "$2" side_double.c b.o &&
        object "$1" "$2" main_side.c m.o && link "$1" f32.o f64.o a.o b.o m.o
}
static_files() { # compiler, language: no implementation file at all
    object "$1" "$2" side_float.c a.o -DNRM_STATIC &&
        object "$1" "$2" side_double.c b.o -DNRM_STATIC &&
        object "$1" "$2" main_side.c m.o && link "$1" a.o b.o m.o
}
# A user's own gamma, and his own NRM_DEF, beside the implementation.
own_names() { # compiler
    printf '%s\n' 'double gamma[3];' \
        '#define NRM_DEF extern __attribute__((visibility("hidden")))' \
        '#define NORMLAYERS_IMPLEMENTATION' '#include "normlayers.h"' >"$dir/own.c" &&
        "$1" -std=c99 -Wall -Wextra -Werror -I. -c "$dir/own.c" -o "$dir/own.o" &&
        nm "$dir/own.o" | grep -q 'T nrm_layernorm_forward'
}
# NRM_EPS in a C++ file of a user who forbids casts as C has them.
eps_without_cast() { # compiler
    printf '%s\n' '#include "normlayers.h"' 'nrm_real eps = NRM_EPS;' >"$dir/eps.cpp" &&
        "$1" -std=c++11 -Wold-style-cast -Werror -fsyntax-only -I. "$dir/eps.cpp"
}
# No frame is larger than this: the stack follows NRM_WIDTH everywhere.
frames() { # most bytes, flags
    gcc -std=c99 -O2 -fstack-usage -I. $2 -c $here/implementation.c -o "$dir/frames.o" &&
        awk -v most="$1" '$2 > most { print; bad = 1 } END { exit bad || NR == 0 }' \
            "$dir"/frames.su
}
# What the contracts say of the stack: of all functions, and of layer norm's wide rows.
stack() { # compiler, flags, most bytes, most bytes
    "$1" -std=c99 $2 -pthread -I. $here/stack.c -o "$dir/stack" -lm && "$dir/stack" "$3" "$4"
}
mismatch() { # compiler, flags of the implementation, flags of the users: must not link
    object "$1" -std=c99 implementation.c implementation.o $2 &&
        object "$1" -std=c99 user_layernorm.c a.o $3 &&
        object "$1" -std=c99 user_batchnorm.c b.o $3 &&
        object "$1" -std=c99 main_users.c m.o $3 || { echo "does not even compile"; return 0; }
    link "$1" implementation.o a.o b.o m.o
}
undefined() { # object: what it wants from elsewhere, but for what the compiler brings itself: its
    # table, and in libgcc or compiler-rt what the processor can (__builtin_cpu_supports)
    nm -u "$dir/$1" | awk '{print $NF}' | grep -v -e '^_GLOBAL_OFFSET_TABLE_$' -e '^__cpu_' |
        sort | tr '\n' ' '
}
freestanding() { # compiler, flags
    object "$1" -std=c99 freestanding.c bare.o -ffreestanding -nostdlib -fno-stack-protector $2 ||
        return 1
    for name in $(undefined bare.o); do
        case $name in
        memcpy | memset) ;;
        *) echo "wants $name"; return 1 ;;
        esac
    done
    object "$1" -std=c99 freestanding.c whole.o -ffreestanding -fno-stack-protector \
        -DFREESTANDING_WHOLE $2 &&
        (cd "$dir" && "$1" -nostdlib -static -Wl,-e,entry whole.o -o whole) &&
        object "$1" -std=c99 main_freestanding.c m.o && link "$1" bare.o m.o
}

# The instructions of an object that compute in double or long double on an x86-64: their names end
# in sd or pd, convert from or to such, or are the x87's. Not counted are those that move, shuffle
# or mask 64 bits, for compilers use them on pairs of floats too.
double_instructions() { # object
    objdump -d --no-show-raw-insn "$dir/$1" |
        awk -F '\t' 'NF > 1 { sub(/ .*/, "", $2); print $2 }' |
        grep -E '[sp]d$|cvtt?[sp]d2|^f[a-z]' |
        grep -Ev '^v?(mov|unpck|shuf|perm|blend|and|or|xor|broadcast|insert|extract)' |
        sort -u | tr '\n' ' '
}
# With NRM_ACC=float no double takes part, not even behind a constant or in the square root: for
# processors that have none, or emulate it. (At -O3 with AVX clang makes floats of unsigned integers
# by way of doubles, which loses nothing; so it is -O1 and -O2 that are looked at.)
single_precision() { # compiler, flags
    object "$1" -std=c99 implementation.c single.o -DNRM_ACC=float -Wdouble-promotion -Werror $2 ||
        return 1
    found=$(double_instructions single.o)
    [ -z "$found" ] || { echo "has $found"; return 1; }
    for name in $(undefined single.o); do
        case $name in
        memcpy | memmove | memset | sqrtf) ;; # a loop that copies may become one of these
        *) echo "wants $name"; return 1 ;;
        esac
    done
}
# Of the C library the square root and what copies bytes, and nothing else: no memory, no files.
little_library() { # compiler, flags
    object "$1" -std=c99 implementation.c x.o $2 || return 1
    for name in $(undefined x.o); do
        case $name in
        memcpy | memmove | memset | sqrt | __stack_chk_fail) ;;
        *) echo "wants $name"; return 1 ;;
        esac
    done
}
# The same search where it has to find something: the default, in which sums end in double.
finds_double() { # compiler, flags
    object "$1" -std=c99 implementation.c mixed.o $2 || return 1
    found=$(double_instructions mixed.o)
    for name in addsd mulsd cvtss2sd cvtsd2ss; do
        case " $found " in
        *" $name "*) ;;
        *) echo "no $name among: $found"; return 1 ;;
        esac
    done
}

# The program in the header's opening comment, and the line that says what it prints.
sed -n '/^```c$/,/^```$/p' normlayers.h | sed '/^```/d' >"$dir/example.c"
sed -n 's|^ *return rc; // both rows print ||p' "$dir/example.c" >"$dir/claim"
example() { # compiler, language: output equal to the claim, in each of two rows
    # shellcheck disable=SC2086
    "$1" $2 -I. "$dir/example.c" -o "$dir/example" -lm || return 1
    "$dir/example" >"$dir/printed" || return 1
    if [ "$(wc -l <"$dir/printed")" -ne 2 ] || [ ! -s "$dir/claim" ]; then
        cat "$dir/printed"
        return 1
    fi
    while read -r line; do
        # shellcheck disable=SC2086
        [ "$(echo $line)" = "$(cat "$dir/claim")" ] || { echo "printed: $line"; return 1; }
    done <"$dir/printed"
}

# The user time of all children so far, in hundredths: less disturbed by other work on the machine
# than a clock on the wall.
hundredths() {
    times >"$dir/times"
    sed -n '2s/^\([0-9]*\)m\([0-9.]*\)s.*/\1 \2/p' "$dir/times" |
        awk '{printf "%d\n", ($1 * 60 + $2) * 100}'
}

[ "$(wc -l <"$dir/example.c")" -ge 12 ] || fail "no program in the header's opening comment"
for cc in gcc clang; do
    have $cc || { echo "compile: missing: $cc"; continue; }
    for std in c99 c11 c17 c2x; do
        check "$cc $std" object $cc -std=$std implementation.c x.o
        check "$cc $std NRM_STATIC" object $cc -std=$std implementation.c x.o -DNRM_STATIC
    done
    for std in c++11 c++17 c++20; do
        check "$cc $std" object $cc "-x c++ -std=$std" implementation.c x.o
        check "$cc $std NRM_STATIC" object $cc "-x c++ -std=$std" implementation.c x.o -DNRM_STATIC
    done
    cxx=g++
    [ $cc = clang ] && cxx=clang++
    have $cxx || { echo "compile: missing: $cxx"; cxx=$cc; }
    for option in "" -DNRM_DOUBLE -DNRM_ACC=float -DNRM_NO_VECTORS -DNRM_PLAIN; do
        check "$cc three files $option" three_files $cc -std=c99 $cc -std=c99 "$option"
    done
    check "$cc: implementation in C, users in C++" \
        three_files $cc -std=c99 $cxx "-x c++ -std=c++11" ""
    check "$cc: implementation in C++, users in C" \
        three_files $cc "-x c++ -std=c++11 -fno-exceptions -fno-rtti" $cc -std=c99 ""
    for language in -std=c99 "-x c++ -std=c++17"; do
        check "$cc $language: float and double side by side" side_by_side $cc "$language"
        check "$cc $language: NRM_STATIC in two precisions" static_files $cc "$language"
    done
    refuse "$cc: double user, float functions" "undefined.*_f64" mismatch $cc "" -DNRM_DOUBLE
    refuse "$cc: float user, double functions" "undefined.*nrm_" mismatch $cc -DNRM_DOUBLE ""
    refuse "$cc: NRM_ACC differs" "undefined.*_f32_float" mismatch $cc "" -DNRM_ACC=float
    for option in "" -DNRM_DOUBLE -DNRM_PLAIN; do
        check "$cc freestanding $option" freestanding $cc "$option"
    done
    if [ "$(uname -m)" = x86_64 ] && have objdump; then
        for level in -O1 -O2; do
            check "$cc $level NRM_ACC=float: no double" single_precision $cc "$level"
            check "$cc $level: double is found" finds_double $cc "$level"
        done
    else
        echo "compile: instructions are looked at on an x86-64 with objdump only"
    fi
    for option in "" -DNRM_DOUBLE -DNRM_PLAIN; do
        check "$cc $option: little of the C library" little_library $cc "$option"
    done
    refuse "$cc: -ffast-math" "compile without -ffast-math" \
        object $cc -std=c99 implementation.c x.o -ffast-math
    refuse "$cc: -Ofast" "compile without -ffast-math" \
        object $cc -std=c99 implementation.c x.o -Ofast
    refuse "$cc: NRM_DOUBLE with NRM_ACC=float" "nrm_acc_holds_an_nrm_real" \
        object $cc -std=c99 implementation.c x.o -DNRM_DOUBLE -DNRM_ACC=float
    check "$cc: names of the user's own" own_names $cc
    if [ $cc = gcc ] && [ "$(uname -m)" = x86_64 ]; then # (clang has no x87 on 64 bits)
        refuse "$cc: floats of the x87" "computed in another type" \
            object $cc -std=c99 implementation.c x.o -mfpmath=387
        check "$cc: floats of the x87, all the same" \
            object $cc -std=c99 implementation.c x.o -mfpmath=387 -DNRM_ANY_FLOAT_EVAL
    fi
    for language in -std=c99 "-x c++ -std=c++11"; do
        check "$cc $language: the program in the header's comment" example $cc "$language"
    done
    hundredths >"$dir/begin"
    check "$cc -O2" $cc -std=c99 -O2 -I. -c $here/implementation.c -o "$dir/x.o"
    hundredths >"$dir/end"
    took=$(($(cat "$dir/end") - $(cat "$dir/begin")))
    echo "compile: $cc -O2 takes $took hundredths of a second, at most $MOST_SECONDS seconds"
    if [ "$took" -le $((MOST_SECONDS * 100)) ]; then pass; else fail "$cc takes too long"; fi
done
for cc in gcc clang; do
    have $cc || continue
    for level in -O2 "-O3 -march=native"; do
        check "$cc $level: the stack" stack $cc "$level" 100000 185000
        check "$cc $level: the stack in double" stack $cc "$level -DNRM_DOUBLE" 155000 285000
    done
done
have g++ && check "g++: NRM_EPS without a cast" eps_without_cast g++
if have gcc; then
    check "stack: at most 110 KB in one frame" frames 110000 ""
    check "stack: at most 11 KB with NRM_WIDTH=64" frames 11000 -DNRM_WIDTH=64
    check "stack: at most 1 KB with NRM_PLAIN" frames 1000 -DNRM_PLAIN
fi
verdict compile
