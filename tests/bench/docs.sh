#!/bin/sh
# docs.sh - puts the results in BUILD/bench where the documentation shows them: pictures and table
# to docs/figures, the Markdown tables between their markers in docs/performance.md. Refuses a run
# that lacks cases or peers.
set -eu
cd "$(dirname "$0")/../.."
: "${BUILD:=build}"
results=$BUILD/bench
page=docs/performance.md

for contestant in ours pytorch onednn; do
    grep -q ",$contestant," "$results/layers.csv" || {
        echo "docs: $results/layers.csv has nothing of $contestant" >&2
        exit 1
    }
done
cases=$(grep -c ',limit,' "$results/layers.csv")
rounds=$(sed -n 's/^# rounds: //p' "$results/layers.csv")
if [ "$cases" -lt 100 ] || [ "$rounds" -lt 15 ]; then
    echo "docs: only $cases cases and $rounds rounds; make bench-docs without BENCH_FLAGS" >&2
    exit 1
fi

insert() { # name of the markers, file: replaces what stands between them
    grep -q "^<!-- $1 -->\$" "$page" && grep -q "^<!-- end of $1 -->\$" "$page" || {
        echo "docs: $page has no markers '$1'" >&2
        exit 1
    }
    awk -v name="$1" -v file="$2" '
        $0 == "<!-- end of " name " -->" { inside = 0; print "" }
        !inside { print }
        $0 == "<!-- " name " -->" {
            inside = 1
            print ""
            while ((getline line < file) > 0) print line
        }' "$page" >"$page.tmp"
    mv "$page.tmp" "$page"
}

insert "layers" "$results/layers.md"
insert "family" "$results/family.md"
insert "slower" "$results/slower.md"
cp "$results/layers.csv" docs/figures/bench_layers.csv
cp "$results/layers.png" docs/figures/bench_layers.png
cp "$results/layers_other.png" docs/figures/bench_layers_other.png
rounds=$(sed -n 's/^# rounds: //p' "$results/mnist.csv" 2>/dev/null || echo 0)
if grep -q pytorch "$results/mnist.csv" 2>/dev/null && [ "$rounds" -ge 3 ]; then
    insert "mnist" "$results/mnist.md"
    cp "$results/mnist.csv" docs/figures/bench_mnist.csv
else
    echo "docs: no three rounds of MNIST beside PyTorch in $results (make bench-mnist):" \
        "their table stays as it is"
fi
echo "docs: $page and docs/figures are up to date"
