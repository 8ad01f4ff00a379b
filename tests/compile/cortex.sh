#!/bin/sh
# cortex.sh - what a layer costs on a small processor: the header for Cortex-M0+, Cortex-M4 and
# RISC-V 32, with NRM_PLAIN and without a C library, linked with a program that calls one function;
# and examples/uses/small_processor.c. The bytes of code that remain of the header, and the stack
# along the deepest chain of its calls, each with its limit. Arithmetic that the processor does not
# have is the compiler's: it is part of "whole", and has no limit.
#
# Environment: ARM_GCC, RISCV_GCC, BUILD. The last line is "cortex: N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${ARM_GCC:=arm-none-eabi-gcc}" "${BUILD:=build}"
riscv=riscv64-unknown-elf-gcc
command -v $riscv >/dev/null 2>&1 || riscv=riscv64-elf-gcc # as Arch and Homebrew call it
: "${RISCV_GCC:=$riscv}"
. tests/checks.sh
LC_ALL=C
export LC_ALL
out=$BUILD/cortex
stack_limit=512
mkdir -p "$out" || exit 1

cat >"$out/header.c" <<'END'
#include <stddef.h>
double app_sqrt(double a);
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
#define NRM_PLAIN
#define NRM_NO_LIBC
#define NRM_SQRT(a) ((nrm_acc)app_sqrt((double)(a)))
#define NRM_MEMCPY(to, from, bytes) memcpy((to), (from), (bytes))
#define NRM_MEMSET(to, byte, bytes) memset((to), (byte), (bytes))
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
END
cat >"$out/system.c" <<'END'
#include <stddef.h>
double app_sqrt(double a);
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
double app_sqrt(double a)
{
    double r = a > 1 ? a : 1, next;
    while (a > 0 && (next = (r + a / r) / 2) < r) r = next;
    return a > 0 ? r : a;
}
void *memcpy(void *to, const void *from, size_t bytes)
{
    volatile unsigned char *t = (volatile unsigned char *)to;
    const unsigned char *f = (const unsigned char *)from;
    while (bytes-- > 0) *t++ = *f++;
    return to;
}
void *memset(void *to, int byte, size_t bytes)
{
    volatile unsigned char *t = (volatile unsigned char *)to;
    while (bytes-- > 0) *t++ = (unsigned char)byte;
    return to;
}
END
cat >"$out/app.h" <<'END'
#define NRM_NO_LIBC
#include "normlayers.h"
nrm_real x[64], y[64], gamma[16], beta[16];
nrm_real m[16], v[16];
nrm_running running;
int main(void);
END
cat >"$out/nrm_batchnorm_forward.c" <<'END'
#include "app.h"
int main(void)
{
    running.mean = m;
    running.var = v;
    return nrm_batchnorm_forward(y, NULL, NULL, &running, x, gamma, beta, NRM_INFER, NRM_EPS, 1, 16,
                                 4);
}
END
cat >"$out/nrm_layernorm_forward.c" <<'END'
#include "app.h"
int main(void)
{
    return nrm_layernorm_forward(y, NULL, NULL, x, gamma, beta, NRM_EPS, 4, 16);
}
END

compile() { # SOURCE, OPTIONS...: into $out
    source=$1
    # shellcheck disable=SC2086
    $gcc $machine $flags -c "$source" -o "$out/$(basename "$source" .c).o"
}
linked() { # OBJECT ENTRY [OBJECT]: with what remains of the header, and of the compiler's library
    # shellcheck disable=SC2086
    compile "$out/system.c" &&
        $gcc $machine -nostdlib -Wl,--gc-sections -Wl,-e,"$2" "$out/$1.o" "$out/system.o" \
            ${3:+"$3"} -lgcc -o "$out/$1.elf"
}

# The bytes of the header's functions in a program.
text_of() { # PROGRAM
    "${gcc%gcc}nm" -S -t d --defined-only "$out/$1.elf" |
        awk '$3 ~ /[tT]/ && $4 ~ /^(nrmi?_|infer$|newton)/ { sum += $2 } END { print sum + 0 }'
}
# The stack along the deepest chain of calls, and that chain: from the compiler's call graph.
stack_of() { # FUNCTION CALL_GRAPH
    awk -v root="$1" '
        function quoted(key,    text) {
            text = $0
            if (!sub("^.*" key ": \"", "", text)) return ""
            sub(/".*$/, "", text)
            sub(/^.*:/, "", text) # static functions: "file:name"
            return text
        }
        /^node:/ {
            f = quoted("title")
            if (match($0, /[0-9]+ bytes/)) own[f] = substr($0, RSTART, RLENGTH) + 0
            if ($0 ~ /bytes \(dynamic\)/) open[f] = "a stack that grows"
        }
        /^edge:/ {
            f = quoted("sourcename")
            calls[f] = calls[f] " " quoted("targetname")
        }
        function deep(f,    list, n, k, d, most) {
            if (f in deepest) return deepest[f]
            if (f == "__indirect_call") open[f] = "a call by pointer"
            if (f in open) unknown = f " has " open[f]
            deepest[f] = 0
            n = split(calls[f], list, " ")
            for (k = 1; k <= n; k++) {
                d = deep(list[k])
                if (d > most || !(f in next_of)) { most = d; next_of[f] = list[k] }
            }
            return deepest[f] = own[f] + most
        }
        END {
            for (f in own)
                if (index(f, root "_f") == 1) root = f # the link name says the types
            found = root in own
            d = deep(root)
            chain = root " " own[root] + 0
            for (f = root; f in next_of; f = next_of[f])
                if (own[next_of[f]]) chain = chain ", " next_of[f] " " own[next_of[f]]
            print (unknown != "" || !found ? 999999 : d) " " (unknown != "" ? unknown : chain)
        }' "$2"
}

row() { # PROGRAM FUNCTION CALL_GRAPH WHAT: within its limits, and a row of the table
    [ -f "$out/$1.elf" ] || return
    text=$(text_of "$1")
    stack=$(stack_of "$2" "$3")
    whole=$("${gcc%gcc}size" "$out/$1.elf" | awk 'NR == 2 { print $1 }')
    printf '| %-10s | %-38s | %4d | %5d | %5d |\n' "$name" "$4" "$text" "$whole" "${stack%% *}" \
        >>"$dir/table"
    check "$name, $4: code $text of $text_limit" test "$text" -le "$text_limit" -a "$text" -gt 0
    check "$name, $4: stack ${stack%% *} of $stack_limit: ${stack#* }" \
        test "${stack%% *}" -le "$stack_limit"
    rm -f "$out/$1.elf"
}

while read -r name gcc text_limit machine; do
    if ! command -v "$gcc" >/dev/null 2>&1; then
        echo "cortex: missing: $gcc (\`make deps-dev\` installs it), nothing for $name"
        continue
    fi
    common="-std=c99 -Os -ffreestanding -ffp-contract=off -ffunction-sections -fdata-sections -I. \
-fstack-usage -fcallgraph-info=su"
    for type in double float; do
        flags="$common -w"
        [ $type = double ] || flags="$flags -DNRM_ACC=float"
        check "$name: the header compiles" compile "$out/header.c"
        for f in batchnorm layernorm; do
            check "$name: $f compiles" compile "$out/nrm_${f}_forward.c"
            check "$name: $f links" linked "nrm_${f}_forward" main "$out/header.o"
            row "nrm_${f}_forward" "nrm_${f}_forward" "$out/header.ci" \
                "$f forward, statistics $type"
        done
    done
    flags="$common -Wall -Wextra -Wpedantic -Werror"
    check "$name: the example compiles" compile examples/uses/small_processor.c
    check "$name: the example links" linked small_processor infer
    row small_processor infer "$out/small_processor.ci" "examples/uses/small_processor.c"
done <<END
Cortex-M0+ $ARM_GCC 2560 -mcpu=cortex-m0plus -mthumb
Cortex-M4 $ARM_GCC 2048 -mcpu=cortex-m4 -mthumb
RISC-V-32 $RISCV_GCC 2816 -march=rv32imac -mabi=ilp32
END
[ -f "$dir/table" ] || verdict cortex || exit 1
printf '| processor  | bytes of %-29s | code | whole | stack |\n|---|---|---|---|---|\n' ""
cat "$dir/table"
verdict cortex
