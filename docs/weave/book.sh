#!/bin/sh
# The book, woven from the header, the chapters, the findings and the checks.
#
#   book.sh          weaves into BUILD/book (BUILD: build)
#   book.sh check    also checks the chapters' formulas, and that a second weaving gives the
#                    same bytes
#   book.sh draft    weaves whatever is wrong, and says what
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
weave() { # folder, options of weave.mjs
    folder=$1
    shift
    rm -rf "$folder"
    mkdir -p "$folder"
    node $here/weave.mjs "$@" "$folder"
}
case ${1:-weave} in
weave) weave "$to" ;;
check)
    node $here/formulas.mjs --check
    weave "$to"
    weave "$to.again"
    diff -rq "$to" "$to.again"
    rm -rf "$to.again"
    echo "book: woven twice, the same bytes"
    ;;
draft) weave "$to" --draft ;;
*)
    echo "usage: book.sh [weave|check|draft]" >&2
    exit 2
    ;;
esac
for folder in figures experiments drawings; do ln -sfn "$PWD/docs/$folder" "$to/$folder"; done
echo "book: open $to/book.html"
