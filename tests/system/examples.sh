#!/bin/sh
# examples.sh - every short example runs, says what data it drew, refuses a wrong command line, and
# gives the same table twice; the quick MNIST comparison gives the very numbers that are on file,
# whatever compiler, optimisation and machine this is. experiments.sh has the others.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}" "${BUILD:=build}" "${STB_CFLAGS:=}"
unset MNIST_DIR
bin=$BUILD/examples
. tests/checks.sh
exits() { # exits CODE COMMAND...
    code=$1
    shift
    "$@"
    [ $? -eq "$code" ]
}
one_line() { # the command prints exactly one line on stderr
    [ "$("$@" 2>&1 >/dev/null | wc -l)" -eq 1 ]
}
refuses() { # PROGRAM OPTIONS...: at once, in one line, with a code that says so
    program=$1
    shift
    "$bin/$program" "$@" 2>"$dir/said" >/dev/null
    case $? in 1 | 2) [ "$(grep -vc synthetic "$dir/said")" -eq 1 ] ;; *) false ;; esac
}
table() { # a table without the lines that say how it was made
    grep -v '^#' "$1"
}

picture_table() { # the table that a picture shows: its own, or that of its experiment
    case $1 in
    10_*) echo 10_mnist_norms_quick ;;
    *) echo "$1" ;;
    esac
}

check "the examples compile" make -s BUILD="$bin" CC="$CC" CFLAGS="${EXAMPLE_CFLAGS:--O1}" examples
programs=$(cd examples && echo 0*.c 10_*.c | sed 's/\.c//g')
for program in $programs; do
    case $program in
    01_*)
        check "$program prints" "$bin/$program"
        continue
        ;;
    06_*)
        check "$program prints" "$bin/$program"
        check "$program says that it has no file" exits 1 "$bin/$program" "$dir/none"
        check "$program does so in one line" one_line "$bin/$program" "$dir/none"
        continue
        ;;
    esac
    data='--data synthetic'
    case $program in
    02_* | 03_* | 05_*) data= ;;
    10_*) data="$data --runs $dir/runs" ;;
    esac
    # shellcheck disable=SC2086
    check "$program draws" "$bin/$program" --quick $data --out "$dir/a"
    case $program in
    10_*) ;; # its numbers are compared with those on file
    *)
        # shellcheck disable=SC2086
        check "$program draws again" "$bin/$program" --quick $data --out "$dir/b"
        ;;
    esac
    check "$program has help" "$bin/$program" --help
    : >"$dir/file"
    for out in "$dir/file" "$dir/file/deeper"; do
        # shellcheck disable=SC2086
        check "$program refuses a folder that is none" refuses "$program" $data --out "$out"
    done
    check "$program refuses an unknown option" exits 2 "$bin/$program" --no-such-option
    check "$program does so in one line" one_line "$bin/$program" --no-such-option
done
# Whatever is wrong is said before any work, and a quick run never takes the place of a full one.
for wrong in "--epochs 2000" "--epochs 0" "--seeds 21" "--batch 1" "--batch 401" "--batch 399"; do
    # shellcheck disable=SC2086
    check "03_spiral refuses $wrong" refuses 03_spiral $wrong --out "$dir/none"
done
check "10_mnist_norms refuses --seeds 1001" refuses 10_mnist_norms --seeds 1001 --out "$dir/none"
check "10_mnist_norms refuses --threads 257" refuses 10_mnist_norms --threads 257 --out "$dir/none"
for program in 03_spiral 10_mnist_norms; do
    check "a quick $program keeps off the full one" test ! -f "$dir/a/$program.csv"
    check "its table says that it is quick" grep -q '^# mode: quick' "$dir/a/${program}_quick.csv"
done
check "10_mnist_norms has a plan" sh -c \
    "$bin/10_mnist_norms --plan --out '$dir/none' | grep -qE '^10_[^ ]* [0-9]+ runs, .* s to do'"
check "a plan makes nothing" test ! -d "$dir/none"
for png in "$dir"/a/*.png; do
    name=$(basename "$png" .png)
    check "$name.png has its table" test -s "$dir/a/$(picture_table "$name").csv"
    case $name in 10_*) continue ;; esac
    check "$name.csv is the same twice" cmp "$dir/a/$name.csv" "$dir/b/$name.csv"
    check "$name.png is the same twice" cmp "$png" "$dir/b/$name.png"
done
for name in 04_digits 10_mnist_norms_quick 10_mnist_norms_quick_verdicts; do
    check "$name.csv says that the digits are synthetic" \
        grep -q '^# data: synthetic digits' "$dir/a/$name.csv"
done
# from a folder without data/mnist, which this one may have
check "the comparison says so too" sh -c "bin=\$(cd '$bin' && pwd) && cd '$dir' && \
    \$bin/10_mnist_norms --quick --out c --runs runs --seeds 1 2>&1 | grep -qi synthetic"
check "a folder without MNIST is an error" exits 1 "$bin/10_mnist_norms" --data "$dir" --out "$dir"
table "$dir/a/10_mnist_norms_quick.csv" |
    grep -E '^arm|,(epoch_loss|window_loss|test_loss|accuracy),' >"$dir/accuracy.csv"
check "the comparison's numbers are the ones on file" \
    cmp "$dir/accuracy.csv" tests/expected/10_mnist_norms_quick.csv
check "34_tuned_mnist draws its table on file" "$bin/34_tuned_mnist" --out "$dir/t" \
    --from examples/experiments/34_tuned_mnist/34_tuned_mnist.csv
# Its seconds come from a table of their own, which it looks for below the current folder.
tuned=examples/experiments/34_tuned_mnist/34_tuned_mnist
mkdir -p "$dir/${tuned%/*}"
no_seconds() { # its table is not drawn from $dir, and one line says which file is at fault
    ! (root=$(pwd) program=$(cd "$bin" && pwd)/34_tuned_mnist && cd "$dir" &&
        "$program" --from "$root/$tuned.csv" --out t) 2>"$dir/said" >/dev/null &&
        [ "$(wc -l <"$dir/said")" -eq 1 ] && grep -q "$tuned"_seconds.csv "$dir/said"
}
check "34_tuned_mnist refuses to do without seconds" no_seconds
for edit in '/^rms,/d' 's/^rms,.*/rms,soon/' 's/^rms,/rms,-/' 's/^rms,/l1,/' 's/_per_step//'; do
    sed "$edit" "${tuned}_seconds.csv" >"$dir/${tuned}_seconds.csv"
    check "34_tuned_mnist refuses seconds after $edit" no_seconds
done
# One program for each use; what they print is on file.
uses() { # NAME COMMAND...
    name=$1
    shift
    "$@" >"$dir/$name.txt" && diff "tests/expected/uses/$name.txt" "$dir/$name.txt"
}
used=
for source in examples/uses/*.c examples/uses/*.cpp; do
    case $source in *.cpp)
        if ! command -v "${CXX:=g++}" >/dev/null 2>&1; then
            echo "examples: missing: $CXX, $source is not compiled"
            continue
        fi
        ;;
    esac
    name=$(basename "${source%.c*}")
    used="$used $bin/uses/$name"
done
# shellcheck disable=SC2086
check "the programs for each use compile" make -s BUILD="$bin" CC="$CC" CXX="${CXX:-g++}" \
    CFLAGS="${EXAMPLE_CFLAGS:--O0} -Werror" $used
for program in $used; do
    name=${program##*/}
    check "$name prints what is on file" uses "$name" "$program" "$dir"
done
python=/usr/bin/python3
$python -c 'import numpy, matplotlib' 2>/dev/null || python=python3
if $python -c 'import numpy, matplotlib' 2>/dev/null; then
    check "NumPy has the same logits" uses weights_from_c $python examples/uses/weights_from_c.py \
        "$dir"
    check "Matplotlib draws the losses" env MPLBACKEND=Agg $python examples/uses/plot_csv.py \
        "$dir/losses.csv" "$dir/losses.png"
    check "and that is a figure" test -s "$dir/losses.png"
else
    echo "examples: missing: NumPy or Matplotlib (\`make deps-dev\` installs them)"
fi
verdict examples
