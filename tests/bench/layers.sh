#!/bin/sh
# layers.sh - builds the micro-benchmark of all layers and runs it.
#
#   layers.sh [OPTIONS OF layers.c]
#
# Environment: CC, CXX, BUILD; PEERS=1 adds the libraries that are installed: PyTorch (Debian:
# libtorch-dev) and oneDNN (libdnnl-dev). Without them nothing but a C compiler is needed.
set -eu
cd "$(dirname "$0")/../.."
: "${CC:=cc}" "${CXX:=c++}" "${BUILD:=build}" "${PEERS:=0}"
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
OMP_NUM_THREADS=1 exec "$out/layers" --out "$out" "$@"
