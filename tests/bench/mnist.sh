#!/bin/sh
# mnist.sh - epochs of ours and of PyTorch's on MNIST, in turn, on one processor.
#
#   mnist.sh DATA_DIR [ROUNDS [SETTING...]]
#
# A setting is WIDTHS:BATCH:SAMPLES:EPOCHS, a network 784-WIDTHS-10 and the number of images that
# make an epoch; without any, there are three:
#
#   64-128:64:60000:3      the network of the figures
#   1000-1000:128:12800:2  a wide network whose products are large
#   1000-1000:4:3000:2     the same with small batches: memory is the limit, not arithmetic
#
# Each round runs ours and PyTorch's once for every norm (none, batch, layer), its number being the
# seed. Printed are the medians of the epochs' seconds, the median over the rounds of their
# ratio, the training loss of the last epoch, which says that both did the same work, and the test
# accuracy after it. Without PyTorch (Debian: python3-torch) only ours are run, and that is said.
#
# PyTorch's time is that of the BLAS it finds. So both products are measured first and printed.
# Other kernels of OpenBLAS are tried (OPENBLAS_CORETYPE), and the fastest used. If PyTorch still
# has less than half of our GFLOP/s, as with the reference BLAS, there is no comparison, for it
# would say nothing about PyTorch. Debian: libopenblas0-pthread.
# Table: BUILD/bench/mnist.csv and .md.
set -eu
cd "$(dirname "$0")/../.."
data=${1:-data/mnist}
rounds=${2:-3}
[ $# -lt 2 ] || shift
[ $# -lt 1 ] || shift
[ $# -gt 0 ] || set -- 64-128:64:60000:3 1000-1000:128:12800:2 1000-1000:4:3000:2
: "${CC:=cc}" "${BUILD:=build}"
LC_ALL=C
export LC_ALL
out=$BUILD/bench
mkdir -p "$out"

. tests/torch.sh
[ -n "$python" ] || echo "bench: no PyTorch here (Debian: python3-torch), timing ours only"
$CC -O3 -march=native -I. -Iexamples tests/bench/mnist.c "$BUILD/lab.a" \
    -o "$out/mnist" -lm

# the last processor: the first one answers most interrupts
pin=
if command -v taskset >/dev/null 2>&1; then
    pin="taskset -c $(($(getconf _NPROCESSORS_ONLN) - 1))"
    if $pin nice -n -20 true 2>/dev/null; then pin="$pin nice -n -20"; fi
fi

product() { # command...: the GFLOP/s that it prints, the best of three calls
    for i in 1 2 3 4 5; do "$@" product; done | awk '$3 > best { best = $3 } END { print best }'
}
# shellcheck disable=SC2086
ours=$(product $pin "$out/mnist") theirs=
if [ -n "$python" ]; then
    # shellcheck disable=SC2086
    theirs=$(product $pin "$python" tests/bench/mnist.py) chosen=
    for type in ${OPENBLAS_CORETYPE:-SKYLAKEX HASWELL}; do
        # shellcheck disable=SC2086
        speed=$(OPENBLAS_CORETYPE=$type product $pin "$python" tests/bench/mnist.py)
        if awk "BEGIN { exit !($speed > 1.1 * $theirs) }"; then theirs=$speed chosen=$type; fi
    done
    [ -z "$chosen" ] || export OPENBLAS_CORETYPE="$chosen"
    echo "GFLOP/s of a product of two 512x512 matrices: PyTorch $theirs, ours $ours"
    if awk "BEGIN { exit !($theirs < $ours / 2) }"; then
        echo "bench: no comparison with PyTorch, whose BLAS is crippled here (Debian:" \
            "libopenblas0-pthread; OPENBLAS_CORETYPE names its kernels)" >&2
        exit 1
    fi
fi

log=$out/mnist.log
: >"$log"
round=1
while [ "$round" -le "$rounds" ]; do
    for setting in "$@"; do
        widths=${setting%%:*}
        numbers=$(echo "${setting#*:}" | tr : ' ') # batch, samples, epochs
        for norm in none batch layer; do
            # shellcheck disable=SC2086
            $pin "$out/mnist" "$data" $norm "$widths" $numbers "$round" >>"$log"
            # shellcheck disable=SC2086
            [ -z "$python" ] || $pin "$python" tests/bench/mnist.py "$data" $norm "$widths" \
                $numbers "$round" >>"$log"
        done
    done
    echo "round $round of $rounds done"
    round=$((round + 1))
done

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | sed -n 1p)
torch=
[ -z "$python" ] || torch="$("$python" -c 'import torch; print(torch.__version__)'), product \
$theirs GFLOP/s (ours $ours)"
awk -f tests/bench/mnist.awk -v csv="$out/mnist.csv" -v markdown="$out/mnist.md" \
    -v version="$(sed -n 's/^.define NRM_VERSION "\(.*\)"/\1/p' normlayers.h)" \
    -v compiler="$($CC --version | sed -n 1p)" -v cpu="${cpu:-unknown}" -v torch="$torch" \
    -v settings="$*" -v rounds="$rounds" "$log"
