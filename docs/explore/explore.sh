#!/bin/sh
# explore.sh - the explorable page: compiles the header to WebAssembly and to a native program, the
# fingerprint of which the page must reach, and puts it all into BUILD/explore/explore.html.
#
#   explore.sh          builds it
#   explore.sh check    and tests it in Node and in Chromium
#
# Needs clang with wasm-ld (lld) and Node; the check Chromium too.
set -eu
cd "$(dirname "$0")/../.."
out=${BUILD:-build}/explore
: "${CC:=cc}" "${WASM_CC:=clang}"
here=docs/explore
mkdir -p "$out"
if ! command -v wasm-ld >/dev/null; then
    echo "explore: no wasm-ld here; 'make deps-dev' installs lld" >&2
    exit 1
fi
$WASM_CC --target=wasm32 -nostdlib -ffreestanding -Oz -ffp-contract=off -mbulk-memory \
    -Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=262144 $here/glue.c -o "$out/explore.wasm"
$CC -std=c99 -O2 -ffp-contract=off -DHOST $here/glue.c -o "$out/native" -lm
"$out/native" >"$out/fingerprint.txt"
node $here/build.mjs "$out"
[ "${1:-}" != check ] || node $here/test.mjs "$out"
