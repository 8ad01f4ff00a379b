#!/bin/sh
# What the linker sees of normlayers.h: functions named nrm_*, and nothing else. No object with
# external linkage, no data, no common symbol, and with NRM_STATIC nothing at all. A library in
# one header shares the linker's name space with the whole program; here is the proof that it
# takes no more than its prefix.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh

judge() { # an empty log is good
    if [ -s "$dir/log" ]; then fail "$1"; else pass; fi
}

# nm in POSIX format, "name type value size", of an object built from the header alone.
names() { # compiler language flags
    printf '#define NORMLAYERS_IMPLEMENTATION\n#include "normlayers.h"\n' >"$dir/unit.$2"
    # shellcheck disable=SC2086
    "$1" $3 -O0 -I. -c "$dir/unit.$2" -o "$dir/unit.o" >"$dir/log" 2>&1 &&
        nm -P "$dir/unit.o" >"$dir/names" 2>>"$dir/log"
}

# Every name that the header declares with NRM_DEF.
sed -n '/^#ifndef NORMLAYERS_H$/,/^#endif .* NORMLAYERS_H/p' normlayers.h |
    sed -n 's/^NRM_DEF [^(]*[ *]\(nrm_[a-z0-9_]*\)(.*/\1/p' | sort -u >"$dir/declared"

for compiler in gcc clang; do
    command -v "$compiler" >/dev/null 2>&1 || { echo "symbols: missing: $compiler"; continue; }
    for language in c cc; do
        for option in "" -DNRM_DOUBLE -DNRM_ACC=float "-DNRM_DOUBLE -DNRM_ACC=double"; do
            what="$compiler .$language $option"
            case $option in
            "-DNRM_DOUBLE -DNRM_ACC=double") tag=_f64_double ;;
            -DNRM_DOUBLE) tag=_f64 ;;
            -DNRM_ACC=float) tag=_f32_float ;;
            *) tag= ;;
            esac
            names "$compiler" "$language" "$option" || { fail "$what does not compile"; continue; }
            : >"$dir/log"
            # external: upper-case types other than U (undefined)
            awk '$2 ~ /^[A-TV-Z]$/ && !($2 == "T" && $1 ~ /^nrm_/)' "$dir/names" >"$dir/log"
            judge "$what: exports more than nrm_ functions"
            # objects of any linkage that can be written to
            awk '$2 ~ /^[bBdDcCsS]$/' "$dir/names" >"$dir/log"
            judge "$what: has data"
            awk '$2 == "T" {print $1}' "$dir/names" | sort >"$dir/exported"
            sed "s/\$/$tag/" "$dir/declared" | sort >"$dir/expected"
            diff "$dir/expected" "$dir/exported" >"$dir/log"
            judge "$what: exports differ from the declarations"
            names "$compiler" "$language" "$option -DNRM_STATIC" ||
                { fail "$what NRM_STATIC does not compile"; continue; }
            awk '$2 ~ /^[A-TV-Zbdcs]$/' "$dir/names" >"$dir/log"
            judge "$what NRM_STATIC: exports or data"
        done
    done
done
[ -s "$dir/declared" ] || { : >"$dir/log"; fail "no declarations found in normlayers.h"; }
verdict symbols
