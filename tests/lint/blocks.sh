#!/bin/sh
# What the documents show works. Every ```c block of the header's prose, of README.md and of the
# other pages is compiled, and run if it has a main; every ```sh or ```console block is parsed by a
# shell; every `make target` that a document names is a target of the Makefile.
#
# A block without main may be declarations or statements: it is tried as a file with the header
# included before it, and then as the body of a function. A block that is only a sketch says so:
# ```c sketch
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
CC=${CC:-cc}

flags="-Werror=implicit -I. -Iexamples $(pkg-config --cflags stb 2>/dev/null)"

# Splits a file into its fenced blocks: N.c, N.sh, N.console, with the line where each begins.
split_blocks() { # file
    rm -f "$dir"/*.block
    awk -v to="$dir" '
        /^```/ && open { open = 0; close(out); next }
        /^```(c|sh|console|bash|shell)[ \t]*$/ {
            kind = substr($1, 4)
            if (kind == "bash" || kind == "shell") kind = "sh"
            out = sprintf("%s/%05d.%s.block", to, FNR, kind)
            printf "" > out
            open = 1; keep = 1
            next
        }
        /^```/ { open = 1; keep = 0; out = "/dev/null"; next }
        open && keep { print > out }' "$1"
}

printf '#define NORMLAYERS_IMPLEMENTATION\n#include "normlayers.h"\n' >"$dir/implementation.c"
# shellcheck disable=SC2086
$CC $flags -c "$dir/implementation.c" -o "$dir/implementation.o" 2>"$dir/log" ||
    fail "the header does not compile"

cat >"$dir/includes" <<'END'
#include "normlayers.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
END

c_block() { # block, where
    if grep -q 'main *(' "$1"; then
        cp "$1" "$dir/block.c"
        objects=$dir/implementation.o
        # with its own copy of the functions where it is shown first, and where it sets options
        if grep -q 'define NORMLAYERS_IMPLEMENTATION' "$1"; then
            case $2 in
            README.md:* | normlayers.h:*) objects= ;;
            *)
                if grep -q 'define NRM_' "$1"; then
                    objects=
                else
                    set -- "$1" "$2" -DNRM_IMPLEMENTED
                fi
                ;;
            esac
        fi
        # shellcheck disable=SC2086
        check "$2: compiles" $CC $flags ${3:-} "$dir/block.c" $objects -o "$dir/block" -lm
        check "$2: runs" sh -c "cd '$dir' && ./block"
        return
    fi
    cat "$dir/includes" "$1" >"$dir/file.c"
    # includes stay outside of the function
    {
        cat "$dir/includes"
        grep '^ *#' "$1"
        echo 'int body(void) {'
        grep -v '^ *#' "$1"
        echo 'return 0; }'
    } >"$dir/body.c"
    # shellcheck disable=SC2086
    if $CC $flags -fsyntax-only "$dir/file.c" >"$dir/log" 2>&1 ||
        $CC $flags -fsyntax-only "$dir/body.c" >"$dir/log" 2>&1; then
        pass
    else
        fail "$2: compiles neither as declarations nor as statements"
    fi
}

sh_block() { # block, where
    case $1 in
    *.console.block) sed -n 's/^[$#] //p' "$1" >"$dir/block.sh" ;;
    *) sed 's/^\$ //' "$1" >"$dir/block.sh" ;;
    esac
    check "$2: a shell command" sh -n "$dir/block.sh"
}

documents=normlayers.h
[ -f README.md ] && documents="$documents README.md"
pages=$(find docs examples tests -name '*.md' ! -path '*/node_modules/*' | sort | tr '\n' ' ')
documents="$documents $pages"
for document in $documents; do
    split_blocks "$document"
    for block in "$dir"/*.block; do
        [ -f "$block" ] || continue
        line=$(basename "$block" | sed 's/^0*\([0-9]*\)\..*/\1/')
        case $block in
        *.c.block) c_block "$block" "$document:$line" ;;
        *) sh_block "$block" "$document:$line" ;;
        esac
    done
done

if [ -f Makefile ]; then
    # The documents call the folder build, whatever it is called while this runs.
    make -pnq BUILD=build : 2>/dev/null |
        sed -n 's/^\([A-Za-z0-9][A-Za-z0-9_./-]*\) *::*\([^=].*\)*$/\1/p' |
        sort -u >"$dir/targets"
    # A phony target without a rule would do nothing, and say that all is well.
    phony=$(awk '/^\.PHONY:/ { on = 1; $1 = "" } on { on = sub(/\\$/, ""); print }' Makefile)
    for target in $phony; do
        check "Makefile: something makes $target, which is phony" grep -q "^$target:" Makefile
    done
    # shellcheck disable=SC2086
    grep -n -o -E '(`|^ *\$? *|&& *)make( +[A-Za-z0-9_./=:~-]+)*' $documents /dev/null |
        sed 's/^\([^:]*:[0-9]*\):.*make/\1/' >"$dir/named"
    while read -r where words; do
        for word in $words; do
            case $word in
            *=* | -*) continue ;; # a setting or an option
            esac
            check "$where: the Makefile has a target $word" \
                grep -q -x -F -- "$word" "$dir/targets"
        done
    done <"$dir/named"
else
    echo "blocks: no Makefile yet, its targets are not checked"
fi
# What a page quotes of the header, with a tag, must stand there. (A block marked "c plain" is the
# page's own code, which tests/pages compares with the header; one marked "diff" is the reader's.)
for document in README.md docs/*.md; do
    awk '/^```/ { inside = !inside; open = inside && !/^```(c plain|diff)$/; next }
        open { sub(/ +$/, ""); print }' "$document" |
        grep -E '([[(]|/\* )[A-Z]+\.[0-9]+([])]$|.* \*/$)' | sed 's/^ *//' >"$dir/quoted"
    while IFS= read -r quoted; do
        tag=$(echo "$quoted" | grep -o -E '([[(]|/\* )[A-Z]+\.[0-9]+' | tail -n 1 |
            sed 's/^.*[[( ]//')
        # an equation of the page, and its code
        grep -q -E "[[(]${tag}[])]\$" normlayers.h || continue
        check "$document quotes a line of the header: $quoted" grep -q -F -- "$quoted" normlayers.h
    done <"$dir/quoted"
done
verdict blocks
