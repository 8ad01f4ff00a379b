#!/bin/sh
# The book, woven from the header, the chapters, the findings and the checks.
#
#   book.sh          writes docs/book.html and docs/book/
#   book.sh check    weaves into build/book and compares with those
#   book.sh draft    weaves into build/book whatever is wrong, and says what
#
# BUILD names another folder than build.
#
# Needs Node.js 18 or later and, the first time, the net: npm fetches KaTeX, highlight.js and
# markdown-it as package-lock.json pins them.
set -eu
cd "$(dirname "$0")/../.."
here=docs/weave

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

to=${BUILD:-build}/book
case ${1:-weave} in
weave)
    node $here/weave.mjs
    ;;
check)
    node $here/formulas.mjs --check
    rm -rf "$to"
    mkdir -p "$to"
    node $here/weave.mjs "$to"
    if diff -rq "$to/book.html" docs/book.html && diff -rq "$to/book" docs/book; then
        echo "book: the committed pages are those of the sources"
    else
        echo "book: the committed pages are not those of the sources; run 'make book'" >&2
        exit 1
    fi
    ;;
draft)
    mkdir -p "$to"
    node $here/weave.mjs --draft "$to"
    for folder in figures experiments; do ln -sfn "$PWD/docs/$folder" "$to/$folder"; done
    ;;
*)
    echo "usage: book.sh [weave|check|draft]" >&2
    exit 2
    ;;
esac
