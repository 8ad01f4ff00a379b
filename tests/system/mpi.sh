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

ranks() { # ranks N FOLDER ARGUMENTS...: what it prints goes to FOLDER.out
    n=$1 folder=$2
    shift 2
    timeout 300 mpirun -np "$n" "$bin/mpi_batchnorm" --data synthetic --quick --out "$folder" \
        --runs "$folder/runs" "$@" >"$folder.out" 2>&1
    code=$?
    cat "$folder.out"
    return $code
}
bounds() { # bounds FOLDER ARM SERIES BOUND COUNT: as many numbers, all of them at most so large
    awk -F, -v row="$2,$3" -v bound="$4" -v count="$5" '
        $1 "," $2 == row {
            for (s = 4; s <= NF; s++) {
                n += split($s, value, " ")
                for (i in value) if (!(value[i] + 0 <= bound + 0)) bad = 1
            }
        }
        END { exit bad || n != count }' "$1/$name.csv"
}
undivided() { # the rows of the network that knows nothing of other workers
    grep '^[a-z]*,undivided/[la]' "$1/$name.csv"
}
refuses() { # refuses N: with so many ranks it says why in one line, and all end
    ! ranks "$1" "$dir/refused" &&
        [ "$(grep -c "^mpi_batchnorm: not with" "$dir/refused.out")" -eq 1 ]
}

check "the example compiles" make -s BUILD="$bin" CC="$CC" CFLAGS="${EXAMPLE_CFLAGS:--O2}" mpi
for n in 2 3; do
    check "$n ranks train" ranks $n "$dir/$n"
    check "$n ranks: it says that the digits are synthetic" grep -q synthetic "$dir/$n.out"
    check "$n ranks: so does its table" grep -q '^# data: synthetic' "$dir/$n/$name.csv"
    for arm in float double; do
        bound=1e-13 network=synchronised
        [ $arm = double ] || bound=1e-5
        check "$n ranks, $arm: a step is that of the undivided batch" \
            bounds "$dir/$n" $arm $network/first $bound 16
        check "$n ranks, $arm: so are those after it" bounds "$dir/$n" $arm $network/agreed $bound 2
        check "$n ranks, $arm: and the accuracies" \
            bounds "$dir/$n" $arm $network/other_accuracy 0 4
        for network in undivided synchronised separate; do
            check "$n ranks, $arm: all copies of $network are the same" \
                bounds "$dir/$n" $arm $network/other_copies 0 4
        done
        check "$n ranks, $arm: a separate step is not" sh -c \
            "! grep '^$arm,separate/first' '$dir/$n/$name.csv' | cut -d, -f4- |
                grep -qE '(^|[ ,])(0\.00[^ ]*|[0-9.]+e-)'"
    done
    check "$n ranks train again" ranks $n "$dir/again$n"
    for file in .csv _verdicts.csv .png; do
        check "$n ranks: $name$file is the same twice" \
            cmp "$dir/$n/$name$file" "$dir/again$n/$name$file"
    done
done
undivided "$dir/2" >"$dir/undivided2"
undivided "$dir/3" >"$dir/undivided3"
check "there are undivided networks" test "$(wc -l <"$dir/undivided2")" -eq 4
check "they do not depend on the number of workers" cmp "$dir/undivided2" "$dir/undivided3"
check "one rank has nothing to show" refuses 1
check "a part of one example is refused" refuses 4
check "one rank draws from a table" timeout 60 mpirun -np 1 "$bin/mpi_batchnorm" \
    --from "$dir/2/$name.csv" --out "$dir/from"
check "and the figure is the same" cmp "$dir/2/$name.png" "$dir/from/$name.png"
no_data() { # rank 0 has none: all end
    ! timeout 60 mpirun -np 2 "$bin/mpi_batchnorm" --data "$dir/none" --quick --out "$dir/lost" \
        >"$dir/why" 2>&1 && grep -q "^mpi_batchnorm: .*none" "$dir/why"
}
check "without data nobody waits" no_data
verdict mpi
