#!/bin/sh
# parity.sh - every layer beside PyTorch's, on random data of larger shapes.
#
# PyTorch answers the cases of parity.py in float64; test_golden.c, built for float and for double,
# answers them too and compares: 2e-6 of the largest entry in float, 1e-12 in double; for networks
# in training in float what drift() in layers.py measures. The tables have a line for each case,
# with the largest error, the array that has it, and the drift. Without PyTorch nothing is compared,
# which is said, and no failure.
#
# Environment: CC, BUILD (folder for what is built), SEED (of the data; default 1).
set -eu
cd "$(dirname "$0")/../.."
: "${CC:=cc}" "${BUILD:=build}" "${SEED:=1}"
LC_ALL=C
export LC_ALL
out=$BUILD/parity

. tests/torch.sh
if [ -z "$python" ]; then
    echo "parity: missing: PyTorch (\`make deps-dev\` installs it), nothing is compared"
    echo "parity: 0 passed, 0 failed"
    exit 0
fi

rm -rf "$out"
mkdir -p "$out"
"$python" -B tests/parity/parity.py "$out" "$SEED"
passed=0
failed=0
count() { # what a log's last line, "NAME: N passed, N failed", says
    cat "$out/$2.log"
    line=$(tail -n 1 "$out/$2.log")
    case $line in
    "$1: "*" passed, "*" failed") ;;
    *) line="$1: 0 passed, 1 failed" ;;
    esac
    line=${line#*: }
    passed=$((passed + ${line%% passed*}))
    line=${line##*passed, }
    failed=$((failed + ${line%% failed*}))
}
for real in float double; do
    # shellcheck disable=SC2046
    $CC -std=c99 -O2 -ffp-contract=off -Wall -Wextra -I. -Itests \
        $([ $real = float ] || echo -DNRM_DOUBLE) tests/layers/test_golden.c -o "$out/$real" -lm
    echo "== $real, seed $SEED"
    "$out/$real" -v "$out"/*.txt >"$out/$real.log" || true
    count golden "$real"
done
rm -f "$out"/*.txt # tens of megabytes
# The same library by way of docs/api.json.
for real in "" double; do
    name=normlayers${real:+_f64}
    $CC -shared -fPIC -std=c99 -O2 -ffp-contract=off ${real:+-DNRM_DOUBLE} \
        -DNORMLAYERS_IMPLEMENTATION -x c normlayers.h -o "$out/lib$name.so" -lm
    # shellcheck disable=SC2086
    "$python" -B tests/bindings/generate.py python $real <docs/api.json >"$out/$name.py"
done
"$python" -B tests/parity/bindings.py "$out" >"$out/bindings.log" 2>&1 || true
count bindings bindings
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
