#!/bin/sh
# files.sh - examples/npz.h between programs: float and double, processes that save and load the
# same file at once, zip tools, NumPy and PyTorch. What is not installed is said to be missing.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}"
. tests/checks.sh
root=$dir/project # the way there has no spaces
ln -s "$PWD" "$root"
flags="-std=c99 -O0 -ffp-contract=off -Wall -Wextra -I$root -I$root/examples -I$root/examples/uses"

python=
for candidate in python3 /usr/bin/python3 /usr/local/bin/python3; do
    if "$candidate" -c 'import numpy' >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || echo "files: missing: python3 with numpy"
torch=
if [ -n "$python" ] && "$python" -c 'import torch' >/dev/null 2>&1; then
    torch=yes
else
    echo "files: missing: torch"
fi

# ---- a network that is saved, read by NumPy, and what NumPy answers ------------------------------

run_c() { # source, program
    cp "$1" "$2.c"
    # shellcheck disable=SC2086
    "$CC" $flags $option -DNRM_IMPLEMENTED "$2.c" "$dir/header$option.o" -o "$2" -lm &&
        (cd "$dir" && "$2")
}
run_python() {
    (cd "$dir" && "$python" "$1")
}
# The functions of the header, once for each precision.
for option in "" -DNRM_DOUBLE; do
    # shellcheck disable=SC2086
    check "the header compiles $option" "$CC" $flags $option -DNORMLAYERS_IMPLEMENTATION -x c \
        -c "$root/normlayers.h" -o "$dir/header$option.o"
done
for option in "" -DNRM_DOUBLE; do
    check "a pause in training $option" run_c examples/uses/pause.c "$dir/pause"
    [ -n "$python" ] || continue
    check "NumPy reads the network $option" run_python "$root/tests/files/answer.py"
    check "and C what NumPy wrote $option" run_c tests/files/answer.c "$dir/answer"
done

# ---- copies -------------------------------------------------------------------------------------

# copy IN OUT: all arrays of a file into another; those that are no reals or integers are refused.
cat >"$dir/copy.c" <<'END'
#define NPZ_IMPLEMENTATION
#include "npz.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    npz_context context = {NULL, NULL, NULL, 0, 0, ""};
    npz_info *info;
    npz_array *array;
    size_t count = 0, i, k;
    int rc = argc == 3 ? npz_list(argv[1], NULL, &count, 0, &context) : 1;
    if (rc != NPZ_OK) return printf("list: %s\n", npz_strerror(rc)), 1;
    info = (npz_info *)calloc(count + 1, sizeof *info);
    array = (npz_array *)calloc(count + 1, sizeof *array);
    if (info == NULL || array == NULL) return 2;
    rc = npz_list(argv[1], info, &count, count, &context);
    for (i = 0; i < count; i++) {
        size_t n = 8;
        for (k = 0; k < info[i].dims && k < NPZ_DIMS; k++) n *= info[i].shape[k];
        array[i] = npz_make(info[i].name[0] != '\0' ? info[i].name : "a", info[i].type,
                            calloc(n + 1, 1), info[i].dims, 0, 0);
#ifdef WIDE
        if (info[i].type == NPZ_F32) array[i].type = NPZ_F64;
#endif
        memcpy(array[i].shape, info[i].shape, sizeof info[i].shape);
        if (array[i].data == NULL) return 2;
    }
    if (rc == NPZ_OK) rc = npz_load(argv[1], array, count, &context);
    if (rc != NPZ_OK) return printf("load: %s: %s\n", context.name, npz_strerror(rc)), 1;
    rc = npz_save(argv[2], array, count, &context);
    if (rc != NPZ_OK) return printf("save: %s: %s\n", context.name, npz_strerror(rc)), 1;
    return 0;
}
END
# shellcheck disable=SC2086
check "copy compiles" "$CC" $flags "$dir/copy.c" -o "$dir/copy"
# shellcheck disable=SC2086
check "copy compiles for doubles" "$CC" $flags -DWIDE "$dir/copy.c" -o "$dir/copy_wide"

cat >"$dir/write.py" <<'END'
import sys
import numpy as np
rng = np.random.default_rng(19)
to = sys.argv[1]
arrays = {"scalar": np.float32(1.5), "pi": np.float64(np.pi), "none": np.zeros((0, 3), np.float32),
          "count": np.uint64(2**64 - 1), "signed": np.int64(-2**63),
          "byte": np.array([-128, 127], np.int8), "dense/kernel:0": np.ones(3, ">f4"),
          "\u00e4 '\"": np.arange(5, dtype=np.uint16),
          "special": np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4e38], np.float32)}
for dims in range(1, 9):
    shape = rng.integers(1, 4, dims)
    arrays["f4.%d" % dims] = rng.standard_normal(shape).astype(np.float32)
    arrays["f8_%d" % dims] = rng.standard_normal(shape)
    arrays["u8-%d" % dims] = rng.integers(0, 2**64 - 1, shape, np.uint64)
arrays["large"] = rng.standard_normal(100003).astype(np.float32)
np.savez(to + "/many.npz", **arrays)
np.savez(to + "/empty.npz")
for i, name in enumerate(("scalar", "pi", "none", "count", "special", "f4.1", "f8_3", "u8-5")):
    np.save(to + "/one%d.npy" % i, arrays[name])
np.lib.format.write_array(open(to + "/one8.npy", "wb"), arrays["f8_2"], version=(2, 0))
np.lib.format.write_array(open(to + "/one9.npy", "wb"), arrays["f4.2"], version=(3, 0))
# what is refused
np.savez_compressed(to + "/bad0.npz", **arrays)
np.save(to + "/bad1.npy", np.asfortranarray(np.ones((2, 3), np.float32)))
np.savez(to + "/bad2.npz", a=np.ones(3), b=np.array(["text"]), c=np.array([True]))
np.save(to + "/bad3.npy", np.ones(3, np.float16))
np.save(to + "/bad4.npy", np.array([{}], dtype=object))
np.save(to + "/bad5.npy", np.zeros(3, [("a", "<f4")]))
with open(to + "/bad6.npy", "wb") as f:
    np.save(f, arrays["f4.1"])
    np.save(f, arrays["f4.1"])
END
cat >"$dir/compare.py" <<'END'
import sys
import numpy as np
wide = sys.argv[1] == "wide"
def load(path):
    a = np.load(path, allow_pickle=False)
    return dict(a) if hasattr(a, "files") else {"a": a}
def converted(a):
    return a.astype(np.float64 if wide and a.dtype.kind == "f" else a.dtype.newbyteorder("<"))
for first, second in zip(sys.argv[2::2], sys.argv[3::2]):
    old, new = load(first), load(second)
    assert list(old) == list(new), (first, list(old), list(new))
    for name in old:
        a, b = converted(old[name]), new[name]
        assert a.dtype == b.dtype and a.shape == b.shape, (first, name)
        assert a.tobytes() == b.tobytes(), (first, name)
END
fails() {
    ! "$@"
}
if [ -n "$python" ]; then
    check "NumPy writes" "$python" "$dir/write.py" "$dir"
    for kind in "" _wide; do
        copy=$dir/copy$kind
        pairs=
        for file in "$dir"/many.npz "$dir"/empty.npz "$dir"/one?.npy; do
            name=$(basename "$file")
            to=$dir/copied$kind.$name
            check "$name$kind: copied as .npz" "$copy" "$file" "$to.npz"
            pairs="$pairs $file $to.npz"
            case $name in
            *.npy)
                check "$name$kind: and as .npy" "$copy" "$file" "$to.npy"
                pairs="$pairs $file $to.npy"
                ;;
            esac
        done
        # shellcheck disable=SC2086
        check "NumPy finds the same$kind" "$python" "$dir/compare.py" "${kind#_}" $pairs
        for file in "$dir"/bad*; do
            check "$(basename "$file") is refused" fails "$copy" "$file" "$dir/refused.npz"
        done
        check "and nothing written" test ! -e "$dir/refused.npz"
    done
    check "compressed is called so" sh -c "'$dir/copy' '$dir/bad0.npz' x | grep -q compressed"
fi

# ---- float and double, one network --------------------------------------------------------------

# net save PATH: trains, and saves the network and what it says of an example.
# net load PATH: loads; it has to say the same, to the rounding of a float.
{
    sed '/^static nrm_mlp \*make_network/,$d' examples/uses/pause.c # its list of a network's arrays
    cat <<'END'
#include <math.h>

static const nrm_mlp_layer layer[2] = {{5, NRM_TANH, NRM_NOISY_BATCH_NORM, 0, 1},
                                       {3, NRM_IDENTITY, NRM_LAYER_NORM, 0, 1}};

static nrm_mlp *train(int steps)
{
    const nrm_real x[4][2] = {{0, 1}, {1, 0}, {1, 1}, {2, 3}};
    const int labels[4] = {0, 1, 2, 0};
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp *net = NULL;
    void *block;
    spec.inputs = 2;
    spec.layers = 2;
    spec.layer = layer;
    spec.max_batch = 4;
    spec.optimizer = NRM_ADAM;
    spec.lr = (nrm_real)0.01;
    block = malloc(nrm_mlp_bytes(&spec));
    if (block == NULL || nrm_mlp_init(&net, block, nrm_mlp_bytes(&spec), &spec) != NRM_OK) exit(2);
    while (steps-- > 0) nrm_mlp_train_step(net, NULL, x[0], labels, 4);
    return net;
}

int main(int argc, char **argv)
{
    const nrm_real x[2] = {1, 2};
    const int saves = argc == 3 && strcmp(argv[1], "save") == 0;
    nrm_mlp *net = train(saves ? 9 : 0);
    npz_context context = {NULL, NULL, NULL, 0, 0, ""};
    npz_array list[MOST];
    char name[MOST][32];
    nrm_real said[3] = {0, 0, 0};
    size_t n = arrays_of(list, name, net);
    int i, rc = NPZ_OK;
    list[n++] = npz_make("said", REAL, said, 1, 3, 0);
    if (!saves) rc = npz_load(argv[2], list, n, &context);
    if (rc == NPZ_OK && nrm_mlp_forward(net, x, 1, NRM_INFER) != NRM_OK) return 1;
    for (i = 0; i < 3 && saves; i++) said[i] = net->logits[i];
    if (saves) rc = npz_save(argv[2], list, n, &context);
    if (rc != NPZ_OK) return printf("%s: %s\n", context.name, npz_strerror(rc)), 1;
    for (i = 0; i < 3; i++)
        if (!(fabs((double)(said[i] - net->logits[i])) < 2e-6)) return printf("differs\n"), 1;
    return net->steps == 9 && net->state[0].running.batches == 9 ? 0 : 1;
}
END
} >"$dir/net.c"
for bits in 32 64; do
    define=
    [ $bits = 32 ] || define=-DNRM_DOUBLE
    # shellcheck disable=SC2086
    check "net compiles, f$bits" "$CC" $flags -DNRM_IMPLEMENTED $define "$dir/net.c" \
        "$dir/header$define.o" -o "$dir/net_f$bits" -lm
done
for from in 32 64; do
    check "f$from saves" "$dir/net_f$from" save "$dir/n$from.npz"
    for to in 32 64; do
        check "f$to loads f$from" "$dir/net_f$to" load "$dir/n$from.npz"
    done
done

# ---- a network from PyTorch ---------------------------------------------------------------------

[ -z "$torch" ] || check "PyTorch trains" "$python" examples/06_from_pytorch.py "$dir/torch.npz"
for option in "" -DNRM_DOUBLE; do
    # shellcheck disable=SC2086
    check "06_from_pytorch compiles $option" "$CC" $flags -DNRM_IMPLEMENTED $option \
        examples/06_from_pytorch.c "$dir/header$option.o" -o "$dir/pytorch" -lm
    check "and agrees with PyTorch $option" "$dir/pytorch"
    [ -z "$torch" ] || check "and when trained anew $option" "$dir/pytorch" "$dir/torch.npz"
done

# ---- zip tools ----------------------------------------------------------------------------------

if command -v unzip >/dev/null 2>&1; then
    check "unzip finds our archive good" unzip -tq "$dir/n32.npz"
else
    echo "files: missing: unzip"
fi
if command -v zip >/dev/null 2>&1 && command -v unzip >/dev/null 2>&1; then
    mkdir "$dir/unpacked"
    check "unzip takes our archive apart" unzip -q "$dir/n32.npz" -d "$dir/unpacked"
    (cd "$dir/unpacked" && zip -q -0 ../zipped.npz ./*.npy && zip -q ../packed.npz ./*.npy)
    check "what zip stores is read" "$dir/net_f32" load "$dir/zipped.npz"
    check "what zip compresses is not" fails "$dir/net_f32" load "$dir/packed.npz"
else
    echo "files: missing: zip"
fi

# ---- many at once -------------------------------------------------------------------------------

# hammer PATH N: saves a large array of one number N times, each time another number.
# hammer PATH N read: loads it N times; all numbers have to be the same.
cat >"$dir/hammer.c" <<'END'
#define NPZ_IMPLEMENTATION
#include "npz.h"
#include <stdio.h>
#include <stdlib.h>

enum { NUMBERS = 20000 };
static float a[NUMBERS];

int main(int argc, char **argv)
{
    const int times = atoi(argv[2]);
    npz_array array = npz_make("a", NPZ_F32, a, 1, NUMBERS, 0);
    int i, k, rc = NPZ_OK;
    for (k = 0; k < times && rc == NPZ_OK; k++) {
        for (i = 0; argc == 3 && i < NUMBERS; i++) a[i] = (float)k;
        rc = argc == 3 ? npz_save(argv[1], &array, 1, NULL) : npz_load(argv[1], &array, 1, NULL);
        for (i = 1; i < NUMBERS; i++)
            if (a[i] != a[0]) return printf("a mixture\n"), 1;
    }
    if (rc != NPZ_OK) printf("%s, after %d times\n", npz_strerror(rc), k);
    return rc != NPZ_OK;
}
END
hammer() {
    "$dir/hammer" "$dir/h.npz" 40 & a=$!
    "$dir/hammer" "$dir/h.npz" 40 & b=$!
    "$dir/hammer" "$dir/h.npz" 200 read
    read_well=$?
    wait $a && wait $b && [ $read_well -eq 0 ]
}
# shellcheck disable=SC2086
check "hammer compiles" "$CC" $flags "$dir/hammer.c" -o "$dir/hammer" -lm
check "a first file" "$dir/hammer" "$dir/h.npz" 1
check "two who save and one who loads" hammer
check "no temporary file is left" test -z "$(find "$dir" -name '*.tmp*')"

verdict files
