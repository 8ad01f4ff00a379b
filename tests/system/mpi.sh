#!/bin/sh
# mpi.sh - the example with several workers (examples/mpi_batchnorm.c), on 2 and 3 ranks of one
# machine: a step with merged statistics is that of the undivided batch, a step without is not, and
# the same run gives the same tables.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}" "${BUILD:=build}"
unset MNIST_DIR
[ ! -d /usr/lib64/openmpi/bin ] || PATH=$PATH:/usr/lib64/openmpi/bin # Fedora's is not on the path
for tool in mpicc mpirun; do
    if ! command -v $tool >/dev/null 2>&1; then
        echo "mpi: missing: $tool (\`make deps-dev\` installs it), nothing is checked"
        echo "mpi: 0 passed, 0 failed"
        exit 0
    fi
done
. tests/checks.sh
bin=$BUILD/mpi
name=mpi_batchnorm_quick # of a quick run's files

# Open MPI, by default, wants neither root nor more ranks than cores; others do not look at these.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe # the same for Open MPI 5
OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe \
    PRTE_MCA_rmaps_default_mapping_policy OMPI_MCA_mpi_yield_when_idle \
    OMPI_MCA_btl_vader_single_copy_mechanism

ranks() { # ranks N ARGUMENTS...
    n=$1
    shift
    timeout 300 mpirun -np "$n" "$bin/mpi_batchnorm" --data synthetic "$@"
}
quick() { # quick N FOLDER: what it prints goes to FOLDER.out
    ranks "$1" --quick --out "$2" >"$2.out" 2>"$2.err"
    code=$?
    cat "$2.out" "$2.err"
    return $code
}
refuses() { # refuses TEXT N ARGUMENTS...: code 2, and one line that says why
    text=$1
    shift
    ranks "$@" >"$dir/refused" 2>&1
    [ $? -eq 2 ] && [ "$(grep -c "^mpi_batchnorm: .*$text" "$dir/refused")" -eq 1 ]
}
bounds() { # bounds FOLDER EXPRESSION: true of $2 float, $3 double, $4 separate, in every row
    [ "$(grep -vc '^#' "$1/${name}_first.csv")" -eq 9 ] &&
        grep -v '^#' "$1/${name}_first.csv" | sed 1d |
        awk -F, "{ print } !($2) { bad = 1 } END { exit bad }"
}
undivided() { # the rows of the network that knows nothing of other workers
    grep '^[a-z]*,undivided,' "$1/$name.csv"
}

check "the example compiles" make -s BUILD="$bin" CC="$CC" CFLAGS="${EXAMPLE_CFLAGS:--O2}" mpi
for n in 2 3; do
    check "$n ranks train" quick $n "$dir/$n"
    check "$n ranks: it says that the digits are synthetic" grep -q synthetic "$dir/$n.err"
    check "$n ranks: so does its table" grep -q '^# data: synthetic' "$dir/$n/$name.csv"
    # shellcheck disable=SC2016
    {
        check "$n ranks: synchronised is undivided, in double" bounds "$dir/$n" '$3 <= 1e-13'
        check "$n ranks: synchronised is undivided, in float" bounds "$dir/$n" '$2 <= 1e-5'
        check "$n ranks: separate is not" bounds "$dir/$n" '$1 == "loss" || $4 > 0.01'
    }
    for claim in "One step is that of the undivided batch" "All copies of a network stay the same" \
        "What parts them later is rounding"; do
        check "$n ranks: $claim" grep -q "^$claim: holds" "$dir/$n.out"
    done
    check "$n ranks train again" quick $n "$dir/again$n"
    for file in .csv _loss.csv _drift.csv _first.csv .png; do
        check "$n ranks: $name$file is the same twice" \
            cmp "$dir/$n/$name$file" "$dir/again$n/$name$file"
    done
done
check "the parts are uneven" grep -q "with 2 4 6 of every 12, and 2 2 0 of the last" "$dir/3.out"
undivided "$dir/2" >"$dir/undivided2"
undivided "$dir/3" >"$dir/undivided3"
check "there are undivided networks" test "$(wc -l <"$dir/undivided2")" -eq 8
check "they do not depend on the number of workers" cmp "$dir/undivided2" "$dir/undivided3"
check "one rank has nothing to show" refuses "one worker alone" 1 --quick
check "a part of one example is refused" refuses "one example" 3 --quick --batch 10
check "too large a batch is refused" refuses "less than 20 steps" 2 --quick --batch 500
check "a batch that divides the images" refuses "less than 20 steps" 2 --quick --batch 250
check "one that leaves no short batch" sh -c "timeout 300 mpirun -np 2 '$bin/mpi_batchnorm' \
    --data synthetic --quick --batch 20 --epochs 1 --seeds 1 --quiet --out '$dir/whole'"
no_data() { # the second worker has none: all end at once, and the first says why
    timeout 60 mpirun -np 1 "$bin/mpi_batchnorm" --data synthetic --quick --out "$dir/lost" : \
        -np 1 "$bin/mpi_batchnorm" --data "$dir/none" --quick --out "$dir/lost" >"$dir/why" 2>&1
    [ $? -eq 1 ] && grep -q '^mpi_batchnorm: worker 1: ' "$dir/why"
}
check "a worker without data is named" no_data
verdict mpi
