#!/bin/sh
# analyse.sh - Frama-C's Eva on every public function of normlayers.h, in its plain build. Eva
# follows all runs of the C at once and reports each place where one of them might step outside an
# array, read a number that nobody wrote, overflow an int, or divide one by zero.
#
#   analyse.sh            all functions, two at a time, and the planted faults
#   analyse.sh --sample   a few functions at small sizes, and one planted fault
#   analyse.sh --faults   the planted faults
#   analyse.sh NAME...    these functions
#   JOBS=2, VOLUME=8      so many at a time; arrays of at most so many numbers
#
# What a function is given stands in tests/analyse/*.c: all sizes from 0 to 6 whose product is at
# most VOLUME (recurrent layer and network: from 0 to 2; gradient checks: to 3; activations: to 9),
# with blocks of 4 numbers, so that their edges are among them; arrays of just that length, in which
# every bit is open, so NaN and infinities are among them; all modes; every array missing, alone and
# with another; and all sizes whose product is 2^68 or more (of two sizes: 2^64), which must be
# refused before any array is touched. Of the check itself, nrmi_check_sizes, it is shown from 2^62.
#
# What Eva cannot do: it says nothing of larger sizes, of the fast build (vectors, threads), of
# compilers and of results. An array's beginning it sees only through numbers nobody wrote, since an
# array ends where a variable ends. Whether an output overlaps another array it cannot decide, and
# follows both answers; in the recurrent layer and nrm_mlp_eval, which call other functions, only
# "no". In the recurrent layer eps and the running statistics are fixed. A network's arrays lie in
# one block: of these it knows the end of the block alone. Masks are four patterns.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
. tests/checks.sh
JOBS=${JOBS:-2}
VOLUME=${VOLUME:-8}
command -v frama-c >/dev/null || {
    echo "analyse: no frama-c here; 'make deps-dev' installs it"
    echo "analyse: 0 passed, 1 failed"
    exit 1
}

functions=$(grep -oE '^NRM_DEF.*' normlayers.h | grep -oE 'nrm_[a-z0-9_]+\(' | tr -d '(' | sort -u)
functions="$functions nrmi_check_sizes"
# What is analysed: a copy with smaller blocks, so that small sizes reach their edges, and
# for two functions without the answer "they overlap".
cat >"$dir/edit" <<'EOF'
s/^    NRMI_AT_ONCE = 4096,/    NRMI_AT_ONCE = 4,/
s/^    NRMI_BAND_NUMBERS = 16384,/    NRMI_BAND_NUMBERS = 8,/
s/^    NRMI_ONE_SWEEP = 4096,/    NRMI_ONE_SWEEP = 4,/
s/^            if (p < q + arg\[j\].bytes/            if (!APART \&\& p < q + arg[j].bytes/
EOF
sed -f "$dir/edit" normlayers.h >"$dir/normlayers.h"
check "the copy differs in four places" \
    test "$(diff normlayers.h "$dir/normlayers.h" | grep -c '^>')" = 4

# The file with the harness of function $1.
harness() {
    grep -lE "^ANALYSE\(${1#nrm_}[,)]|^void analyse_$1\(" tests/analyse/*.c
}

# eva FUNCTION HEADER_FOLDER LOG: prints function, alarms, seconds; true if there is no alarm
eva() {
    file=$(harness "$1")
    options="-eva-auto-loop-unroll 400 -eva-min-loop-unroll 40"
    returns=nrmi_check_labels:0
    apart=0
    case $file in
    */mlp.c)
        returns=nrmi_check_labels:0,nrmi_check_spec:0,nrm_mlp_init:0,network:0
        options="-absolute-valid-range 0x10000-0x13fff -eva-slevel 5 -eva-auto-loop-unroll 400
        -eva-slevel-function nrm_rng_normal:30,nrmi_log:0
        -eva-slevel-function nrmi_mlp_forward:200,nrmi_mlp_backward:200" ;;
    */network.c) options="$options -eva-slevel 20" ;;
    */tools.c) options="-eva-auto-loop-unroll 400" ;;
    esac
    case $1 in
    nrm_rnn_*)
        apart=1
        options="-eva-auto-loop-unroll 400 -eva-min-loop-unroll 40
        -eva-slevel-function nrmi_check_rnn:50"
        ;;
    nrm_mlp_eval) apart=1 ;;
    nrm_noisy_batchnorm_forward) options="-eva-auto-loop-unroll 400 -eva-slevel 20
        -eva-slevel-function nrm_rng_normal:30,nrmi_log:0"
        returns=nrm_batchnorm_forward:full ;;
    nrm_rng_normal) options="$options -eva-slevel-function nrm_rng_normal:100" ;;
    esac
    begun=$(date +%s)
    # The folder of the header: Frama-C looks into the present one first.
    # shellcheck disable=SC2086
    (cd "$2" && timeout 900 frama-c -eva -main "analyse_$1" -warn-special-float none \
        -eva-no-show-progress -eva-no-results -eva-split-return-function "$returns" $options \
        -cpp-extra-args="-U__GNUC__ -I. -DVOLUME=$VOLUME -DBLOCK_END=0x14000 -DAPART=$apart" \
        "$root/$file") \
        >"$3" 2>&1
    done=$?
    alarms=$(sed -n 's/^  \([0-9]*\) alarms\{0,1\} generated.*/\1/p' "$3")
    open=$(grep -cE "(assertion 'refused'|precondition.*) got status (unknown|invalid)" "$3")
    [ "$done" = 0 ] || alarms="none to be had (frama-c: $done)"
    printf '%-30s sizes to volume %s, alarms: %s, not shown: %s, %d s\n' "$1" "$VOLUME" \
        "${alarms:-?}" "$open" $(($(date +%s) - begun))
    [ "${alarms:-1}" = 0 ] && [ "$open" = 0 ] && return 0
    grep -A3 -E 'eva:alarm|User Error|got status (unknown|invalid)' "$3" | head -n 12
    return 1
}

if [ "${1:-}" = --one ]; then # for xargs
    eva "$2" "$3" "$4/$2.log" >"$4/$2.out" && echo ok >"$4/$2.ok"
    cat "$4/$2.out"
    exit 0
fi

wanted=${*:-$functions}
if [ "${1:-}" = --sample ]; then
    wanted="nrm_layernorm_forward nrm_layernorm_backward nrm_rmsnorm_backward nrm_linear_forward
        nrm_cross_entropy_forward nrm_rng_shuffle"
    VOLUME=4
fi
[ "${1:-}" = --faults ] && wanted=
export JOBS VOLUME
for f in $functions; do
    check "$f has one harness" test "$(harness "$f" | wc -l)" = 1
done
mkdir "$dir/logs"
# shellcheck disable=SC2086
printf '%s\n' $wanted | xargs -r -P "$JOBS" -I{} \
    sh tests/analyse/analyse.sh --one {} "$dir" "$dir/logs"
for f in $wanted; do
    check "$f: no alarm" test -f "$dir/logs/$f.ok"
done

# planted NAME FUNCTION SED: Eva finds this fault
planted() {
    mkdir -p "$dir/$1"
    sed "$3" "$dir/normlayers.h" >"$dir/$1/normlayers.h"
    cmp -s "$dir/normlayers.h" "$dir/$1/normlayers.h" && return 1
    VOLUME=2
    eva "$2" "$dir/$1" "$dir/$1/log" && return 1
    grep -qE '^  [1-9][0-9]* alarms? generated' "$dir/$1/log"
}
case ${1:---faults} in --faults | --sample)
    check "planted: one row too many" planted rows nrm_layernorm_forward \
        's/for (j = 0; j < w \* v->length; j++) {/for (j = 0; j <= w * v->length; j++) {/'
    ;;
esac
if [ "${1:---faults}" = --faults ]; then
    check "planted: an unchecked product" planted product nrm_linear_forward \
        's/int rc = nrmi_check_linear(N, in, out);/int rc = NRM_OK;/'
    check "planted: a sum without a beginning" planted start nrm_layernorm_forward \
        's/nrm_acc offset = 0, squares = 0;/nrm_acc offset = 0, squares;/'
    check "planted: one label unchecked" planted labels nrm_cross_entropy_forward \
        's/(size_t)labels\[n\] >= C) return/(size_t)labels[n] > C) return/'
fi
verdict analyse
