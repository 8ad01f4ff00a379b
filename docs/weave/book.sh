#!/bin/sh
# The book, woven from the header, the chapters and the findings.
#
#   book.sh          weaves it into BUILD/book (BUILD: build), with the explorable page beside it
#   book.sh check    also checks the chapters' formulas, that a second weaving gives the same bytes,
#                    and the pages in Chromium
#   book.sh pdf      also prints the whole into BUILD/book.pdf (Chromium)
#   book.sh look     also photographs some pages into BUILD/look (Chromium)
#   book.sh draft    weaves whatever is wrong, and says what
#
# Needs Node.js 18 or later and, the first time, the net: npm fetches KaTeX, highlight.js and
# markdown-it as package-lock.json pins them.
set -eu
cd "$(dirname "$0")/../.."
here=docs/weave
build=${BUILD:-build}

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    echo "book: needs Node.js with npm (Debian: apt install nodejs npm)" >&2
    exit 1
fi
if ! node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)'; then
    echo "book: needs Node.js 18 or later, here is $(node --version)" >&2
    exit 1
fi
# Fetched anew when the lock file has changed.
if ! cmp -s $here/package-lock.json $here/node_modules/.lock; then
    if ! (cd $here && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error); then
        echo "book: npm could not fetch what package-lock.json pins; nothing is written" >&2
        exit 1
    fi
    cp $here/package-lock.json $here/node_modules/.lock
fi

to=$build/book
explore= # without lld a book without the explorable page
if command -v wasm-ld >/dev/null; then
    BUILD=$build sh docs/explore/explore.sh
    explore=--explore
fi
weave() { # folder, options of weave.mjs
    folder=$1
    shift
    rm -rf "$folder"
    mkdir -p "$folder"
    [ -z "$explore" ] || cp "$build/explore/explore.html" "$folder"
    node $here/weave.mjs $explore "$@" "$folder"
}
case ${1:-weave} in
weave | pdf | look) weave "$to" ;;
check)
    node $here/formulas.mjs --check
    weave "$to"
    weave "$to.again"
    diff -rq "$to" "$to.again"
    rm -rf "$to.again"
    echo "book: woven twice, the same bytes"
    node $here/look.mjs "$to"
    ;;
draft) weave "$to" --draft ;;
*)
    echo "usage: book.sh [weave|check|pdf|look|draft]" >&2
    exit 2
    ;;
esac
case ${1:-weave} in
pdf) node $here/print.mjs "$to" "$build/book.pdf" ;;
look) node $here/look.mjs "$to" "$build/look" ;;
esac
rm -f "$to/print.html"
[ "${1:-}" = check ] || echo "book: open $to/book.html"
