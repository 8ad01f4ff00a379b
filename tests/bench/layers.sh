#!/bin/sh
# layers.sh - builds the micro-benchmark of all layers and runs it.
#
#   layers.sh [OPTIONS OF layers.c]
#
# The results go to BUILD/bench, or where --out says: layers.csv, layers.md, family.md (the newer
# norms), slower.md (where the header is beaten), and the pictures layers.png (batch and layer norm)
# and layers_other.png where stb_image_write.h is installed.
#
# Environment: CC, CXX, BUILD, STB_CFLAGS; PEERS=1 adds the libraries that are installed: PyTorch
# (Debian: libtorch-dev) and oneDNN (libdnnl-dev). Without them only a C compiler is needed.
set -eu
cd "$(dirname "$0")/../.."
: "${CC:=cc}" "${CXX:=c++}" "${BUILD:=build}" "${PEERS:=0}"
: "${STB_CFLAGS=-isystem /usr/include/stb}"
out=$BUILD/bench
mkdir -p "$out/objects"
objects=

compile() { # object, source, compiler, flags...
    object=$out/objects/$1.o
    source=tests/bench/$2
    shift 2
    "$@" -I. -Iexamples -Itests/bench -c "$source" -o "$object"
    objects="$objects $object"
}

ours() { # name of the contestant, of the object, flags...
    name=$1 object_name=$2
    shift 2
    compile "ours_$object_name" ours.c "$CC" "$@" "-DBENCH_OURS=bench_ours_$object_name" \
        "-DBENCH_OURS_NAME=\"$name\"" "-DBENCH_OURS_FLAGS=\"$*\""
}

has() { # header, language, compiler, flags...
    header=$1 language=$2
    shift 2
    echo "#include <$header>" | "$@" -x "$language" -fsyntax-only - 2>/dev/null
}

compile limit limit.c "$CC" -O3 -march=native
ours ours native -O3 -march=native
ours ours-O3 O3 -O3
ours ours-O2 O2 -O2
compile plain plain.c "$CC" -O3 -march=native
compile ggml_way ggml_way.c "$CC" -O3 -march=native
compile reference reference.c "$CC" -O1 -ffp-contract=off
compile machine machine.c "$CC" -O2

peers=
libraries=
link=$CC
if [ "$PEERS" = 1 ]; then
    torch=/usr/include/torch/csrc/api/include
    if has ATen/ATen.h c++ "$CXX" -std=c++17 -isystem "$torch"; then
        compile torch peer_torch.cpp "$CXX" -std=c++17 -O2 -isystem "$torch"
        peers="$peers -DBENCH_TORCH"
        libraries="$libraries -ltorch_cpu -ltorch -lc10"
        link=$CXX
    else
        echo "bench: no PyTorch for C++ here (Debian: libtorch-dev), left out"
    fi
    if has oneapi/dnnl/dnnl.h c "$CC"; then
        compile onednn peer_onednn.c "$CC" -O2
        peers="$peers -DBENCH_ONEDNN"
        libraries="$libraries -ldnnl"
    else
        echo "bench: no oneDNN here (Debian: libdnnl-dev), left out"
    fi
fi
# shellcheck disable=SC2086
compile layers layers.c "$CC" -O2 $peers "-DBUILD_FLAGS=\"as said of each contestant\""
# shellcheck disable=SC2086
$link $objects -o "$out/layers" $libraries -lm

results=$out
last=
for argument in "$@"; do
    [ "$last" != --out ] || results=$argument
    case $argument in --out=*) results=${argument#--out=} ;; esac
    last=$argument
done
OMP_NUM_THREADS=1 "$out/layers" --out "$out" "$@"
case " $* " in *" --help "*) exit 0 ;; esac
LC_ALL=C awk -v tables="batchnorm layernorm other" -f tests/bench/layers.awk \
    "$results/layers.csv" >"$results/layers.md"
LC_ALL=C awk -v tables=family -f tests/bench/layers.awk "$results/layers.csv" >"$results/family.md"
LC_ALL=C awk -v tables=slower -f tests/bench/layers.awk "$results/layers.csv" >"$results/slower.md"

# shellcheck disable=SC2086
if ! has stb_image_write.h c "$CC" $STB_CFLAGS; then
    echo "bench: no picture, for there is no stb_image_write.h here (make deps)"
    exit 0
fi
objects=
compile picture picture.c "$CC" -O1
for module in plot/plot plot/stroke_font plot/stb_image_write lab/csv lab/files; do
    # shellcheck disable=SC2086
    compile "${module#*/}" "../../examples/$module.c" "$CC" -O1 $STB_CFLAGS
done
# shellcheck disable=SC2086
$CC $objects -o "$out/picture" -lm
"$out/picture" "$results/layers.csv" "$results/layers.png" "$results/layers_other.png"
echo "bench: pictures and tables are in $results"
