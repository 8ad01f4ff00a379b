#!/bin/sh
# files.sh - files of named arrays between programs: float and double, processes that save and load
# the same file at once, zip tools, NumPy and PyTorch. The programs of docs/files.md are run in
# their order. What is not installed is skipped, and said to be.
set -u
cd "$(dirname "$0")/.." || exit 1
: "${CC:=cc}"
root=$PWD
. tests/checks.sh
flags="-std=c99 -O0 -ffp-contract=off -I$root -I$root/tests"

python=
for candidate in python3 /usr/bin/python3 /usr/local/bin/python3; do
    if "$candidate" -c 'import numpy' >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || echo "files: no python3 with numpy here"
torch=
if [ -n "$python" ] && "$python" -c 'import torch' >/dev/null 2>&1; then
    torch=yes
else
    echo "files: no torch here"
fi

# ---- the programs of the page -------------------------------------------------------------------

# Its blocks, numbered in their order: 01.c, 02.python, ...
split_page() {
    awk -v to="$dir" '
        /^```/ && open { open = 0; close(out); next }
        /^```(c|python)$/ { open = 1; out = sprintf("%s/%02d.%s", to, ++n, substr($0, 4)); next }
        /^```/ { open = 1; out = "/dev/null"; next }
        open { print > out }' docs/files.md
}
# A block without main is a function that returns 0 if all is well.
as_program() { # block, program
    if grep -q 'main *(' "$1"; then
        cp "$1" "$2"
        return
    fi
    {
        printf '#define NORMLAYERS_IMPLEMENTATION\n#include "normlayers.h"\n'
        printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n'
        cat "$1"
        sed -n 's/^int \([a-z_]*\)(void)$/int main(void)\n{\n    return \1();\n}/p' "$1"
    } >"$2"
}
run_c() { # block, program
    as_program "$1" "$2.c"
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
split_page
for option in "" -DNRM_DOUBLE; do
    blocks=0
    skipped=
    for block in "$dir"/[0-9][0-9].*; do
        blocks=$((blocks + 1))
        what="docs/files.md, block $(basename "$block") $option"
        case $block in
        *.c) [ -n "$skipped" ] || check "$what" run_c "$block" "$dir/block" ;;
        *)
            skipped=
            [ -n "$python" ] || skipped=yes
            if grep -q '^# wants: torch' "$block" && [ -z "$torch" ]; then skipped=yes; fi
            [ -n "$skipped" ] || check "$what" run_python "$block"
            ;;
        esac
    done
    check "docs/files.md has its programs" test $blocks -eq 6
done

# ---- copies -------------------------------------------------------------------------------------

# copy IN OUT: all arrays of a file into another, whatever they are.
cat >"$dir/copy.c" <<'END'
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    nrm_array_info *info;
    nrm_array *array;
    size_t count = 0, i, k;
    int rc = argc == 3 ? nrm_list(argv[1], NULL, &count, 0) : 1;
    if (rc != NRM_OK) return printf("list: %s\n", nrm_strerror(rc)), 1;
    info = (nrm_array_info *)calloc(count + 1, sizeof *info);
    array = (nrm_array *)calloc(count + 1, sizeof *array);
    if (info == NULL || array == NULL) return 2;
    rc = nrm_list(argv[1], info, &count, count);
    for (i = 0; i < count; i++) {
        size_t n = 8;
        array[i].name = info[i].name[0] != '\0' ? info[i].name : "a";
        array[i].type = info[i].type;
        array[i].dims = info[i].dims;
        memcpy(array[i].shape, info[i].shape, sizeof info[i].shape);
        for (k = 0; k < info[i].dims; k++) n *= info[i].shape[k];
        array[i].data = calloc(n + 1, 1);
        if (array[i].data == NULL) return 2;
    }
    if (rc == NRM_OK) rc = nrm_load(argv[1], array, count);
    if (rc != NRM_OK) return printf("load: %s\n", nrm_strerror(rc)), 1;
    rc = nrm_save(argv[2], array, count);
    if (rc != NRM_OK) return printf("save: %s\n", nrm_strerror(rc)), 1;
    return 0;
}
END
# shellcheck disable=SC2086
check "copy compiles" "$CC" $flags -DNRM_IMPLEMENTED "$dir/copy.c" "$dir/header.o" \
    -o "$dir/copy_f32" -lm
# shellcheck disable=SC2086
check "copy compiles for doubles" "$CC" $flags -DNRM_IMPLEMENTED -DNRM_DOUBLE "$dir/copy.c" \
    "$dir/header-DNRM_DOUBLE.o" -o "$dir/copy_f64" -lm

cat >"$dir/write.py" <<'END'
import sys
import numpy as np
rng = np.random.default_rng(19)
to = sys.argv[1]
arrays = {"scalar": np.float32(1.5), "pi": np.float64(np.pi), "none": np.zeros((0, 3), np.float32),
          "count": np.uint64(2**64 - 1), "signed": np.int64(2**63 - 1),
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
np.save(to + "/bad2.npy", np.ones(3, ">f4"))
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
real = np.dtype(sys.argv[1])
def load(path):
    a = np.load(path, allow_pickle=False)
    return dict(a) if hasattr(a, "files") else {"a": a}
def converted(a):
    return a.astype(real) if a.dtype.kind == "f" else a.astype(np.uint64)
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
    for bits in 32 64; do
        copy=$dir/copy_f$bits
        pairs=
        for file in "$dir"/many.npz "$dir"/empty.npz "$dir"/one?.npy; do
            name=$(basename "$file")
            to=$dir/copy$bits.$name
            check "$name in f$bits: read" "$copy" "$file" "$to.nrm"
            check "$name in f$bits: written for NumPy" "$copy" "$to.nrm" "$to.npz"
            pairs="$pairs $file $to.npz"
            case $name in
            *.npy)
                check "$name in f$bits: and as .npy" "$copy" "$file" "$to.npy"
                pairs="$pairs $file $to.npy"
                ;;
            esac
        done
        # shellcheck disable=SC2086
        check "NumPy finds the same in f$bits" "$python" "$dir/compare.py" f$((bits / 8)) $pairs
        for file in "$dir"/bad*; do
            check "$(basename "$file") is refused" fails "$copy" "$file" "$dir/refused.nrm"
        done
        check "and nothing written" test ! -e "$dir/refused.nrm"
    done
fi

# ---- float and double, one network --------------------------------------------------------------

# net save PATH: trains, saves, and saves what the network says of an example in PATH.said.
# net load PATH: loads; it has to say the same, to the rounding of a float.
cat >"$dir/net.c" <<'END'
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    nrm_real said[3];
    const nrm_array answer = {"said", NRM_REALS, said, 1, {3}};
    nrm_mlp *net = train(saves ? 9 : 0);
    char path[1000];
    int i, rc = saves ? nrm_mlp_save(net, argv[2]) : nrm_mlp_load(net, argv[2]);
    snprintf(path, sizeof path, "%s.said", argv[2]);
    if (rc == NRM_OK) rc = nrm_mlp_forward(net, x, 1, NRM_INFER);
    for (i = 0; i < 3; i++) said[i] = net->logits[i];
    if (rc == NRM_OK) rc = saves ? nrm_save(path, &answer, 1) : nrm_load(path, &answer, 1);
    if (rc != NRM_OK) return printf("%s\n", nrm_strerror(rc)), 1;
    for (i = 0; i < 3; i++)
        if (!(fabs((double)(said[i] - net->logits[i])) < 2e-6)) return printf("differs\n"), 1;
    return net->steps == 9 && net->state[0].running.batches == 9 ? 0 : 1;
}
END
for bits in 32 64; do
    define=
    [ $bits = 32 ] || define=-DNRM_DOUBLE
    # shellcheck disable=SC2086
    check "net compiles, f$bits" "$CC" $flags -DNRM_IMPLEMENTED $define "$dir/net.c" \
        "$dir/header$define.o" -o "$dir/net_f$bits" -lm
done
for ending in nrm npz; do
    for from in 32 64; do
        check "f$from saves" "$dir/net_f$from" save "$dir/n$from.$ending"
        for to in 32 64; do
            check "f$to loads f$from, $ending" "$dir/net_f$to" load "$dir/n$from.$ending"
        done
    done
done

# ---- zip tools ----------------------------------------------------------------------------------

if command -v unzip >/dev/null 2>&1; then
    check "unzip finds our archive good" unzip -tq "$dir/n32.npz"
else
    echo "files: no unzip here"
fi
if command -v zip >/dev/null 2>&1 && command -v unzip >/dev/null 2>&1; then
    mkdir "$dir/unpacked"
    check "unzip takes our archive apart" unzip -q "$dir/n32.npz" -d "$dir/unpacked"
    (cd "$dir/unpacked" && zip -q -0 ../zipped.npz ./*.npy && zip -q ../packed.npz ./*.npy)
    cp "$dir/n32.npz.said" "$dir/zipped.npz.said"
    check "what zip stores is read" "$dir/net_f32" load "$dir/zipped.npz"
    check "what zip compresses is not" fails "$dir/net_f32" load "$dir/packed.npz"
else
    echo "files: no zip here"
fi

# ---- many at once -------------------------------------------------------------------------------

# hammer PATH N: saves a large array of one number N times, each time another number.
# hammer PATH N read: loads it N times; all numbers have to be the same.
cat >"$dir/hammer.c" <<'END'
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <stdio.h>
#include <stdlib.h>

enum { NUMBERS = 20000 };
static nrm_real a[NUMBERS];

int main(int argc, char **argv)
{
    const int times = atoi(argv[2]);
    const nrm_array array = {"a", NRM_REALS, a, 1, {NUMBERS}};
    int i, k, rc = NRM_OK;
    for (k = 0; k < times && rc == NRM_OK; k++) {
        for (i = 0; argc == 3 && i < NUMBERS; i++) a[i] = (nrm_real)k;
        rc = argc == 3 ? nrm_save(argv[1], &array, 1) : nrm_load(argv[1], &array, 1);
        for (i = 1; i < NUMBERS; i++)
            if (a[i] != a[0]) return printf("a mixture\n"), 1;
    }
    if (rc != NRM_OK) printf("%s, after %d times\n", nrm_strerror(rc), k);
    return rc != NRM_OK;
}
END
hammer() {
    "$dir/hammer" "$dir/h.nrm" 40 & a=$!
    "$dir/hammer" "$dir/h.nrm" 40 & b=$!
    "$dir/hammer" "$dir/h.nrm" 200 read
    read_well=$?
    wait $a && wait $b && [ $read_well -eq 0 ]
}
# shellcheck disable=SC2086
check "hammer compiles" "$CC" $flags "$dir/hammer.c" -o "$dir/hammer" -lm
check "a first file" "$dir/hammer" "$dir/h.nrm" 1
check "two who save and one who loads" hammer
check "no temporary file is left" test -z "$(find "$dir" -name '*.tmp*')"

# ---- where rename does not replace --------------------------------------------------------------

# The branch for Windows, with a rename that behaves as it does there, and fails at a given call.
cat >"$dir/windows.c" <<'END'
#include <math.h>
#include <stdio.h>
#include <string.h>

static int renames, fail_at;
static int there(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f != NULL) fclose(f);
    return f != NULL;
}
static int stubborn(const char *from, const char *to)
{
    return ++renames == fail_at || there(to) ? -1 : rename(from, to);
}
#define rename stubborn
#ifndef _WIN32
#define _WIN32
#endif
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"

int main(void)
{
    for (fail_at = 0; fail_at <= 3; fail_at++) {
        nrm_real a = 1, b = 2;
        const nrm_array first = {"a", NRM_REALS, &a, 0, {0}}, second = {"a", NRM_REALS, &b, 0, {0}};
        int rc, old = fail_at == 2 || fail_at == 3; /* the first rename fails in any case */
        remove("w.nrm");
        renames = 100;
        if (nrm_save("w.nrm", &first, 1) != NRM_OK) return 1;
        renames = 0;
        rc = nrm_save("w.nrm", &second, 1);
        if (rc != (old ? NRM_EFILE : NRM_OK)) return 2;
        if (nrm_load("w.nrm", &first, 1) != NRM_OK || a != (old ? 1 : 2)) return 3;
    }
    return 0;
}
END
# shellcheck disable=SC2086
check "the Windows branch compiles" "$CC" $flags "$dir/windows.c" -o "$dir/windows" -lm
check "it replaces, or puts back" sh -c "cd '$dir' && ./windows"
check "and leaves nothing" test -z "$(find "$dir" -name 'w.nrm?*')"
verdict files
