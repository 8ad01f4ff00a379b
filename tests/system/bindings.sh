#!/bin/sh
# bindings.sh - docs/api.json is enough to call the library: the module that generate.py makes for
# Python knows every struct's size, and the one for Rust computes a layer norm.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}" "${BUILD:=build}"
. tests/checks.sh
if ! command -v python3 >/dev/null 2>&1; then
    echo "bindings: missing: python3 (\`make deps-dev\` installs it), nothing is generated"
    echo "bindings: 0 passed, 0 failed"
    exit 0
fi
out=$BUILD/bindings
check "make bindings" make -s BUILD="$out" CC="$CC" CFLAGS=-O1 bindings
{
    printf '#include "normlayers.h"\n#include <stdio.h>\nint main(void)\n{\n'
    sed -n 's/^ *{"name": "\(nrm_[a-z_]*\)", "fields".*/printf("\1 %d\\n", (int)sizeof(\1));/p' \
        docs/api.json
    printf 'return 0;\n}\n'
} >"$dir/sizes.c"
cat >"$dir/sizes.py" <<'END'
import ctypes, sys
sys.path.insert(0, sys.argv[1])
import normlayers
lib = normlayers.load(sys.argv[1] + "/libnormlayers.so")
assert abs(lib.nrm_mlp_defaults().beta2 - 0.999) < 1e-6
assert lib.nrm_strerror(normlayers.NRM_OK) == b"success"
for name, kind in vars(normlayers).items():
    if isinstance(kind, type(ctypes.Structure)): print(name, ctypes.sizeof(kind))
END
check "sizes in C" sh -c "$CC -I. '$dir/sizes.c' -o '$dir/sizes' && '$dir/sizes' >'$dir/in_c'"
check "sizes in Python" sh -c "python3 -B '$dir/sizes.py' '$out' >'$dir/in_python'"
check "they are the same" diff "$dir/in_c" "$dir/in_python"
rustc=/usr/bin/rustc
[ -x $rustc ] || rustc=rustc
if command -v $rustc >/dev/null 2>&1; then
    cp "$out/normlayers.rs" examples/uses/layer_norm.rs "$dir"
    # libgcc has what tells the processor's instruction sets, and Rust links only its shared half
    check "Rust compiles" $rustc --edition 2021 -D warnings -C link-arg="$out/normlayers_pic.o" \
        -C link-arg=-lm -C link-arg=-lgcc "$dir/layer_norm.rs" -o "$dir/layer_norm"
    check "Rust runs" sh -c "'$dir/layer_norm' | diff tests/expected/uses/layer_norm.txt -"
else
    echo "bindings: missing: rustc (\`make deps-dev\` installs it), no program in Rust"
fi
verdict bindings
