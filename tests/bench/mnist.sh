#!/bin/sh
# mnist.sh - an MNIST epoch of ours and of PyTorch's, in turn, on one processor.
#
#   mnist.sh DATA_DIR [ROUNDS]
#
# Each round runs ours and PyTorch's once for every norm (none, batch, layer), five epochs each with
# the round's number as the seed. Printed are the medians of the epochs' seconds, their ratio, and
# the test accuracy after epochs 1 and 5, averaged over the rounds. The absolute times of a shared
# machine mean little; the ratio of times taken in turn means more. Without PyTorch (Debian:
# python3-torch) only ours are run, and that is said.
set -eu
cd "$(dirname "$0")/../.."
data=${1:-data/mnist}
rounds=${2:-3}
: "${CC:=cc}" "${BUILD:=build}"
python=
for p in /usr/bin/python3 python3; do
    if "$p" -c 'import torch' 2>/dev/null; then
        python=$p
        break
    fi
done
[ -n "$python" ] || echo "bench: no PyTorch here (Debian: python3-torch), timing ours only"
$CC -std=gnu99 -O3 -march=native -I. -Iexamples tests/bench/mnist.c "$BUILD/helpers.o" \
    "$BUILD/stb_image_write.o" -o "$BUILD/bench_mnist" -lm
pin=
if command -v taskset >/dev/null 2>&1; then pin="taskset -c 0"; fi
log=$BUILD/bench_mnist.log
: >"$log"
round=1
while [ "$round" -le "$rounds" ]; do
    for norm in none batch layer; do
        $pin "$BUILD/bench_mnist" "$data" $norm 5 "$round" >>"$log"
        [ -z "$python" ] || $pin "$python" tests/bench/mnist.py "$data" $norm 5 "$round" >>"$log"
    done
    round=$((round + 1))
done
awk '
{ key = $1 " " $2; n[key]++; seconds[key, n[key]] = $6; acc[key, $4] += $10; runs[key, $4]++ }
function median(key,   i, j, t, a) {
    for (i = 1; i <= n[key]; i++) a[i] = seconds[key, i]
    for (i = 2; i <= n[key]; i++)
        for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
    return n[key] % 2 ? a[(n[key] + 1) / 2] : (a[n[key] / 2] + a[n[key] / 2 + 1]) / 2
}
function after(key, epoch) {
    return runs[key, epoch] ? 100 * acc[key, epoch] / runs[key, epoch] : 0
}
END {
    printf "%-7s %12s %12s %7s %17s %17s\n", "norm", "ours, s", "pytorch, s", "ratio",
        "ours, acc 1 / 5", "pytorch, 1 / 5"
    split("none batch layer", norms, " ")
    for (i = 1; i <= 3; i++) {
        a = "normlayers " norms[i]; b = "pytorch " norms[i]
        printf "%-7s %12.4f %12s %7s %8.2f / %6.2f %17s\n", norms[i], median(a),
            n[b] ? sprintf("%.4f", median(b)) : "-",
            n[b] ? sprintf("%.2f", median(b) / median(a)) : "-", after(a, 1), after(a, 5),
            n[b] ? sprintf("%.2f / %.2f", after(b, 1), after(b, 5)) : "-"
    }
}' "$log"
