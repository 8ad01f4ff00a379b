#!/bin/sh
# Looks at the book through Chromium: no page may be wider than a phone's or a screen's window, no
# formula in red, no picture missing; and puts pictures of some pages into build/look.
#
#   look.sh [FOLDER]     FOLDER holds book.html and book/; else build/book, where book.sh weaves it
set -eu
cd "$(dirname "$0")/../.."
for name in chromium chromium-browser google-chrome; do
    [ -n "${CHROMIUM:-}" ] || CHROMIUM=$(command -v $name) || continue
done
export CHROMIUM="${CHROMIUM:?look: no Chromium here}"
out=${BUILD:-build}/look
node docs/weave/look.mjs "${1:-${BUILD:-build}/book}" "$out"
# The printed pages as pictures too, where Ghostscript is.
if command -v gs >/dev/null; then
    for pdf in "$out"/*.pdf; do
        gs -q -dNOPAUSE -dBATCH -sDEVICE=png16m -r80 -dLastPage=6 \
            -sOutputFile="${pdf%.pdf}_print_%d.png" "$pdf"
    done
fi
