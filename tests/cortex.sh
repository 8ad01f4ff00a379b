#!/bin/sh
# cortex.sh - what a layer costs on a small processor: the header for a Cortex-M4 with NRM_PLAIN
# and without a C library, linked with a program that calls one function. The bytes of code that
# remain of the header, and the stack along the deepest chain of its calls, each with its limit. The
# arithmetic of doubles, which the processor does not have, is the compiler's: printed, not limited.
#
# Environment: ARM_GCC, BUILD. The last line is "cortex: N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 1
: "${ARM_GCC:=arm-none-eabi-gcc}" "${BUILD:=build}"
. tests/checks.sh
LC_ALL=C
export LC_ALL
out=$BUILD/cortex
text_limit=2048
stack_limit=512

if ! command -v "$ARM_GCC" >/dev/null 2>&1; then
    echo "cortex: no $ARM_GCC here (Debian: apt install gcc-arm-none-eabi)"
    echo "cortex: 0 passed, 1 failed"
    exit 1
fi
mkdir -p "$out" || exit 1
flags="-std=c99 -mcpu=cortex-m4 -mthumb -Os -ffreestanding -ffp-contract=off -ffunction-sections \
-fdata-sections -w -I."

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
cat >"$out/app.h" <<'END'
#define NRM_NO_LIBC
#include "normlayers.h"
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

compile() { # SOURCE, OPTIONS...
    source=$1
    shift
    # shellcheck disable=SC2086
    $ARM_GCC $flags "$@" -c "$out/$source.c" -o "$out/$source.o"
}
linked() { # FUNCTION: with what remains of the header, and of the compiler's library
    compile "$1" &&
        $ARM_GCC -mcpu=cortex-m4 -mthumb -nostdlib -Wl,--gc-sections -Wl,-e,main "$out/$1.o" \
            "$out/header.o" -lgcc -o "$out/$1.elf"
}

# The bytes of the header's functions in a program.
text_of() { # FUNCTION
    "${ARM_GCC%gcc}nm" -S -t d --defined-only "$out/$1.elf" |
        awk '$3 ~ /[tT]/ && $4 ~ /^nrmi?_/ { sum += $2 } END { print sum + 0 }'
}
# The stack along the deepest chain of calls, and that chain: from the compiler's call graph.
stack_of() { # FUNCTION
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
        }' "$out/header.ci"
}

for types in "float data, double statistics:" "float data, float statistics:-DNRM_ACC=float"; do
    options=${types#*:}
    flags="$flags $options"
    echo "== ${types%%:*}"
    check "the header compiles" compile header -fstack-usage -fcallgraph-info=su
    for f in nrm_batchnorm_forward nrm_layernorm_forward; do
        check "$f links without a library" linked "$f"
        [ -f "$out/$f.elf" ] || continue
        text=$(text_of "$f")
        stack=$(stack_of "$f")
        whole=$("${ARM_GCC%gcc}size" "$out/$f.elf" | awk 'NR == 2 { print $1 }')
        echo "$f: $text bytes of code (limit $text_limit; the whole program $whole)," \
            "${stack%% *} bytes of stack (limit $stack_limit): ${stack#* }"
        check "$f: code" test "$text" -le "$text_limit" -a "$text" -gt 0
        check "$f: stack" test "${stack%% *}" -le "$stack_limit"
        "${ARM_GCC%gcc}nm" -S -t d --size-sort -r "$out/$f.elf" |
            awk '$3 ~ /[tT]/ && $4 ~ /^nrmi?_/ { printf "    %5d %s\n", $2, $4 }'
        rm -f "$out/$f.elf"
    done
done
verdict cortex
